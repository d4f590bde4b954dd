package engine

import "container/heap"

// queue gives what belongs to the oldest episode first, and among equals what came first.
type queue[T any] struct {
	h   places[T]
	seq int
}

type queued[T any] struct {
	what         T
	episode, seq int
}

func (q *queue[T]) len() int { return len(q.h) }

func (q *queue[T]) push(what T, episode int) {
	heap.Push(&q.h, queued[T]{what, episode, q.seq})
	q.seq++
}

func (q *queue[T]) pop() T { return heap.Pop(&q.h).(queued[T]).what }

type places[T any] []queued[T]

func (p places[T]) Len() int { return len(p) }
func (p places[T]) Less(i, j int) bool {
	if p[i].episode != p[j].episode {
		return p[i].episode < p[j].episode
	}
	return p[i].seq < p[j].seq
}
func (p places[T]) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *places[T]) Push(x any)   { *p = append(*p, x.(queued[T])) }
func (p *places[T]) Pop() any {
	old := *p
	last := old[len(old)-1]
	old[len(old)-1] = queued[T]{}
	*p = old[:len(old)-1]
	return last
}
