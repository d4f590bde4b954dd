package viewer

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// write writes a run with ended episodes, in which agent b scores twice what a does.
func write(t *testing.T, path, run string, ended int, fork *journal.Origin) {
	t.Helper()
	store, err := runfile.Open(t.Context(), path, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	entries := []journal.Entry{
		&journal.Begun{Version: journal.Version, Run: run, Kind: "duel", KindVersion: 1, At: at, Plan: []byte(`{}`), Fork: fork, Agents: []world.Agent{{Name: "a", Model: "lab/a"}, {Name: "b", Model: "lab/b"}}},
		&journal.Opened{At: at}, &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duel", Lineup: map[string]string{"one": "b", "two": "a"}}, ended+1)},
	}
	for i := range ended {
		turn := journal.Turn{Episode: i}
		entries = append(entries, &journal.Turned{Turn: turn, Calls: 1},
			&journal.Replied{Turn: turn, Seat: "one", Agent: "b", At: at, Request: &llm.Request{Model: "lab/b"}, Response: &llm.Response{Text: "yes", Finish: llm.FinishStop, Metadata: llm.Metadata{Cost: llm.Dollar}}},
			&journal.Ended{Episode: i, At: at, Outcome: world.Outcome{Scores: []world.Score{{Seat: "one", Name: "points", Value: float64(2 * (i % 3))}, {Seat: "two", Name: "points", Value: float64(i % 3)}, {Name: "other", Value: 1}}}})
	}
	if err := store.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, folder string) *catalog {
	t.Helper()
	all, err := newLibrary([]string{folder}, func(*journal.Begun) world.Kind { return world.Kind{} })
	if err != nil {
		t.Fatal(err)
	}
	return &catalog{Library: all, KindOf: func(*journal.Begun) world.Kind { return world.Kind{} }, Wait: true}
}

func entriesText(all []*runEntry) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%s%s ", strings.Repeat(">", e.Depth), e.Name)
	}
	return strings.TrimSpace(b.String())
}

// TestCatalogList checks what the list says of runs, of forks, and of a file that is not a run.
func TestCatalogList(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i, f := range []struct {
		name, run, from string
		ended           int
	}{
		{"old", "r-old", "", 6}, {"copy", "r-old", "", 6}, {"fork", "r-fork", "r-old", 3}, {"again", "r-again", "r-fork", 0},
		{"ring1", "r-ring1", "r-ring2", 0}, {"ring2", "r-ring2", "r-ring1", 0}, {"lone", "r-lone", "r-gone", 0}, {"self", "r-self", "r-self", 0},
	} {
		var fork *journal.Origin
		if f.from != "" {
			fork = &journal.Origin{File: "elsewhere/" + strings.TrimPrefix(f.from, "r-") + ".parley", Run: f.from, Episode: 1, Turn: 2}
		}
		path := filepath.Join(folder, f.name+".parley")
		write(t, path, f.run, f.ended, fork)
		at := time.Date(2020, 1, 1, 12, i, 0, 0, time.UTC)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "bad.parley"), []byte("no run"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, folder)
	gone, leave := context.WithCancel(t.Context())
	leave()
	c.Background = func(func(context.Context)) {}
	c.List(gone) // somebody left the page while files were read: nothing stays of that
	all, more := c.List(t.Context())
	want := "bad.parley self.parley lone.parley copy.parley old.parley >fork.parley >>again.parley ring2.parley >ring1.parley"
	if got := entriesText(all); got != want || more {
		t.Fatalf("%s, want %s; %v", got, want, more)
	}
	old := all[slices.IndexFunc(all, func(e *runEntry) bool { return e.Name == "old.parley" })]
	if s := old.Scores; old.Outline.Episodes.Done() != 6 || old.Outline.Episodes.Total != 7 || old.Outline.Spent != 6*llm.Dollar || s.Name != "points" || len(s.Of) != 2 || s.Of[0].Agent != "b" || math.Abs(s.Of[0].Mean.Value-2) > 1e-9 || math.Abs(s.Of[1].Mean.Value-1) > 1e-9 || !(s.Of[0].Mean.Low < 2 && s.Of[0].Mean.High > 2) {
		t.Errorf("%+v", old)
	}
	if e := all[0]; e.Problem == "" || !e.Known {
		t.Errorf("a file that is no run: %+v", e)
	}
	for query, want := range map[listFilter]string{
		{Words: "FORK again"}: ">>again.parley", {Words: "no such"}: "", {State: "cut off", Words: "old."}: "old.parley >fork.parley", {State: "complete"}: "",
	} {
		if page, n, next, err := (runFilter{query}).Page(all); err != nil || entriesText(page) != want || n != len(page) || next != "" {
			t.Errorf("%+v: %s, want %s", query, entriesText(page), want)
		}
	}
}

