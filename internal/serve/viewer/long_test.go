package viewer

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/internal/label"
	"parley/internal/store/sqlite"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// recordLong writes a run whose only episode has so many calls, with a note after each.
func recordLong(t *testing.T, path string, calls int) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Create)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	entries := []journal.Entry{
		&journal.Begun{Version: journal.Version, Run: path, Kind: "duel", KindVersion: 1, At: at, Plan: []byte(`{}`), Agents: []world.Agent{{Name: "a", Model: "lab/a"}}},
		&journal.Opened{At: at}, &journal.Staged{Specs: world.List(world.Spec{Kind: "duel", Lineup: map[string]string{"one": "a"}})},
	}
	for i := range calls {
		said := func(n int) string { return fmt.Sprintf("word %d", n) }
		turned := &journal.Turned{Turn: journal.Turn{Turn: i}, Calls: 1}
		if i > 0 { // a note that repeats what was said, and says to whom
			data, err := json.Marshal(map[string]string{"text": said(i - 1), "to": "two"})
			if err != nil {
				t.Fatal(err)
			}
			turned.Notes = []world.Note{{Kind: "said", Seat: "one", Data: data}}
		}
		entries = append(entries, turned, &journal.Replied{
			Turn: turned.Turn, Seat: "one", Label: "say", Agent: "a", At: at.Add(time.Duration(i) * time.Second),
			Request: &llm.Request{Model: "lab/a", Messages: []llm.Message{llm.User(fmt.Sprintf("question %d", i))}}, Response: &llm.Response{Text: said(i), Finish: llm.FinishStop},
		})
	}
	entries = append(entries, &journal.Ended{At: at.Add(time.Hour), Outcome: world.Outcome{Scores: []world.Score{{Name: "points", Value: 1}}}}, &journal.Closed{At: at.Add(time.Hour), State: journal.Complete})
	if err := store.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLongEpisode checks that the first page of a long episode has the same lines as if all of it were read, and says
// that there is more.
func TestLongEpisode(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	recordLong(t, filepath.Join(folder, "long.parley"), 3*linesPerPage)
	recordLong(t, filepath.Join(folder, "short.parley"), linesPerPage)
	s := serve(t, folder)
	lines := func(path string) (said, body string) {
		_, body, _ = s.get(path)
		_, said, _ = strings.Cut(body, `<div class="lines">`)
		said, _, _ = strings.Cut(said, `<p class="pages">`)
		return said, body
	}
	const long = "/run/long.parley/episodes/0"
	first, page := lines(long)
	whole, all := lines(long + "?story=1")
	if first != whole || strings.Count(first, `class="said answer`) != linesPerPage || strings.Count(first, "private: to two") != linesPerPage {
		t.Errorf("%d lines, %d of the whole:\n%s", strings.Count(first, `class="said`), strings.Count(whole, `class="said`), first)
	}
	if !strings.Contains(page, `data-load="`+long+`?story=1"`) || !strings.Contains(page, "lines 1 to 100 of more") || !strings.Contains(page, long+"?from=100") {
		t.Errorf("the first page does not say that there is more: %s", page)
	}
	if strings.Contains(all, "data-load") || !strings.Contains(all, "lines 1 to 100 of 300") {
		t.Errorf("the whole: %s", all)
	}
	if _, page := lines("/run/short.parley/episodes/0"); strings.Contains(page, "data-load") || !strings.Contains(page, "lines 1 to 100 of 100") {
		t.Errorf("a short episode: %s", page)
	}
}

// TestManyLabels checks that a page lists some labels and links to the others.
func TestManyLabels(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.parley")
	recordLong(t, file, 1)
	const n = 2*maxLabels + 7
	for i := range n {
		if err := label.Add(file, label.Label{Run: file, Tag: fmt.Sprintf("tag-%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, file)
	given, older := regexp.MustCompile(`<p class="given"><span class="label[^>]*>(tag-\d+)<`), regexp.MustCompile(`<a href="([^"#]*)#labels">Older labels`)
	seen := map[string]bool{}
	for path := "/run/a.parley/episodes/0"; path != ""; {
		_, body, _ := s.get(path)
		_, part, _ := strings.Cut(body, `<div id="labels"`)
		part, _, _ = strings.Cut(part, "</div>")
		for _, m := range given.FindAllStringSubmatch(part, -1) {
			seen[m[1]] = true
		}
		if c := strings.Count(part, `class="given"`); c > maxLabels || c == 0 {
			t.Fatalf("%s lists %d labels", path, c)
		}
		if path = ""; older.MatchString(part) {
			path = strings.ReplaceAll(older.FindStringSubmatch(part)[1], "&amp;", "&")
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d labels", len(seen), n)
	}
}
