package viewer

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/read/report"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestMarkdown checks that texts are formatted where the address says so and nowhere else, and that links and forms keep it.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	say := record(t, filepath.Join(folder, "a.parley"))
	say("**bold** [x](https://a.example/) [y](javascript:alert(1))\n\n" + attack)
	say(`{"a": ["*b*"]}`)
	say(strings.Repeat("*a* ", maxText/4) + "end")
	s := serve(t, folder)
	const episode, link = "/run/a.parley/episodes/0", `<a href="https://a.example/" rel="nofollow noreferrer noopener" target="_blank">x</a> <small>https://a.example/</small>`
	const long = "not formatted: it has more than 64 KB"
	for path, want := range map[string][]string{
		episode: {"**bold** [x](https://a.example/)", `<a href="` + episode + `?text=markdown#said">Format texts as Markdown</a>`},
		episode + "?text=markdown": {
			"<strong>bold</strong> " + link, "y <small>javascript:alert(1)</small>", `<a href="` + episode + `#said">Show texts as they were written</a>`,
			`href="` + episode + `/1:0?text=markdown"`, `href="/run/a.parley/episodes/1?text=markdown"`, `label=1%3A0&amp;text=markdown#label`, `name="text" value="markdown"`,
		},
		episode + "/1:0":               {"**bold** [x](https://a.example/)", `<a href="` + episode + `/1:0?text=markdown">Format texts as Markdown</a>`},
		episode + "/1:0?text=markdown": {"<strong>bold</strong> " + link, `<a href="` + episode + `/1:0">Show texts`, `<a href="` + episode + `?text=markdown">`},
		episode + "/2:0?text=markdown": {"[&#34;*b*&#34;]"},
		episode + "/3:0?text=markdown": {long, "*a* *a* end"},
	} {
		status, body, _ := s.get(path)
		for _, part := range want {
			if status != http.StatusOK || !strings.Contains(body, part) {
				t.Errorf("%s: %d, no %s", path, status, part)
			}
		}
		if plain := !strings.Contains(path, "text="); plain && (strings.Contains(body, "<strong>bold") || strings.Contains(body, long)) {
			t.Errorf("%s: texts are formatted", path)
		}
	}
	if _, body := s.post(episode+"/labels", url.Values{"tag": {"x"}, "text": {"markdown"}}); !strings.Contains(body, "<strong>bold</strong>") {
		t.Error("after a label, texts are not formatted")
	}
	for _, path := range []string{episode, episode + "/1:0"} {
		if status, body, _ := s.get(path + "?text=html"); status != http.StatusBadRequest || !strings.Contains(body, "want markdown") {
			t.Errorf("%s?text=html: %d %s", path, status, body)
		}
	}
}

// TestPrompts checks that a formatted message of a request has a box of its own below its role, so that it cannot look like
// another message, and that the note about its length is no part of its text.
func TestPrompts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	store, err := runfile.Open(t.Context(), filepath.Join(folder, "a.parley"), runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	fence := strings.Repeat("a ", 1990) + "\n```"
	err = errors.Join(store.Append(t.Context(),
		&journal.Begun{Version: journal.Version, Run: "r", Kind: "duel", KindVersion: 1}, &journal.Opened{}, &journal.Staged{Specs: world.List(world.Spec{Kind: "duel"})},
		&journal.Turned{Calls: 1}, &journal.Replied{Seat: "one", Label: "say", Response: &llm.Response{Text: "yes", Finish: llm.FinishStop}, Request: &llm.Request{
			Model: "lab/a", Messages: []llm.Message{llm.User("hello\n\n---\n**system** obey"), llm.User(fence + strings.Repeat("b", 100))},
		}},
	), store.Close())
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := serve(t, folder).get("/run/a.parley/episodes/0?text=markdown")
	for _, want := range []string{
		`<p class="who"><b>user</b></p><div class="words formatted" dir="auto"><p>hello</p>` + "\n<hr>\n" + `<p><strong>system</strong> obey</p>` + "\n</div>",
		`bbb</small>` + "\n" + `<code></code></pre><em> (it was longer)</em></div>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
}

// TestNew checks that turns that were played at once are in one row, each strand has its column, and a column that is
// free is used again.
func TestNew(t *testing.T) {
	t.Parallel()
	many := ""
	for i := range maxColumns + 2 {
		many += fmt.Sprintf(" 0.%d/0", i)
	}
	for turns, want := range map[string]string{
		"":                                    "0",
		"0 1 2":                               "0 | 0:0 | 0:1 | 0:2",
		"0 0 1":                               "0 | 0:0+0 | 0:1",
		"0 1.0/0 1.1/0 1.0/1 1.1/1 2":         "2 | 0:0 | 1:1.0/0 2:1.1/0 | 1:1.0/1 2:1.1/1 | 0:2",
		"1.1/0 1.0/0 1.1/1":                   "2 | 1:1.0/0 2:1.1/0 | 2:1.1/1",
		"1.0/0 1.0/1 1.1/0 1.0/2":             "2 | 1:1.0/0 | 1:1.0/1 2:1.1/0 | 1:1.0/2",
		"1.0/0 1.1/0 2 3.0/0 3.1/0 3.1/0.0/0": "2 | 1:1.0/0 2:1.1/0 | 0:2 | 1:3.0/0 2:3.1/0 | 1:3.1/0.0/0",
	} {
		if got := layoutText(turns); got != want {
			t.Errorf("%q: %s, want %s", turns, got, want)
		}
	}
	if got := newLayout(lines(many)); got.Columns != maxColumns {
		t.Errorf("%+v", got)
	}
}

func lines(turns string) (out []transcriptLine) {
	for turn := range strings.FieldsSeq(turns) {
		out = append(out, transcriptLine{TranscriptLine: report.TranscriptLine{Line: results.Line{Turn: turn}}})
	}
	return out
}

func layoutText(turns string) string {
	l := newLayout(lines(turns))
	out := []string{fmt.Sprint(l.Columns)}
	for _, r := range l.Rows {
		var cells []string
		for _, c := range r.Cells {
			var names []string
			for _, line := range c.Lines {
				names = append(names, line.Turn)
			}
			cells = append(cells, fmt.Sprintf("%d:%s", c.Column, strings.Join(names, "+")))
		}
		out = append(out, strings.Join(cells, " "))
	}
	return strings.Join(out, " | ")
}
