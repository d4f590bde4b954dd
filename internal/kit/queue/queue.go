// Package queue is a priority queue: the lowest order is served first, and among equals the one
// that was pushed first.
//
// It promises that pushing, popping and removing take logarithmic time and allocate only when the
// queue grows, and that the queue does not retain what has left it. It is not safe for use by
// several goroutines at once.
package queue

// Queue is a priority queue of values. The zero value is empty and ready to use.
type Queue[T any] struct {
	// Track, if set, is called with the index of a value whenever that changes, and with -1 when the
	// value leaves the queue. Remove takes the index.
	Track func(x T, index int)

	heap   []entry[T]
	pushed uint64
}

type entry[T any] struct {
	value T
	order int64
	seq   uint64
}

// Len returns how many values the queue holds.
func (q *Queue[T]) Len() int { return len(q.heap) }

// Head returns the value that is served next. The queue must not be empty.
func (q *Queue[T]) Head() T { return q.heap[0].value }

// Push adds a value.
func (q *Queue[T]) Push(x T, order int64) {
	q.heap = append(q.heap, entry[T]{x, order, q.pushed})
	q.pushed++
	q.track(len(q.heap) - 1)
	q.up(len(q.heap) - 1)
}

// Pop removes and returns the value that is served next. The queue must not be empty.
func (q *Queue[T]) Pop() T { return q.Remove(0) }

// Remove removes and returns the value at an index: see Track.
func (q *Queue[T]) Remove(i int) T {
	last := len(q.heap) - 1
	if i != last {
		q.swap(i, last)
	}
	x := q.heap[last].value
	q.heap[last] = entry[T]{}
	q.heap = q.heap[:last]
	if i != last {
		q.down(i)
		q.up(i)
	}
	if q.Track != nil {
		q.Track(x, -1)
	}
	return x
}

func (q *Queue[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			return
		}
		q.swap(i, parent)
		i = parent
	}
}

func (q *Queue[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.heap) {
			return
		}
		if right := child + 1; right < len(q.heap) && q.less(right, child) {
			child = right
		}
		if !q.less(child, i) {
			return
		}
		q.swap(i, child)
		i = child
	}
}

func (q *Queue[T]) less(i, j int) bool {
	a, b := &q.heap[i], &q.heap[j]
	return a.order < b.order || a.order == b.order && a.seq < b.seq
}

func (q *Queue[T]) swap(i, j int) {
	q.heap[i], q.heap[j] = q.heap[j], q.heap[i]
	q.track(i)
	q.track(j)
}

func (q *Queue[T]) track(i int) {
	if q.Track != nil {
		q.Track(q.heap[i].value, i)
	}
}
