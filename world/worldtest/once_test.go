package worldtest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/world/program"
)

// TestExercisePlaysOnce plays worlds that end badly.
func TestExercisePlaysOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		play func(p *params, t *world.Table) world.Outcome
	}{
		{"turn 0, call 0: the call of seat \"a\" has no Label", func(_ *params, t *world.Table) world.Outcome {
			t.One(world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}}})
			return world.Outcome{}
		}},
		{"deal 0: turn 1: panic: lost", func(_ *params, t *world.Table) world.Outcome {
			t.One(call("a", "?"))
			panic("lost")
		}},
		{"every play fails (nothing was said)", func(_ *params, t *world.Table) world.Outcome {
			t.One(call("a", "?"))
			return world.Outcome{Failed: "nothing was said"}
		}},
		{"the call \"bid\" has a schema: give Options.Answer, or give the kind a stand-in", func(_ *params, t *world.Table) world.Outcome {
			t.One(world.Call{Seat: "a", Label: "bid", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}, Schema: &llm.Schema{JSON: json.RawMessage("{}")}}})
			return world.Outcome{}
		}},
		{"the call \"step\" is an act: give Options.Answer", func(_ *params, t *world.Table) world.Outcome {
			t.One(world.Call{Seat: "a", Label: "step", Act: &world.Act{Name: "step"}})
			return world.Outcome{}
		}},
	} {
		wants(t, "plays once", c.want, kindOf(c.play))
	}
}

// commanding is a definition with a command.
type commanding struct {
	Simple[params]
	verb program.Verb
}

func (c commanding) Commands() []program.Command {
	return []program.Command{{Name: "pay", Doc: "Pay.", Verb: c.verb}}
}

type wrongVerb struct {
	Move string `enum:"up,down"`
}

func (*wrongVerb) Run(context.Context, *program.Program) error { return nil }

// TestExerciseOnce: every problem is reported once, however many plays and checks find it.
func TestExerciseOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		play func(p *params, t *world.Table) world.Outcome
		want int
	}{
		{"an undeclared score", func(_ *params, t *world.Table) world.Outcome {
			t.One(call("a", "?"))
			return world.Outcome{Scores: []world.Score{{Name: "gain"}}}
		}, 1},
		{"two plays that differ", func(_ *params, t *world.Table) world.Outcome {
			t.One(call("a", fmt.Sprint(rand.Uint64())))
			return world.Outcome{}
		}, 1},
		{"a panic on failures, and one on empty replies", func(_ *params, t *world.Table) world.Outcome {
			r := t.One(call("a", "?"))
			if !r.OK() {
				panic(fmt.Sprint("failed ", rand.Uint64()))
			}
			return world.Outcome{Data: strings.Fields(r.Text)[0]}
		}, 2},
	} {
		d := simple(c.play)
		d.Scores = []world.Measure{{Name: "length"}}
		var reported []string
		first, rest := checks()
		found := &findings{}
		for i, check := range append(first[1:], rest...) { // but imports
			for _, err := range check.run(&exercise{kind: world.Define(d), Options: Options{}.resolved()}) {
				if found.add(check.name, err) == "" {
					reported = append(reported, err.Error())
				}
			}
			if i+1 < len(first) && reported != nil {
				break
			}
		}
		if len(reported) != c.want {
			t.Errorf("%s: %d reports, want %d:\n%s", c.name, len(reported), c.want, strings.Join(reported, "\n"))
		}
	}
}

// TestDiffer: a difference is shown without what is the same after it.
func TestDiffer(t *testing.T) {
	t.Parallel()
	ask := func(text string) string { return describe(call("a", text)) }
	long := strings.Repeat("much of the same, ", 20)
	for _, c := range []struct{ a, b, want string }{
		{ask("It is worth 12 to you."), ask("It is worth 34 to you."), `"user: It is worth 12…" in one play, "user: It is worth 34…" in another`},
		{ask("Hi.\nSecond."), ask("Hi.\nThird."), `"Secon…" in one play, "Thir…" in another`},
		{long + "x", long + "y", `"…f the same, much of the same, x" in one play, "…f the same, much of the same, y" in another`},
		{"one", "one\ntwo", `"" in one play, "two" in another`},
		{"", "a", `"" in one play, "a" in another`},
	} {
		if got := differ(c.a, c.b); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}
