package results_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/worldtest"
)

// TestTook: the times of an episode are those of its last attempt, in time played.
func TestTook(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	reply := func(attempt, turn int, seconds float64, act *world.Act, latency, waited float64) *journal.Replied {
		r := &journal.Replied{
			Turn: journal.Turn{Attempt: attempt, Turn: turn}, Seat: "a", Label: "x", Act: act, At: at(seconds),
			Response: &llm.Response{JSON: json.RawMessage("{}"), Metadata: llm.Metadata{Latency: time.Duration(latency * 1e9), Waited: time.Duration(waited * 1e9)}},
		}
		if act == nil {
			r.Request = &llm.Request{Model: "lab/any"}
			r.Response.Usage = llm.Usage{Input: 100, Output: 7}
		}
		return r
	}
	j := &journal.Memory{}
	err := j.Append(t.Context(),
		&journal.Begun{Version: journal.Version, Run: "r", Kind: "k", Plan: json.RawMessage("{}"), At: start},
		&journal.Staged{Specs: world.List(world.Spec{Kind: "k"}, world.Spec{Kind: "k", Deal: 1})},
		&journal.Opened{At: start},
		&journal.Turned{Turn: journal.Turn{Attempt: 0}, Calls: 1},
		reply(0, 0, 5, nil, 4, 0), // given up when the process ended
		&journal.Opened{At: at(1000)},
		&journal.Turned{Turn: journal.Turn{Attempt: 1}, Calls: 1},
		reply(1, 0, 1003, &world.Act{Name: "open"}, 1, 0.5),
		&journal.Turned{Turn: journal.Turn{Attempt: 1, Turn: 1}, Calls: 1},
		reply(1, 1, 1005, nil, 1.5, 0.25),
		&journal.Ended{Attempt: 1, At: at(1006), Outcome: world.Outcome{Data: json.RawMessage("{}")}},
	)
	if err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	r.Each(func(p world.Played) {
		n++
		want := world.Took{Attempt: 1, Input: 100, Output: 7, Began: 5 + 3 - 1.5, Ended: 5 + 6, Asked: 1.5, Queued: 0.25, Acted: 1, Waited: 0.5}
		got := p.Took
		if math.Abs(got.Began-want.Began) < 1e-9 {
			got.Began = want.Began
		}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
	if n != 1 {
		t.Errorf("%d episodes", n)
	}
}

// TestStory: a kind makes the story of an episode from everything that happened, or from its notes.
func TestStory(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	err := j.Append(t.Context(),
		&journal.Begun{Version: journal.Version, Run: "r", Kind: "k", Plan: json.RawMessage("{}")},
		&journal.Staged{Specs: world.List(world.Spec{Kind: "k"})},
		&journal.Opened{},
		&journal.Turned{Calls: 1, Notes: []world.Note{{Kind: "first", Data: json.RawMessage("1")}}},
		&journal.Replied{Seat: "a", Agent: "x", Label: "say", Response: &llm.Response{Text: "hello"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	read, err := results.ReadTranscript(t.Context(), j, r.Head, world.Kind{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Entries) != 2 || read.Entries[0].Note == nil || read.Entries[0].Note.Kind != "first" || read.Entries[1].Reply.Text != "hello" || read.Entries[1].Agent != "x" {
		t.Errorf("%+v", read.Entries)
	}
	if story, err := read.Story(world.Define(telling{}), world.Played{}); len(story) != 21 || err != nil {
		t.Errorf("want two entries, one of them a note: %d, %v", len(story), err)
	}
	if story, err := read.Story(world.Kind{}, world.Played{}); len(story) != 1 || story[0].Title != "Turn by turn" || err != nil {
		t.Errorf("a kind that tells nothing: %+v, %v", story, err)
	}
}

// telling is a kind with an exhibit for every note, and ten for every entry.
type telling struct{ worldtest.Simple[struct{}] }

func (telling) Story(_ world.Played, entries []world.TranscriptEntry) []exhibit.Exhibit {
	return make([]exhibit.Exhibit, 10*len(entries)+len(world.NotesOf(entries)))
}
