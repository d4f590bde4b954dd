package queue

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

type value struct {
	order      int64
	seq, index int
}

// TestOrder pushes, pops and removes at random, and compares the queue with a sorted list.
func TestOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		q := Queue[*value]{Track: func(x *value, i int) { x.index = i }}
		var want []*value
		for seq := range 500 {
			switch n := r.IntN(5); {
			case n < 3:
				x := &value{order: r.Int64N(9) - 4, seq: seq}
				q.Push(x, x.order)
				want = append(want, x)
			case len(want) == 0:
			case n == 3:
				i := r.IntN(len(want))
				if got := q.Remove(want[i].index); got != want[i] {
					t.Fatalf("seed %d: removed %v, want %v", seed, got, want[i])
				}
				want = slices.Delete(want, i, i+1)
			default:
				slices.SortFunc(want, func(a, b *value) int { return cmp.Or(cmp.Compare(a.order, b.order), a.seq-b.seq) })
				head := q.Head()
				if got := q.Pop(); got != want[0] || got != head || got.index != -1 {
					t.Fatalf("seed %d: popped %v, want %v", seed, got, want[0])
				}
				want = want[1:]
			}
			if q.Len() != len(want) {
				t.Fatalf("seed %d: the queue holds %d values, want %d", seed, q.Len(), len(want))
			}
		}
	}
}
