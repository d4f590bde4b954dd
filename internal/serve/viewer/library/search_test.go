package library

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/store/sqlite"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestSearch checks that the texts of a run are added to its index after the first search, and of no other, without anybody who asks
// again, and that this ends with Follow.
func TestSearch(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const calls = 3 * textsAtOnce
	for _, name := range []string{"a.parley", "b.parley"} {
		store, err := sqlite.Open(t.Context(), filepath.Join(folder, name), sqlite.Create)
		if err != nil {
			t.Fatal(err)
		}
		entries := []journal.Entry{&journal.Begun{Version: journal.Version, Run: name, Kind: "duel", KindVersion: 1}, &journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duel"}, 1)}}
		for i := range calls {
			turn := journal.Turn{Turn: i}
			entries = append(entries, &journal.Turned{Turn: turn, Calls: 1}, &journal.Replied{Turn: turn, Seat: "one", Response: &llm.Response{Text: fmt.Sprintf("word%d", i), Finish: llm.FinishStop}})
		}
		if err := errors.Join(store.Append(t.Context(), entries...), store.Close()); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l, err := New([]string{folder}, func(*journal.Begun) world.Kind { return world.Kind{} })
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ctx, end := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer end()
		open := func(name string) *Run {
			r, _, err := l.Get(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() { r.Follow(ctx) })
			return r
		}
		found := func(r *Run) bool {
			hits, err := r.Index.Search(t.Context(), fmt.Sprintf("word%d", calls-1), 0, 10)
			return err == nil && len(hits) == 1
		}
		a, b := open("a.parley"), open("b.parley")
		if indexed, entries, err := a.Search(t.Context(), 10); err != nil || indexed != 10 || entries != 2*calls+3 {
			t.Fatalf("%d of %d entries: %v", indexed, entries, err)
		}
		if found(a) {
			t.Error("all texts are added at once")
		}
		for i := 0; !found(a); i++ {
			time.Sleep(textsPause)
			if i > 1000 {
				t.Fatal("the texts are not added in the background")
			}
		}
		if found(b) {
			t.Error("texts of a run that nobody searched are in its index")
		}
	})
}
