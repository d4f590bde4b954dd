package app

import (
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

// forked is a kind of one ask whose World may panic.
type forked struct {
	worldtest.Simple[struct{}]
	panics bool
}

func (f forked) World(p *struct{}, l world.Lineup) (world.World, error) {
	if f.panics {
		panic("no world today")
	}
	return f.Simple.World(p, l)
}

// TestForkOfAKindThatPanics: a fork refuses in words, and leaves no file behind.
func TestForkOfAKindThatPanics(t *testing.T) {
	t.Parallel()
	kind := func(panics bool) []world.Kind {
		return []world.Kind{world.Define(forked{worldtest.Simple[struct{}]{
			Kind: world.About{Name: "forked", Version: 1}, Sits: []string{"a"},
			Play: func(_ *struct{}, t *world.Table) world.Outcome {
				t.One(world.Call{Seat: "a", Label: "say", Ask: llm.Request{Messages: []llm.Message{llm.User("Hi.")}}})
				return world.Outcome{}
			},
		}, panics})}
	}
	plan, err := planfile.Parse("plan.yaml", []byte("kind: forked\nagents: {a: sim/small}\n"), kind(false), nil)
	if err != nil {
		t.Fatal(err)
	}
	from := inFolder(t)
	played(t, Play{Kinds: kind(false), Plan: plan, File: from})
	err = Fork{Kinds: kind(true), From: from, Repeat: 1, File: inFolder(t)}.Write(t.Context())
	if !IsUsage(err) || !strings.Contains(err.Error(), "the kind forked: World panicked: no world today") {
		t.Error(err)
	}
}
