package view

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

// TestTimelineKeepsCount: however long it lasts, there are few parts and nothing is lost.
func TestTimelineKeepsCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var line Timeline
		var calls, tokens, failures int
		var cost llm.Money
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			at := time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "at"))
			failed := rapid.Bool().Draw(t, "failed")
			line.add(at, llm.Usage{Input: 2, Output: 1}, 5, failed)
			calls, tokens, cost, failures = calls+1, tokens+3, cost+5, failures+count(failed)
			if int(at/line.Width) >= len(line.Parts) || line.Parts[at/line.Width].Calls == 0 {
				t.Fatalf("%v is not where it belongs: %d parts of %v", at, len(line.Parts), line.Width)
			}
		}
		var all TimelinePart
		for _, p := range line.Parts {
			all.plus(p)
		}
		if all != (TimelinePart{calls, failures, tokens, cost}) || len(line.Parts) > timelineParts {
			t.Fatalf("%+v in %d parts, want %d calls", all, len(line.Parts), calls)
		}
	})
}

// TestSittings leaves out the time between sittings, also after one that was cut off.
func TestSittings(t *testing.T) {
	t.Parallel()
	r := fold(t, append(begin(1),
		ask(turn(0, 0), "left", 2, "a"), &journal.Closed{At: clockTime(3)},
		&journal.Opened{At: clockTime(5000)}, ask(turn(0, 1), "left", 5001, "b"),
		&journal.Opened{At: clockTime(90000)}, ask(turn(0, 2), "left", 90004, "c"))...)
	if r.Sittings != 3 || r.Played != 8*time.Second {
		t.Errorf("%d sittings, %v", r.Sittings, r.Played)
	}
	if n := len(r.Timeline.Parts); time.Duration(n)*r.Timeline.Width > 10*time.Second {
		t.Errorf("%d parts of %v", n, r.Timeline.Width)
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	r := fold(t, append(begin(1),
		&journal.Batched{At: clockTime(1), Step: journal.BatchIntended, Key: "k1", Model: "lab/a", Lines: []string{"x", "y"}, Worst: 9},
		&journal.Batched{At: clockTime(2), Step: journal.BatchIntended, Key: "k2", Model: "lab/b"},
		&journal.Batched{At: clockTime(61), Step: journal.BatchClosed, Key: "k1", Why: "done"})...)
	if len(r.Batches) != 2 || r.Batches[0].Lines != 2 || r.Batches[0].Took != time.Minute || r.Batches[0].Closed != "done" || r.Batches[1].Closed != "" {
		t.Errorf("%+v", r.Batches)
	}
}

// TestTranscript reads strands one after the other, replies in call order, the last
// attempt only, and no note that only repeats what was said.
func TestTranscript(t *testing.T) {
	t.Parallel()
	at := func(attempt int, strand string, n int) journal.Turn {
		return journal.Turn{Attempt: attempt, Strand: strand, Turn: n}
	}
	second := ask(at(1, "", 0), "right", 1, "second")
	second.Index = 1
	failed := ask(at(1, "", 2), "left", 1, "")
	failed.Response, failed.Error = nil, &llm.Error{Kind: llm.KindRateLimited, Message: "secret words of a server"}
	thinking := ask(at(1, "1.0/", 0), "left", 1, "in strand 0")
	thinking.Response.Thoughts = []llm.Thought{{Text: "hm"}}
	act := &journal.Replied{Turn: at(1, "", 3), Seat: "left", Act: &world.Act{Name: "step"}, Response: &llm.Response{JSON: json.RawMessage(`{"r": 1}`)}}
	j := &journal.Memory{}
	err := j.Append(t.Context(), append(begin(1),
		ask(at(0, "", 0), "left", 1, "given up"),
		&journal.Turned{Turn: at(1, "", 0), Notes: []world.Note{{Kind: "deal", Data: json.RawMessage(`"ace"`)}}},
		second, ask(at(1, "", 0), "left", 1, "first"),
		&journal.Turned{Turn: at(1, "", 1), Notes: []world.Note{{Kind: "message", Seat: "left", Data: json.RawMessage(`{"text":"first","n":1}`)}, {Kind: "board", Data: json.RawMessage(`{"at": [1, 2]}`)}}},
		ask(at(1, "1.1/", 0), "right", 1, "in strand 1"), thinking, failed, act)...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := ReadTranscript(t.Context(), j, r, 0)
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

// marking is a kind whose notes are marks of a word.
type marking struct{ worldtest.Simple[struct{}] }

func (marking) Mark(n world.Note) (words, mark string) { return "a word", string(n.Data) }

// TestMarks: what a note says about words stands beside the last reply of its seat that said them.
func TestMarks(t *testing.T) {
	t.Parallel()
	kind := world.Define(marking{})
	reply := func(seat, text string) world.TranscriptEntry {
		return world.TranscriptEntry{Seat: seat, Reply: world.Reply{Text: text}}
	}
	note := func(seat, mark string) world.TranscriptEntry {
		return world.TranscriptEntry{Note: &world.Note{Seat: seat, Data: json.RawMessage(mark)}}
	}
	told := []world.TranscriptEntry{reply("left", "a word"), reply("left", " a word\n"), reply("right", "a word"), reply("left", "more"), note("left", "slip"), note("nobody", "none"), note("right", "")}
	if got, _ := Marks(kind, told); len(got) != 1 || got[1] != "slip" {
		t.Errorf("%v", got)
	}
	if got, _ := Marks(world.Kind{}, told); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
