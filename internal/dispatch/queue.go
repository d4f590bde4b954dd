package dispatch

import "container/heap"

// queue is a queue in order of service: lowest order first, and first come first
// served among equals. Its zero value is an empty queue.
type queue[T placed] struct {
	h   queueHeap[T]
	seq uint64
}

// placed is what can stand in a queue: it embeds a place.
type placed interface{ at() *place }

// place is where something stands in a queue.
type place struct {
	order int64
	seq   uint64
	index int // in the heap; -1 once it left
}

func (p *place) at() *place { return p }

func (q *queue[T]) len() int { return len(q.h) }
func (q *queue[T]) head() T  { return q.h[0] }

func (q *queue[T]) push(x T) {
	x.at().seq = q.seq
	q.seq++
	heap.Push(&q.h, x)
}

func (q *queue[T]) pop() { heap.Pop(&q.h) }

// leave takes x out of the queue; it says false if x is not in it any more.
func (q *queue[T]) leave(x T) bool {
	i := x.at().index
	if i < 0 {
		return false
	}
	heap.Remove(&q.h, i)
	return true
}

type queueHeap[T placed] []T

func (h queueHeap[T]) Len() int { return len(h) }

func (h queueHeap[T]) Less(i, j int) bool {
	a, b := h[i].at(), h[j].at()
	if a.order != b.order {
		return a.order < b.order
	}
	return a.seq < b.seq
}

func (h queueHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at().index, h[j].at().index = i, j
}

func (h *queueHeap[T]) Push(x any) {
	t := x.(T)
	t.at().index = len(*h)
	*h = append(*h, t)
}

func (h *queueHeap[T]) Pop() any {
	old := *h
	last := len(old) - 1
	t := old[last]
	var none T
	old[last] = none
	t.at().index = -1
	*h = old[:last]
	return t
}
