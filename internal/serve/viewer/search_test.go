package viewer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/run/results"
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
	const calls = 3 * textsPerStep
	recordCalls(t, folder, calls, "a.parley", "b.parley")
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

// recordCalls writes runs with some calls.
func recordCalls(t *testing.T, folder string, calls int, names ...string) {
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
	recordCalls(t, folder, 2, "r.parley")
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
	recordCalls(t, folder, 1, "a.parley", "b.parley")
	synctest.Test(t, func(t *testing.T) {
		var l *library
		began, goOn := make(chan struct{}), make(chan struct{})
		l, err := newLibrary([]string{folder}, func(b *journal.Begun) world.Kind {
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
		open := func() {
			r, _, err := l.Get(t.Context(), "a.parley")
			if err != nil {
				t.Error(err)
			}
			got <- r
		}
		wg.Go(open)
		<-began
		if !l.mu.TryLock() {
			close(goOn)
			t.Fatal("nobody can use another run")
		}
		l.mu.Unlock()
		wg.Go(open)
		synctest.Wait() // until it waits for the first
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

// TestSearchAll checks that a search in all runs has the hits of each run with links, and says which runs were searched and what could
// not be read.
func TestSearchAll(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	two(t, folder) // a.parley and b.parley
	record(t, filepath.Join(folder, "c.parley"))
	if err := os.WriteFile(filepath.Join(folder, "d.parley"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, folder)
	if _, body, _ := s.get("/"); !strings.Contains(body, `href="/search"`) {
		t.Error("the list of runs has no link to the search")
	}
	_, body, _ := s.get("/search?q=words+of")
	for _, want := range []string{
		"Runs 1 to 4 of 4", `<a href="/run/a.parley"><bdi>a.parley</bdi></a></h2>`, `href="/run/a.parley/episodes/0/0:0"`, `href="/run/b.parley/episodes/0/0:0"`, "<mark>words</mark>",
		`href="/run/a.parley/search?q=words&#43;of">More of this run`, `Nothing was found in <a href="/run/c.parley">`, "This is not a run file.",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s: %s", want, body)
		}
	}
	if _, body, _ := s.get("/search?q=nothing+has+this"); strings.Contains(body, `class="hits"`) || !strings.Contains(body, "Nothing was found in") {
		t.Error(body)
	}
	if _, body, _ := serve(t, filepath.Join(folder, "a.parley")).get("/search?q=words"); !strings.Contains(body, "Search in a.parley") {
		t.Error("a single run is not searched on its own page")
	}
}

// TestSearchLarge checks that a search in all runs does not begin to index a large run.
func TestSearchLarge(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	two(t, folder)
	v, err := New(Config{Paths: []string{folder}, KindOf: func(*journal.Begun) world.Kind { return world.Kind{} }})
	if err != nil {
		t.Fatal(err)
	}
	defer v.runs.Close()
	large := &runEntry{Name: "a.parley", Known: true, Outline: runfile.Outline{Replies: maxUnindexed + 1}}
	f := v.searchOne(t.Context(), &runEntry{Name: "a.parley"}, "words")
	if !f.Unread || len(f.Hits) > 0 || v.indexed("a.parley") {
		t.Errorf("a run that was not read yet: %+v", f)
	}
	var body strings.Builder
	if err := v.pages.ExecuteTemplate(&body, "searchall", &screen{Data: searchAllPage{All: 1, Unread: 1, Found: []foundIn{f}}}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"data-again>1 run is still being read.", "This run is still being read."} {
		if !strings.Contains(body.String(), want) {
			t.Errorf("the page has no %q: %s", want, &body)
		}
	}
	if f := v.searchOne(t.Context(), large, "words"); !f.Large || len(f.Hits) > 0 || v.indexed("a.parley") {
		t.Errorf("%+v", f)
	}
	if err := os.WriteFile(filepath.Join(folder, "a.parley"+results.IndexSuffix), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	v.ctx = stopped // nothing follows the run
	if f := v.searchOne(t.Context(), large, "words"); f.Large || len(f.Hits) != hitsPerRun {
		t.Errorf("%+v", f)
	}
}

// TestSearchMany checks that pages of a search have every run once.
func TestSearchMany(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const runs = 2*runsPerSearch + 1
	for i := range runs {
		path := filepath.Join(folder, fmt.Sprintf("r%02d.parley", i))
		recordLong(t, path, 1)
		at := time.Date(2020, 1, 1, 12, i, 0, 0, time.UTC)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, folder)
	seen := map[string]int{}
	pages := 0
	for next := "/search?q=word"; next != "" && pages < 9; pages++ {
		_, body, _ := s.get(next)
		for i := range runs {
			name := fmt.Sprintf("r%02d.parley", i)
			seen[name] += strings.Count(body, `<bdi>`+name+`</bdi></a></h2>`)
		}
		before, _, found := strings.Cut(body, `" rel="next">The next runs`)
		if next = ""; found {
			next = strings.ReplaceAll(before[strings.LastIndex(before, `href="`)+6:], "&amp;", "&")
		}
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times", name, n)
		}
	}
	if len(seen) != runs || pages != 3 {
		t.Errorf("%d runs on %d pages", len(seen), pages)
	}
}
