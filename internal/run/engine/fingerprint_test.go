package engine

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"parley/internal/run/planner"
	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
)

// says is a model that answers every request with one text.
type says string

func (s says) Each(_ context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) (n int) {
	for range reqs {
		done(n, llm.Result{Response: &llm.Response{Text: string(s)}})
		n++
	}
	return n
}

func (says) Drain() {}

// chat is a kind that asks one question, the same in every episode or with its deal in it.
func chat(dealRange bool) world.Kind {
	return playing(func(t *world.Table) world.Outcome {
		question := "How are you?"
		if n := t.Rand().Uint64(); dealRange {
			question += fmt.Sprint(n)
		}
		t.One(world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User(question)}}})
		return world.Outcome{}
	})
}

// TestCopies: an identical play is a copy, unless it may be chance.
func TestCopies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("I am well, thank you. ", 20)
	for _, c := range []struct {
		name        string
		text        string
		temperature float64
		dealRange   bool
		distinct    int
		chance      bool
	}{
		{"temperature 0", "yes", 0, false, 1, false},
		{"a long text", long, 1, false, 1, false},
		{"a short text", "yes", 1, false, 1, true},
		{"other deals", "yes", 0, true, 5, false},
	} {
		cfg := config(says(c.text), &journal.Memory{}, 5)
		cfg.Kind = chat(c.dealRange)
		cfg.Begun.Agents[0].Temperature = &c.temperature
		if _, err := Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		plays := map[journal.Digest]bool{}
		for n, e := range journaltest.Ends(t, cfg.Journal) {
			plays[e.Play] = true
			if e.Chance != c.chance || e.Play == (journal.Digest{}) {
				t.Errorf("%s: episode %d: chance is %v", c.name, n, e.Chance)
			}
		}
		openings := map[uint64]bool{}
		for play := range plays {
			openings[planner.Opening(play)] = true
		}
		if len(openings) != c.distinct || openings[0] {
			t.Errorf("%s: %v are asked first, want %d", c.name, openings, c.distinct)
		}
		if len(plays) != c.distinct {
			t.Errorf("%s: %d distinct plays, want %d", c.name, len(plays), c.distinct)
		}
	}
}

// TestPlaysAreStable: the digest of a play does not depend on the order of replies, nor on being
// killed and resumed.
func TestPlaysAreStable(t *testing.T) {
	t.Parallel()
	first := &journal.Memory{}
	if _, err := Run(t.Context(), config(&models{width: 1}, first, 6)); err != nil {
		t.Fatal(err)
	}
	want := journaltest.Ends(t, first)
	for _, keep := range []int{0, 9, 40, 1 << 20} {
		j := &cutJournal{left: keep}
		if _, err := Run(t.Context(), config(&models{width: 64}, j, 6)); err == nil && keep < 1<<20 {
			t.Fatalf("nothing was cut off after %d entries", keep)
		}
		if _, err := Run(t.Context(), config(&models{width: 64}, &j.Memory, 6)); err != nil {
			t.Fatal(err)
		}
		for n, e := range journaltest.Ends(t, &j.Memory) {
			if e.Play != want[n].Play || e.Chance != want[n].Chance {
				t.Errorf("cut off after %d: episode %d is another play", keep, n)
			}
		}
	}
}
