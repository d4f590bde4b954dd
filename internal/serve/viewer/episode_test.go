package viewer

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/internal/run/label"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// recordLong writes a run whose only episode has so many calls, with a note after each, and has ended.
func recordLong(t *testing.T, path string, calls int) {
	t.Helper()
	at := recordPlaying(t, path, calls)
	store, err := runfile.Open(t.Context(), path, runfile.Either)
	if err != nil {
		t.Fatal(err)
	}
	ended := []journal.Entry{&journal.Ended{At: at.Add(time.Hour), Outcome: world.Outcome{Scores: []world.Score{{Name: "points", Value: 1}}}}, &journal.Closed{At: at.Add(time.Hour), State: journal.Complete}}
	if err := errors.Join(store.Append(t.Context(), ended...), store.Close()); err != nil {
		t.Fatal(err)
	}
}

// recordPlaying writes a run whose only episode has not ended.
func recordPlaying(t *testing.T, path string, calls int) (at time.Time) {
	t.Helper()
	store, err := runfile.Open(t.Context(), path, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	at = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
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
	if err := errors.Join(store.Append(t.Context(), entries...), store.Close()); err != nil {
		t.Fatal(err)
	}
	return at
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
	if !strings.Contains(page, `data-load="`+long+`?story=1"`) || !strings.Contains(page, "lines 1 to 50 of more") || !strings.Contains(page, long+"?from=50.") {
		t.Errorf("the first page does not say that there is more: %s", page)
	}
	from := regexp.MustCompile(`\?from=50\.\d+`).FindString(page)
	if _, second := lines(long + from); !strings.Contains(second, `data-load="`+long+`?story=1&amp;`+from[1:]+`"`) {
		t.Errorf("the second part, %s, does not load the story: %s", from, second)
	}
	if strings.Contains(all, "data-load") || !strings.Contains(all, "lines 1 to 50 of 150") {
		t.Errorf("the whole: %s", all)
	}
	_, short := lines("/run/short.parley/episodes/0")
	if strings.Contains(short, "data-load") || !strings.Contains(short, "lines 1 to 50 of 50") {
		t.Errorf("a short episode: %s", short)
	}
	const story = "<h3>Turn by turn</h3>" // of a kind that has none of its own
	if strings.Contains(page, story) || !strings.Contains(all, story) || !strings.Contains(short, story) || !strings.Contains(short, "<h4>The end</h4>") {
		t.Errorf("stories: %v on the first page, %v of the whole, %v of a short episode", strings.Contains(page, story), strings.Contains(all, story), strings.Contains(short, story))
	}
}

// TestStoryOfWindows: every part of an episode has its story, and in exported pages only the first. Of an episode that is being
// played, it tells the last lines.
func TestStoryOfWindows(t *testing.T) {
	t.Parallel()
	live, ended := filepath.Join(t.TempDir(), "playing.parley"), filepath.Join(t.TempDir(), "ended.parley")
	recordPlaying(t, live, 5*linesPerPage)
	recordLong(t, ended, linesPerPage+1)
	const story, first = "<h3>Turn by turn</h3>", "is on the first page"
	s := serve(t, live)
	for _, from := range []string{"", "?from=0", "?from=50", "?from=end"} {
		_, body, _ := s.get("/run/playing.parley/episodes/0" + from)
		if strings.Count(body, story) != 1 || strings.Contains(body, first) || strings.Contains(body, "data-load") {
			t.Errorf("%s: no story:\n%s", from, body)
		}
		if strings.Contains(body, "<h4>Turn 0</h4>") || !strings.Contains(body, `data-turn="249"><h4>Turn 249</h4>`) || !strings.Contains(body, "<h4>Earlier</h4>") {
			t.Errorf("%s does not tell the last lines: %s", from, body)
		}
	}
	if _, body, _ := serve(t, ended).get("/run/ended.parley/episodes/0?from=50.90"); strings.Count(body, story) != 1 {
		t.Errorf("the second part of an episode does not tell its story: %s", body)
	}
	v, err := New(Config{Paths: []string{ended}, KindOf: func(*journal.Begun) world.Kind { return world.Kind{} }})
	if err != nil {
		t.Fatal(err)
	}
	dir, stories, links := filepath.Join(t.TempDir(), "site"), 0, 0
	if _, err := v.Export(t.Context(), dir, 1); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		stories, links = stories+strings.Count(string(b), story), links+strings.Count(string(b), first)
		return err
	})
	if err != nil || stories != 2 || links != 1 {
		t.Errorf("%d stories, want one on the first page and one in the report; %d pages without lead to it; %v", stories, links, err)
	}
}

