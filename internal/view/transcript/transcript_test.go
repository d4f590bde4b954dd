package transcript

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

// begin returns the first entries of a run with one episode.
func begin(kind string) []journal.Entry {
	return []journal.Entry{
		&journal.Begun{Version: 1, Run: "r", Kind: kind, KindVersion: 1, Plan: json.RawMessage(`{}`)},
		&journal.Opened{}, &journal.Staged{Specs: world.List(world.Spec{Kind: kind})},
	}
}

// ask returns a reply of a model.
func ask(t journal.Turn, seat, text string) *journal.Replied {
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
// only, and without notes that repeat a line.
func TestTranscript(t *testing.T) {
	t.Parallel()
	at := func(attempt int, strand string, n int) journal.Turn {
		return journal.Turn{Attempt: attempt, Strand: strand, Turn: n}
	}
	second := ask(at(1, "", 0), "right", "second")
	second.Index = 1
	failed := ask(at(1, "", 2), "left", "")
	failed.Response, failed.Error = nil, &llm.Error{Kind: llm.KindRateLimited, Message: "secret words of a server"}
	thinking := ask(at(1, "1.0/", 0), "left", "in strand 0")
	thinking.Response.Thoughts = []llm.Thought{{Text: "hm"}}
	act := &journal.Replied{Turn: at(1, "", 3), Seat: "left", Act: &world.Act{Name: "step"}, Response: &llm.Response{JSON: json.RawMessage(`{"r": 1}`)}}
	j := &journal.Memory{}
	err := j.Append(t.Context(), append(begin("duel"),
		ask(at(0, "", 0), "left", "given up"),
		&journal.Turned{Turn: at(1, "", 0), Notes: []world.Note{{Kind: "deal", Data: json.RawMessage(`"ace"`)}}},
		second, ask(at(1, "", 0), "left", "first"),
		&journal.Turned{Turn: at(1, "", 1), Notes: []world.Note{{Kind: "message", Seat: "left", Data: json.RawMessage(`{"text":"first","n":1}`)}, {Kind: "board", Data: json.RawMessage(`{"at": [1, 2]}`)}}},
		ask(at(1, "1.1/", 0), "right", "in strand 1"), thinking, failed, act)...)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := Read(t.Context(), j, head(t, j), world.Kind{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range tr.Lines {
		got = append(got, strings.TrimSpace(strings.Join([]string{l.Turn, string(l.Said), l.Seat, l.Text}, " ")))
	}
	want := []string{
		"0 note  ace", "0 answer left first", "0 answer right second", `1 note  {"at":[1,2]}`,
		"1.0/0 thought left hm", "1.0/0 answer left in strand 0", "1.1/0 answer right in strand 1",
		"2 failed left rate limited", `3 act left {"r":1}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if len(tr.Notes) != 3 {
		t.Errorf("%d notes", len(tr.Notes))
	}
}

// marking is a kind whose notes mark a word.
type marking struct{ worldtest.Simple[struct{}] }

func (marking) Mark(n world.Note) (words, mark string) { return "a word", string(n.Data) }

// TestMarks: a mark is on the last reply of its seat with the marked text.
func TestMarks(t *testing.T) {
	t.Parallel()
	kind := world.Define(marking{})
	reply := func(seat, text string) world.TranscriptEntry {
		return world.TranscriptEntry{Seat: seat, Reply: world.Reply{Text: text}}
	}
	note := func(seat, mark string) world.TranscriptEntry {
		return world.TranscriptEntry{Note: &world.Note{Seat: seat, Data: json.RawMessage(mark)}}
	}
	entries := []world.TranscriptEntry{reply("left", "a word"), reply("left", " a word\n"), reply("right", "a word"), reply("left", "more"), note("left", "slip"), note("nobody", "none"), note("right", "")}
	if got, _ := Marks(kind, entries); len(got) != 1 || got[1] != "slip" {
		t.Errorf("%v", got)
	}
	if got, _ := Marks(world.Kind{}, entries); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// TestAccount: a kind without a story, or whose story is empty or fails, is told turn by turn. Only so many lines are told, and
// after them those that are marked.
func TestAccount(t *testing.T) {
	t.Parallel()
	const lines = maxAccountLines + 10
	tr := &Transcript{}
	for i := range lines {
		tr.Lines = append(tr.Lines, Line{Turn: TurnName("", i/2), Seat: "left", Said: SaidAnswer, Text: strings.Repeat("a", maxAccount+1)})
	}
	tr.Lines[lines-1].Mark = "slip"
	played := world.Played{Outcome: world.Outcome{Scores: []world.Score{{Name: "points", Value: 2}}}}
	for name, c := range map[string]struct {
		kind world.Kind
		fail bool
	}{"none": {}, "empty": {kind: world.Define(telling{})}, "fails": {world.Define(telling{fail: true}), true}} {
		story, err := tr.Story(c.kind, played)
		if len(story) != 1 || c.fail != (err != nil) {
			t.Fatal(name, len(story), err)
		}
		frames := story[0].Show.(world.Replay).Frames
		var got []string
		for _, f := range frames[len(frames)-4:] {
			last := f.Lines[len(f.Lines)-1]
			got = append(got, f.Title+": "+last.Mark+world.Shorten(last.Text, 40))
		}
		want := []string{"Turn 499: " + world.Shorten(strings.Repeat("a", 50), 40), "Turn 504: slip" + world.Shorten(strings.Repeat("a", 50), 40), "Later: 9 more lines are in the transcript.", "The end: points 2"}
		if !slices.Equal(got, want) || len(frames[0].Lines[0].Text) > maxAccount+10 {
			t.Errorf("%s: %q\nwant %q", name, got, want)
		}
	}
}

// telling is a kind whose story is empty, or fails.
type telling struct {
	worldtest.Simple[struct{}]
	fail bool
}

func (k telling) Story(world.Played, []world.TranscriptEntry) []world.Exhibit {
	if k.fail {
		panic("no story")
	}
	return nil
}
