package app

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/ask/price"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds"
)

// branching is a kind whose worlds fork: one ask, two strands of two asks each with a fork
// within the second, two asks at once, one more.
func branching() world.Kind {
	type params struct {
		Extra bool `json:"extra" doc:"Whether one more is asked." `
		Swap  bool `json:"swap" doc:"Whether others are asked."`
	}
	ask := func(seat, text string) world.Call {
		return world.Call{Seat: seat, Label: "word", Ask: llm.Request{Messages: []llm.Message{llm.User(text)}}}
	}
	play := func(p *params, t *world.Table) world.Outcome {
		seats := []string{"a", "b"}
		if p.Swap {
			seats = []string{"b", "a"}
		}
		said := t.One(ask("a", "begin")).Text
		heard := make([]string, 2)
		t.Note("fork", "", "now")
		t.Fork(2, func(i int, t *world.Table) {
			heard[i] = t.One(ask(seats[i], said)).Text + t.One(ask("a", said)).Text
			if i == 1 {
				t.Fork(1, func(_ int, t *world.Table) { heard[1] += t.One(ask("b", "deep")).Text })
			}
			t.Note("heard", seats[i], heard[i])
		})
		calls := []world.Call{ask("a", heard[0]), ask("b", heard[1])}
		if p.Extra {
			calls = append(calls, ask("a", "extra"))
		}
		for _, r := range t.Ask(calls...) {
			said += r.Text
		}
		return world.Outcome{Data: said + t.One(ask("a", said)).Text}
	}
	return world.Define(worldtest.Simple[params]{Kind: world.About{Name: "branching", Version: 1}, Sits: []string{"a", "b"}, Play: play})
}

// playBranching plays a run file of that kind, which Play does not know.
func playBranching(t *testing.T, file string, begun journal.Begun, episodes int, entries ...journal.Entry) engine.Result {
	t.Helper()
	store, err := runfile.Open(t.Context(), file, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	spec := world.Spec{Kind: "branching", Params: json.RawMessage(`{"extra":false,"swap":false}`), Lineup: map[string]string{"a": "x", "b": "x"}}
	res, err := engine.Run(t.Context(), engine.Config{Journal: store, Begun: begun, Kind: branching(), Plan: world.List(slices.Repeat([]world.Spec{spec}, episodes)...), Models: a})
	if err := errors.Join(err, a.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	return res
}

// TestForkStrands: what was forked before the turn comes along, whole, and what comes
// after is played again.
func TestForkStrands(t *testing.T) {
	t.Parallel()
	kinds := []world.Kind{branching()}
	plan, err := planfile.Parse("plan.yaml", []byte("kind: branching\nagents: {x: sim/small}\nlineup: {a: x, b: x}\n"), kinds, nil)
	if err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(t.TempDir(), "run.parley")
	playBranching(t, from, Play{}.begun(plan, price.Embedded(), &journal.Head{}), 2)
	was := readRun(t, from)
	for turn, kept := range []int{0, 1, 6, 8} { // replies
		f := Fork{Kinds: worlds.Standard(), From: from, Episode: 1, Turn: turn, Repeat: 1}
		entries, err := f.entries(t.Context(), kinds)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "fork.parley")
		res := playBranching(t, file, journal.Begun{}, 1, entries...)
		is := readRun(t, file)
		copied := 0
		for at, r := range is.replies {
			if r.Copied {
				copied++
			}
			if r.Copied != (r.Response.Text == was.replies["1"+at[1:]].Response.Text) {
				t.Errorf("turn %d: %s: copied is %v", turn, at, r.Copied)
			}
		}
		if copied != kept || len(is.replies) != 9 || res.Asked != 9-kept || res.State != journal.Complete {
			t.Errorf("turn %d: %d of %d replies copied, %d asked, %s", turn, copied, len(is.replies), res.Asked, res.State)
		}
		if got := is.notes["0 1"]; got != was.notes["1 1"] {
			t.Errorf("turn %d: notes of the fork: %s", turn, got)
		}
		if got := is.notes["0 1.0/2"]; (got == was.notes["1 1.0/2"]) != (turn > 1) {
			t.Errorf("turn %d: notes of the first strand: %s", turn, got)
		}
	}
	for set, want := range map[string]string{
		"params.extra=true": "turn 2 now makes 3 calls, and made 2",
		"params.swap=true":  "call 1.0/0:0 is now word of b, and was word of a",
	} {
		_, err := Fork{Kinds: worlds.Standard(), From: from, Turn: 3, Repeat: 1, Sets: []string{set}}.entries(t.Context(), kinds)
		if err == nil || !strings.Contains(err.Error(), want) || !IsUsage(err) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}