// TestWindows walks through a long episode by its links, on and back, and finds every line once and in order: turns with
// several calls whose answers came in another order, thoughts, and notes between them.
func TestWindows(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.parley")
	store, err := runfile.Open(t.Context(), file, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	entries := []journal.Entry{&journal.Begun{Version: journal.Version, Run: "r", Kind: "duel", KindVersion: 1}, &journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duel"}, 2)}}
	var want []string
	say := func() string {
		want = append(want, fmt.Sprintf("word-%d.", len(want)))
		return want[len(want)-1]
	}
	for i := range 4 * linesPerPage {
		turn, other := journal.Turn{Turn: i}, journal.Turn{Episode: 1, Turn: i}
		calls := i % 4
		turned := &journal.Turned{Turn: turn, Calls: calls}
		for range i % 3 {
			turned.Notes = append(turned.Notes, world.Note{Kind: "note", Data: []byte(strconv.Quote(say()))})
		}
		var replies []journal.Entry
		for k := range calls {
			r := &journal.Replied{Turn: turn, Seat: "one", Label: "say", Request: &llm.Request{Model: "lab/a", Messages: []llm.Message{llm.User("?")}}, Response: &llm.Response{}}
			if r.Index = k; i%2 == 0 {
				r.Response.Thoughts = []llm.Thought{{Text: say()}}
			}
			r.Response.Text = say()
			replies = append(replies, r)
		}
		slices.Reverse(replies)
		entries = append(append(entries, turned, &journal.Turned{Turn: other}), replies...)
	}
	entries = append(entries, &journal.Ended{}, &journal.Ended{Episode: 1}, &journal.Closed{State: journal.Complete})
	if err := errors.Join(store.Append(t.Context(), entries...), store.Close()); err != nil {
		t.Fatal(err)
	}
	s := serve(t, file)
	const first = "/run/a.parley/episodes/0"
	words, link := regexp.MustCompile(`word-\d+\.`), func(body, rel string) string {
		m := regexp.MustCompile(`<a href="([^"]*)" rel="` + rel + `">(Later|Earlier) lines`).FindStringSubmatch(body)
		if m == nil {
			return ""
		}
		return html.UnescapeString(m[1])
	}
	var got, back []string
	last, parts := "", 0
	for at := first; at != "" && len(got) <= len(want); at = link(last, "next") {
		_, last, _ = s.get(at)
		got = append(got, words.FindAllString(last, -1)...)
		if strings.Contains(last, "of more") {
			parts++
		}
	}
	if !slices.Equal(got, want) || parts < len(want)/linesPerPage-1 {
		t.Errorf("%d lines, %d pages are parts; want %d lines", len(got), parts, len(want))
	}
	for body := last; body != "" && len(back) <= len(want); {
		back = append(words.FindAllString(body, -1), back...)
		at := link(body, "prev")
		if body = ""; at != "" {
			_, body, _ = s.get(at)
		}
	}
	if !slices.Equal(back, want) {
		t.Errorf("back: %d lines, want %d", len(back), len(want))
	}
	for from, status := range map[string]int{"7.1": 200, "9.99999999999": 200, "9.-1": 200, "0.9223372036854775807": 200, "1.-9223372036854775808": 400, "1.x": 400, "-3": 400, "9223372036854775807": 400, "end": 200} {
		if got, body, _ := s.get(first + "?from=" + from); got != status {
			t.Errorf("from=%s: %d, want %d: %s", from, got, status, body)
		}
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

// TestNotesAndPhases checks that the page of an episode has its phases, and the notes of a world as words, each once. Only long
// data is folded.
func TestNotesAndPhases(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	store, err := runfile.Open(t.Context(), filepath.Join(folder, "a.parley"), runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	note := func(kind, data string) world.Note { return world.Note{Kind: kind, Seat: "ann", Data: []byte(data)} }
	err = store.Append(t.Context(), &journal.Begun{Version: journal.Version, Run: "r"}, &journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{}, 1)},
		&journal.Turned{Notes: []world.Note{
			note("role", `{"role":"wolf"}`), note("phase", `"night 1 <b>"`), note("bite", `{"hit":true,"of":["bob"]}`), note("board", "["+strings.Repeat("1,", 50)+"1]"),
		}}, &journal.Ended{})
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := serve(t, folder).get("/run/a.parley/episodes/0?story=1")
	for _, want := range []string{"role: wolf", ">wolf</div>", `<h3 class="phase" id="phase-1" data-turn="0"><bdi>night 1 &lt;b&gt;</bdi>`, "<h4>Turn 0 · night 1 &lt;b&gt;</h4>", "hit: true · of: bob</div>", "<summary>data</summary><div class=\"words\" dir=\"auto\">[1,1"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if strings.Contains(body, "role: role") || strings.Count(body, "<summary>data") != 1 {
		t.Errorf("a note is doubled, or folded: %s", body)
	}
}
