package runfile

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"parley/journal"
)

// TestBeginning checks that the beginning of an episode is what Sparing returns, up to a number of replies, also if other
// episodes were played at the same time.
func TestBeginning(t *testing.T) {
	t.Parallel()
	s := kept(t, mixed(60, 1))
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parts := 0
	for episode := range head.Ended.Len() + len(head.Playing) {
		all, _, err := s.Sparing(t.Context(), episode)
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{1, 2, 3, 1000} {
			got, _, fill, first, whole, err := s.Window(t.Context(), episode, 0, 0, limit)
			if err != nil || !first {
				t.Fatal(first, err)
			}
			want, replies := all, 0
			for i, e := range all {
				if _, ok := e.(*journal.Replied); ok {
					if replies++; replies == limit {
						want = all[:i+1]
						break
					}
				}
			}
			if !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 || whole != (len(want) == len(all)) {
				t.Fatalf("episode %d, %d replies: %d entries, whole %v; want %d of %d", episode, limit, len(got), whole, len(want), len(all))
			}
			if !whole {
				parts++
			}
			for _, e := range got {
				if r, ok := e.(*journal.Replied); ok && r.Request != nil {
					if err := fill(r); err != nil || len(r.Request.Messages) == 0 {
						t.Errorf("episode %d: a request has no messages: %v", episode, err)
					}
					break
				}
			}
		}
	}
	if parts == 0 {
		t.Error("every beginning is a whole episode")
	}
}

// TestWindow checks that a part of an episode has the replies before and after an entry.
func TestWindow(t *testing.T) {
	t.Parallel()
	s := kept(t, mixed(60, 1))
	for episode := range 5 {
		all, keys, _, _, _, err := s.Window(t.Context(), episode, 0, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		var seqs []int64
		for _, e := range all {
			if r, ok := e.(*journal.Replied); ok {
				seqs = append(seqs, keys[r])
			}
		}
		for i, at := range seqs {
			for _, n := range []int{1, 2, 1000} {
				got, keys, _, first, last, err := s.Window(t.Context(), episode, at, n, n)
				if err != nil {
					t.Fatal(err)
				}
				var found []int64
				for _, e := range got {
					if r, ok := e.(*journal.Replied); ok {
						found = append(found, keys[r])
					}
				}
				from, to := max(0, i+1-n), min(len(seqs), i+1+n)
				if !slices.Equal(found, seqs[from:to]) || first && from > 0 || !last && i+n >= len(seqs) {
					t.Fatalf("episode %d, %d around %d: %v of %v; first %v, last %v", episode, n, at, found, seqs, first, last)
				}
			}
		}
	}
	for _, at := range []int64{1, math.MaxInt64} {
		if _, _, _, _, _, err := s.Window(t.Context(), 0, at, 3, 3); err != nil {
			t.Error(at, err)
		}
	}
}
