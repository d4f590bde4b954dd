package viewer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

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
	large := &Entry{Name: "a.parley", Known: true, Outline: runfile.Outline{Replies: maxUnindexed + 1}}
	f := v.searchOne(t.Context(), &Entry{Name: "a.parley"}, "words")
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
	if err := os.WriteFile(filepath.Join(folder, "a.parley"+results.Suffix), nil, 0o600); err != nil {
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
