package viewer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestSearch checks that the texts of a run are added to its index after the first search, and of no other, without anybody who asks
// again, and that this ends with Follow.
func TestSearch(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const calls = 3 * libraryTextsAtOnce
	libraryRecord(t, folder, calls, "a.parley", "b.parley")
	synctest.Test(t, func(t *testing.T) {
		l, err := newLibrary([]string{folder}, func(*journal.Begun) world.Kind { return world.Kind{} })
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

// libraryRecord writes runs with some calls.
func libraryRecord(t *testing.T, folder string, calls int, names ...string) {
	t.Helper()
	for _, name := range names {
		store, err := runfile.Open(t.Context(), filepath.Join(folder, name), runfile.Create)
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
}

// TestSearchedStays checks that a run whose texts are being added stays open while others are opened, until they are in the index,
// and that not more than some are open.
func TestSearchedStays(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var names []string
	libraryRecord(t, folder, 2, "r.parley")
	data, err := os.ReadFile(filepath.Join(folder, "r.parley"))
	for i := range maxBehind + maxOpen + 2 {
		names = append(names, fmt.Sprintf("r%02d.parley", i))
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, names[i]), data, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		l, err := newLibrary([]string{folder}, func(*journal.Begun) world.Kind { return world.Kind{} })
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		open := func(name string, search bool) {
			time.Sleep(time.Second) // each is used later than the one before
			r, _, err := l.Get(t.Context(), name)
			if err == nil && search {
				_, _, err = r.Search(t.Context(), 1)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		searched, others := names[:maxBehind], names[maxBehind:]
		for _, name := range searched {
			open(name, true)
		}
		first := l.open[names[0]]
		for _, name := range others {
			open(name, false)
		}
		if first == nil || l.open[names[0]] != first || len(l.open) > maxBehind+maxOpen {
			t.Fatalf("of %d runs that are open, the first that was searched is %v", len(l.open), l.open[names[0]])
		}
		ctx, end := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { first.Follow(ctx) })
		time.Sleep(time.Minute)
		synctest.Wait()
		open(others[0], false)
		if indexed, entries, err := first.Search(t.Context(), 0); err == nil {
			t.Errorf("the run is open with %d of %d entries", indexed, entries)
		}
		end()
		wg.Wait()
		for _, name := range others[:3] {
			open(name, true)
		}
		if len(l.open) > maxBehind+maxOpen || len(l.busy) > 0 {
			t.Errorf("%d runs are open", len(l.open))
		}
	})
}

// TestOpenedWithoutLock checks that other runs can be used while one is opened, and that a run is opened once.
func TestOpenedWithoutLock(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	libraryRecord(t, folder, 1, "a.parley", "b.parley")
	synctest.Test(t, func(t *testing.T) {
		var l *runLibrary
		began, goOn := make(chan struct{}), make(chan struct{})
		l, err := newLibrary([]string{folder}, func(b *journal.Begun) world.Kind {
			if !l.mu.TryLock() {
				t.Error("nobody can use another run")
				return world.Kind{}
			}
			l.mu.Unlock()
			if b.Run == "a.parley" {
				close(began) // twice would panic
				<-goOn
			}
			return world.Kind{}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var wg sync.WaitGroup
		got := make(chan *Run, 2)
		for range 2 {
			wg.Go(func() {
				r, _, err := l.Get(t.Context(), "a.parley")
				if err != nil {
					t.Error(err)
				}
				got <- r
			})
		}
		<-began
		ctx, end := context.WithCancelCause(t.Context())
		gone := errors.New("the page was closed")
		end(gone)
		if _, _, err := l.Get(ctx, "a.parley"); !errors.Is(err, gone) {
			t.Errorf("a page that was closed: %v", err)
		}
		if _, _, err := l.Get(t.Context(), "b.parley"); err != nil {
			t.Error(err)
		}
		close(goOn)
		wg.Wait()
		if <-got != <-got {
			t.Error("the run was opened twice")
		}
	})
}
