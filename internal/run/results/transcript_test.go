package results

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/worldtest"
)

// transcriptBegin returns the first entries of a run with one episode.
func transcriptBegin(kind string) []journal.Entry {
	return []journal.Entry{
		&journal.Begun{Version: 1, Run: "r", Kind: kind, KindVersion: 1, Plan: json.RawMessage(`{}`)},
		&journal.Opened{}, &journal.Staged{Specs: world.List(world.Spec{Kind: kind})},
	}
}

// askTranscript returns a reply of a model.
func askTranscript(t journal.Turn, seat, text string) *journal.Replied {
	return &journal.Replied{Turn: t, Seat: seat, Request: &llm.Request{Model: "lab/a"}, Response: &llm.Response{Text: text, Finish: llm.FinishStop}}
}

func head(t *testing.T, j journal.Journal) *journal.Head {
	t.Helper()
	h, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestTranscript: strands come one after the other, replies in call order, from the last attempt
// only, and without notes that only repeat a line of their seat. Phases have lines of their own.
func TestTranscript(t *testing.T) {
	t.Parallel()
	at := func(attempt int, strand string, n int) journal.Turn {
		return journal.Turn{Attempt: attempt, Strand: strand, Turn: n}
	}
	second := askTranscript(at(1, "", 0), "right", "second")
	second.Index = 1
	failed := askTranscript(at(1, "", 2), "left", "")
	failed.Response, failed.Error = nil, &llm.Error{Kind: llm.KindRateLimited, Message: "secret words of a server"}
	thinking := askTranscript(at(1, "1.0/", 0), "left", "in strand 0")
	thinking.Response.Thoughts = []llm.Thought{{Text: "hm"}}
	act := &journal.Replied{Turn: at(1, "", 3), Seat: "left", Act: &world.Act{Name: "step"}, Response: &llm.Response{JSON: json.RawMessage(`{"r": 1}`)}}
	j := &journal.Memory{}
	err := j.Append(t.Context(), append(transcriptBegin("duel"),
		askTranscript(at(0, "", 0), "left", "given up"),
		&journal.Turned{Turn: at(1, "", 0), Notes: []world.Note{{Kind: "deal", Data: json.RawMessage(`"ace"`)}}},
		second, askTranscript(at(1, "", 0), "left", "first"),
		&journal.Turned{Turn: at(1, "", 1), Notes: []world.Note{
			{Kind: "message", Seat: "left", Data: json.RawMessage(`{"text":"first","to":"right"}`)}, {Kind: "message", Seat: "left", Data: json.RawMessage(`{"text":"first","n":1}`)},
			{Kind: "vote", Seat: "right", Data: json.RawMessage(`"first"`)}, {Kind: "phase", Data: json.RawMessage(`"round 2"`)}, {Kind: "board", Data: json.RawMessage(`{"at": [1, 2]}`)}}},
		askTranscript(at(1, "1.1/", 0), "right", "in strand 1"), thinking, failed, act)...)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := ReadTranscript(t.Context(), j, head(t, j), world.Kind{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range tr.Lines {
		got = append(got, strings.TrimSpace(strings.Join([]string{l.Turn, string(l.Said), l.Seat, l.Text}, " ")))
	}
	want := []string{
		"0 note  ace", "0 answer left first", "0 answer right second", `1 note left {"text":"…","n":1}`, "1 note right first", "1 phase  round 2", `1 note  {"at":[1,2]}`,
		"1.0/0 thought left hm", "1.0/0 answer left in strand 0", "1.1/0 answer right in strand 1",
		"2 failed left rate limited", `3 act left {"r":1}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if len(tr.Notes) != 6 {
		t.Errorf("%d notes", len(tr.Notes))
	}
}

// marking is a kind whose notes mark a word.
type marking struct{ worldtest.Simple[struct{}] }

func (marking) Mark(n world.Note) (words, mark string) { return "a word", string(n.Data) }

// TestMarks: a mark is on the last reply of its seat with the marked text.
func TestMarks(t *testing.T) {
	t.Parallel()
	tr := &Transcript{}
	for i, e := range []world.TranscriptEntry{
		{Seat: "left", Reply: world.Reply{Text: "a word"}}, {Seat: "left", Reply: world.Reply{Text: " a word\n"}}, {Seat: "right", Reply: world.Reply{Text: "a word"}}, {Seat: "left", Reply: world.Reply{Text: "more"}},
		{Note: &world.Note{Seat: "left", Data: json.RawMessage("slip")}}, {Note: &world.Note{Seat: "nobody", Data: json.RawMessage("none")}}, {Note: &world.Note{Seat: "right"}},
	} {
		tr.Entries, tr.Lines, tr.lines = append(tr.Entries, e), append(tr.Lines, Line{Call: strconv.Itoa(i)}), append(tr.lines, i+1)
	}
	if err := tr.Mark(world.Kind{}); err != nil || len(tr.Marks()) != 0 {
		t.Errorf("%v %v", tr.Marks(), err)
	}
	if err := tr.Mark(world.Define(marking{})); err != nil || !maps.Equal(tr.Marks(), map[string]string{"1": "slip"}) {
		t.Errorf("%v %v", tr.Marks(), err)
	}
}

// TestAccount: a kind without a story, or whose story is empty or fails, is told turn by turn, with the result.
func TestAccount(t *testing.T) {
	t.Parallel()
	tr := &Transcript{Lines: []Line{
		{Turn: "0", Seat: "user", Said: LineAsked, Text: "why?"},
		{Turn: "0", Seat: "left", Agent: "ann", Said: LineThought, Text: "hm"},
		{Turn: "0", Seat: "left", Agent: "ann", Said: LineAnswer, Text: `{"word":"ace"}`, To: "right", Mark: "slip"},
		{Turn: "1.0/0", Seat: "right", Agent: "right", Label: "step", Said: lineAct, Text: "moved"},
		{Turn: "1.1/0", Seat: "right", Said: LineFailed, Text: "timeout"},
		{Turn: "2", Seat: "left", Label: "board", Said: LineNote, Text: `{"a":1,"b":2}`},
		{Turn: "2", Label: "rain", Said: LineNote, Text: "null"},
		{Turn: "2", Label: "phase", Said: LinePhase, Text: "night 1"},
		{Turn: "2", Seat: "left", Label: "role", Said: LineNote, Text: `{"role":"wolf"}`},
		{Turn: "2", Seat: "left", Label: "role", Said: LineNote, Text: "role: plain words"},
		{Turn: "3", Label: "order", Said: LineNote, Text: `["left","right"]`},
		{Turn: "3", Seat: "left", Label: "vote_for", Said: LineNote, Text: `{"vote_for":"right","sure":true}`},
	}}
	played := world.Played{Outcome: world.Outcome{Failed: "no more", Scores: []world.Score{{Name: "points", Seat: "left", Value: 2}}}}
	want := []string{
		"Turn 0", "user: (asks) why?", "left (ann): (thinks) hm", "left (ann) to right: word: ace *slip",
		"Turn 1", "right: does step: moved", "right: failed: timeout",
		"Turn 2", "left: board: a: 1 · b: 2", ": rain",
		"Turn 2 · night 1", "left: role: wolf", "left: role: role: plain words",
		"Turn 3 · night 1", ": order: left, right", "left: vote for: right · sure: true",
		"The end", ": failed: no more", "left: points 2",
	}
	for name, c := range map[string]struct {
		kind world.Kind
		fail bool
	}{"none": {}, "empty": {kind: world.Define(telling{})}, "fails": {world.Define(telling{fail: true}), true}} {
		story, err := tr.Story(c.kind, played)
		if len(story) != 1 || c.fail != (err != nil) {
			t.Fatal(name, len(story), err)
		}
		if got, _ := wordsOf(story); !slices.Equal(got, want) {
			t.Errorf("%s: %q\nwant %q", name, got, want)
		}
	}
}

// wordsOf returns the words of a story, and how many bytes they are.
func wordsOf(story []exhibit.Exhibit) (out []string, size int) {
	for _, f := range story[0].Show.(exhibit.Replay).Frames {
		out = append(out, f.Title)
		for _, l := range f.Lines {
			line := l.Who
			if l.To != "" {
				line += " to " + l.To
			}
			if line += ": " + l.Text; l.Mark != "" {
				line += " *" + l.Mark
			}
			out = append(out, line)
		}
	}
	return out, len(strings.Join(out, ""))
}

// TestAccountIsLimited: whatever was said, an account is not long. It says how many lines it leaves out: the last ones, or the
// first ones of an episode that is being played.
func TestAccountIsLimited(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1<<20)
	many := func(n int, l Line) []Line {
		lines := slices.Repeat([]Line{l}, n)
		for i := range lines {
			lines[i].Turn = TurnName("", i)
		}
		return lines
	}
	for name, c := range map[string]struct {
		lines  []Line
		failed string
		shown  [2]int // lines, of an episode that has ended and of one that has not
	}{
		"long texts":   {lines: many(100, Line{Seat: "left", Said: LineAnswer, Text: long}), shown: [2]int{48, 4}},
		"many texts":   {lines: many(10_000, Line{Seat: "left", Said: LineAnswer, Text: "b"}), shown: [2]int{1904, 190}},
		"marked":       {lines: many(100, Line{Seat: "left", Said: LineAnswer, Text: "b", Mark: long}), shown: [2]int{100, 64}},
		"to many":      {lines: many(100, Line{Seat: "left", Said: LineAnswer, Text: "b", To: long}), shown: [2]int{100, 64}},
		"from many":    {lines: many(100, Line{Seat: long, Said: LineAnswer, Text: "b"}), shown: [2]int{100, 65}},
		"it failed":    {failed: long},
		"little":       {lines: many(3, Line{Seat: "left", Said: LineAnswer, Text: "b"}), shown: [2]int{3, 3}},
		"long, failed": {lines: many(100, Line{Seat: "left", Said: LineAnswer, Text: long}), failed: long, shown: [2]int{48, 4}},
	} {
		for i, playing := range []bool{false, true} {
			tr := &Transcript{Lines: c.lines, Playing: playing}
			story, err := tr.Story(world.Kind{}, world.Played{Outcome: world.Outcome{Failed: c.failed}})
			if err != nil || len(story) != 1 {
				t.Fatal(name, err)
			}
			words, size := wordsOf(story)
			limit := maxStory
			if playing {
				limit = maxPlaying
			}
			if size > limit+maxText+1000 {
				t.Errorf("%s, playing %v: %d bytes", name, playing, size)
			}
			turns := slices.DeleteFunc(slices.Clone(words), func(s string) bool { return !strings.HasPrefix(s, "Turn ") })
			n := len(c.lines) - len(turns)
			says := fmt.Sprintf(": %d more lines are in the transcript.", n)
			if len(turns) != c.shown[i] || slices.Contains(words, says) != (n > 0) {
				t.Errorf("%s, playing %v: %d lines are told, %d are not: %.300q", name, playing, len(turns), n, words)
			}
			if last := fmt.Sprint("Turn ", len(c.lines)-1); len(c.lines) > 0 && slices.Contains(turns, last) != (playing || n == 0) {
				t.Errorf("%s, playing %v: %q", name, playing, turns)
			}
		}
	}
}

// telling is a kind whose story is given, or fails.
type telling struct {
	worldtest.Simple[struct{}]
	fail  bool
	story []exhibit.Exhibit
}

func (k telling) Story(world.Played, []world.TranscriptEntry) []exhibit.Exhibit {
	if k.fail {
		panic("no story")
	}
	return k.story
}

// TestOwnStoryIsLimited: the story of a kind is not longer than an account, says what is left out in the same way, and tells
// how the episode ended. Of an episode that is being played it has the last lines. Pictures stay.
func TestOwnStoryIsLimited(t *testing.T) {
	t.Parallel()
	many := func(n int, svg, text string) (frames []exhibit.Frame) {
		for i := range n {
			frames = append(frames, exhibit.Frame{Title: fmt.Sprint("Part ", i), SVG: svg, Lines: []exhibit.FrameLine{{Who: "left", Text: text}, {Text: "b"}}})
		}
		return frames
	}
	for name, c := range map[string]struct {
		frames []exhibit.Frame
		shown  [2]int // lines, of an episode that has ended and of one that has not
		parts  int    // frames of an episode that has ended
	}{
		"little":      {many(3, "", "a"), [2]int{6, 6}, 3},
		"one line":    {many(1, "", strings.Repeat("a", 1<<20)), [2]int{0, 1}, 0},
		"many frames": {many(10_000, "", "a"), [2]int{1274, 1269}, 637},
		"long texts":  {many(1000, "", strings.Repeat("a", 10_000)), [2]int{38, 39}, 19},
		"pictures":    {many(1000, "<svg/>", strings.Repeat("a", 10_000)), [2]int{38, 39}, 1000},
		"no lines":    {make([]exhibit.Frame, 10_000), [2]int{}, 0},
	} {
		for i, playing := range []bool{false, true} {
			all := 0
			for j := range c.frames {
				all += max(1, len(c.frames[j].Lines))
			}
			kind := world.Define(telling{story: []exhibit.Exhibit{{Name: "x", Show: exhibit.Replay{Frames: c.frames}}}, Simple: worldtest.Simple[struct{}]{
				Kind: world.About{Name: "telling", Version: 1, Doc: "Tells.", Example: "kind: telling\n"}, Sits: []string{"left"},
			}})
			story, err := (&Transcript{Playing: playing}).Story(kind, world.Played{})
			if err != nil || len(story) != 1 {
				t.Fatal(name, err)
			}
			words, size := wordsOf(story)
			lines, parts := 0, 0
			for _, f := range story[0].Show.(exhibit.Replay).Frames {
				if strings.HasPrefix(f.Title, "Part ") {
					lines, parts = lines+len(f.Lines), parts+1
				}
			}
			if size > maxStory || lines != c.shown[i] || i == 0 && parts != c.parts {
				t.Errorf("%s, playing %v: %d bytes, %d lines in %d frames: %.300s", name, playing, size, lines, parts, strings.Join(words, "; "))
			}
			if says := ": " + leftOut(all-lines, "line"); slices.Contains(words, says) != (lines < all) && name != "no lines" {
				t.Errorf("%s, playing %v: %s %.300s", name, playing, says, strings.Join(words, "; "))
			}
			if first, last := "Part 0", fmt.Sprint("Part ", len(c.frames)-1); parts > 1 && (!slices.Contains(words, last) || !playing && !slices.Contains(words, first)) {
				t.Errorf("%s, playing %v: neither %s nor %s", name, playing, first, last)
			}
		}
	}
}

// TestOwnStoryTextsAreLimited: so are texts and tables.
func TestOwnStoryTextsAreLimited(t *testing.T) {
	t.Parallel()
	text := exhibit.Text{Body: strings.Repeat("a line\n", 100_000)}
	grid := exhibit.Grid{Columns: []string{"x"}, Rows: slices.Repeat([][]any{{strings.Repeat("b", 1000), 3}}, 1000)}
	b := storyLimit{left: maxStory}
	got := b.apply([]exhibit.Exhibit{{Show: grid, Caption: "Rows."}})
	if rows := len(got[0].Show.(exhibit.Grid).Rows); rows != 181 || got[0].Caption != "Rows. 819 rows are left out." || len(grid.Rows) != 1000 {
		t.Error(rows, got[0].Caption)
	}
	b = storyLimit{left: maxStory}
	got = b.apply([]exhibit.Exhibit{{Show: text}, {Show: exhibit.Text{Body: "one\n"}}})
	if body := got[0].Show.(exhibit.Text).Body; len(body) > maxStory+100 || !strings.HasSuffix(body, "line\n\n71429 lines are left out.") {
		t.Errorf("%d: %q", len(body), body[len(body)-60:])
	}
	if body := got[1].Show.(exhibit.Text).Body; body != "\n1 line is left out." {
		t.Errorf("%q", body)
	}
	for body, want := range map[string]string{
		"one\n" + strings.Repeat("é", maxStory) + "\ntwo\nthree\n": "one\n" + strings.Repeat("é", maxStory/2-2) + " …\n\n2 lines are left out.",
		strings.Repeat("é", maxStory):                              strings.Repeat("é", maxStory/2) + " …\n",
		"a" + strings.Repeat("é", maxStory):                        "a" + strings.Repeat("é", maxStory/2-1) + " …\n", // half a letter is not kept
	} {
		b = storyLimit{left: maxStory}
		if got := b.text(body); got != want {
			t.Errorf("%d bytes, want %d: …%s", len(got), len(want), got[max(0, len(got)-60):])
		}
	}
}
