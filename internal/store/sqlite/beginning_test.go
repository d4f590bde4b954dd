package sqlite

import (
	"reflect"
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
			got, fill, whole, err := s.Beginning(t.Context(), episode, limit)
			if err != nil {
				t.Fatal(err)
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
