package dispatch

import "container/heap"

// line is a queue in order of service: lowest order first, and first come first
// served among equals. Its zero value is an empty queue.
type line[T placed] struct {
	h   heaped[T]
	seq uint64
}

// placed is what can stand in a line: it embeds a place.
type placed interface{ at() *place }

// place is where something stands in a line.
type place struct {
	order int64
	seq   uint64
	index int // in the heap; -1 once it left
}

func (p *place) at() *place { return p }

func (l *line[T]) len() int { return len(l.h) }
func (l *line[T]) head() T  { return l.h[0] }

func (l *line[T]) push(x T) {
	x.at().seq = l.seq
	l.seq++
	heap.Push(&l.h, x)
}

func (l *line[T]) pop() { heap.Pop(&l.h) }

// leave takes x out of the line; it says false if x is not in it any more.
func (l *line[T]) leave(x T) bool {
	i := x.at().index
	if i < 0 {
		return false
	}
	heap.Remove(&l.h, i)
	return true
}

type heaped[T placed] []T

func (h heaped[T]) Len() int { return len(h) }

func (h heaped[T]) Less(i, j int) bool {
	a, b := h[i].at(), h[j].at()
	if a.order != b.order {
		return a.order < b.order
	}
	return a.seq < b.seq
}

func (h heaped[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at().index, h[j].at().index = i, j
}

func (h *heaped[T]) Push(x any) {
	t := x.(T)
	t.at().index = len(*h)
	*h = append(*h, t)
}

func (h *heaped[T]) Pop() any {
	old := *h
	last := len(old) - 1
	t := old[last]
	var none T
	old[last] = none
	t.at().index = -1
	*h = old[:last]
	return t
}