// TestChanges checks that a file is read again if it was changed, and only then, and that work is left to the background.
func TestChanges(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "run.parley")
	write(t, path, "r1", 3, nil)
	c := open(t, folder)
	c.Wait = false
	var jobs []func(context.Context)
	c.Background = func(f func(context.Context)) { jobs = append(jobs, f) }
	all, more := c.List(t.Context())
	if !more || len(jobs) != 1 || all[0].Scores.Name != "" || all[0].Outline.Episodes.Done() != 3 {
		t.Fatalf("%+v %v %d", all[0], more, len(jobs))
	}
	jobs[0](t.Context())
	if all, more = c.List(t.Context()); more || all[0].Scores.Name != "points" || len(jobs) != 1 {
		t.Fatalf("%+v %v %d", all[0], more, len(jobs))
	}
	write(t, filepath.Join(folder, "other.parley"), "r2", 1, nil)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if all, _ = c.List(t.Context()); entriesText(all) != "other.parley" || len(c.files) != 1 {
		t.Errorf("%s, and %d files are known", entriesText(all), len(c.files))
	}
}

// TestPages checks that pages have every run once.
func TestPages(t *testing.T) {
	t.Parallel()
	var all []*runEntry
	for i := range 2*runsPerPage + 7 {
		all = append(all, &runEntry{Name: fmt.Sprintf("a run %d & more", i), Status: results.Status{State: "complete"}})
	}
	f, seen := runFilter{listFilter{State: "complete"}}, 0
	for pages := 0; ; pages++ {
		page, n, next, err := f.Page(all)
		if seen += len(page); err != nil || n != len(all) || pages > 3 {
			t.Fatalf("page %d: %d of %d", pages, seen, n)
		}
		if next == "" {
			break
		}
		f.After = page[len(page)-1].Name
		if f.Address("/") != next {
			t.Errorf("%s, want %s", next, f.Address("/"))
		}
	}
	if seen != len(all) {
		t.Errorf("%d of %d runs", seen, len(all))
	}
	f.After, all[9].State = all[9].Name, "playing" // it does not pass any more
	if page, n, _, err := f.Page(all); err != nil || n != len(all)-1 || page[0].Name != all[10].Name {
		t.Errorf("after a run that does not pass: %d runs pass, the page begins with %s: %v", n, page[0].Name, err)
	}
}

// TestAfterNothing: a page after a run that was deleted says so, and is not the first page again.
func TestAfterNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"a.parley", "b.parley"} {
		record(t, filepath.Join(folder, name))
	}
	s := serve(t, folder)
	for _, path := range []string{"/?after=", "/search?q=hello&after="} {
		for name, want := range map[string]int{"a.parley": 200, "none.parley": 404} {
			status, body, _ := s.get(path + name)
			if status != want || want == 404 && !strings.Contains(body, "after which this page begins, is gone") {
				t.Errorf("%s%s: %d %s", path, name, status, body)
			}
		}
	}
}

// TestRunList sorts runs, finds them by tags and kind, and compares two that are ticked.
func TestRunList(t *testing.T) {
	t.Parallel()
	run := func(name, kind string, spent llm.Money, tags ...string) *runEntry {
		return &runEntry{Name: name, Kind: kind, Known: true, Tags: tags, Outline: runfile.Outline{Spent: spent}}
	}
	all := []*runEntry{run("b", "secrets", 3, "prompt=terse"), run("a", "task", 1), run("c", "secrets", 2)}
	for query, want := range map[string]string{
		"": "b a c", "sort=run": "a b c", "sort=run&desc=1": "c b a", "sort=cost": "a c b", "q=kind:secrets": "b c", "q=tag:prompt%3Dterse": "b", "q=kind:secrets&sort=cost": "c b", "sort=nothing": "b a c",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		page, _, _, _ := runFilter{newListFilter(q)}.Page(all)
		var names []string
		for _, e := range page {
			names = append(names, e.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	folder := t.TempDir()
	for _, name := range []string{"a.parley", "b.parley", "c.parley"} {
		record(t, filepath.Join(folder, name))
	}
	s := serve(t, folder)
	if _, body, _ := s.get("/compare?run=a.parley&run=b.parley"); !strings.Contains(body, "There is nothing to compare yet") || strings.Contains(body, "Tick two") {
		t.Errorf("two runs: %s", body)
	}
	for _, query := range []string{"run=a.parley", "run=a.parley&run=b.parley&run=c.parley"} {
		if _, body, _ := s.get("/compare?" + query); !strings.Contains(body, "Tick two runs.") {
			t.Errorf("%s: %s", query, body)
		}
	}
}
