package world_test

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
)

func ask(seat string) world.Call {
	return world.Call{Seat: seat, Label: "message", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}}}
}

func TestRepliesComeInOrder(t *testing.T) {
	t.Parallel()
	s := world.Begin(world.Func(func(t *world.Table) world.Outcome {
		replies := t.Ask(ask("a"), ask("b"), ask("c"))
		return world.Outcome{Data: replies[0].Text + replies[1].Text + replies[2].Text}
	}), world.Deal{})
	turn := s.Next(nil)
	if len(turn.Calls) != 3 || turn.Calls[1].Seat != "b" || turn.Done || turn.Number != 0 {
		t.Fatalf("the first turn: %+v", turn)
	}
	turn = s.Next([]world.Reply{{Text: "1"}, {Text: "2"}, {Text: "3"}})
	if !turn.Done || turn.Outcome.Data != "123" || turn.Number != 1 {
		t.Fatalf("the second turn: %+v", turn)
	}
}

func TestPanicIsContained(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*world.Table){
		"boom":       func(*world.Table) { panic("boom") },
		"index":      func(t *world.Table) { _ = []int{}[t.Rand().IntN(3)] },
		"Goexit":     func(*world.Table) { runtime.Goexit() },
		"note infin": func(t *world.Table) { t.Note("metric", "", math.Inf(1)) },
	} {
		s := world.Begin(world.Func(func(t *world.Table) world.Outcome {
			t.One(ask("a"))
			play(t)
			return world.Outcome{}
		}), world.Deal{})
		s.Next(nil)
		turn := s.Next([]world.Reply{{}})
		if !turn.Done || !strings.Contains(turn.Panic, strings.Fields(name)[0]) || !strings.Contains(turn.Stack, "world_test.go") {
			t.Errorf("%s: done %v, panic %q, stack %.60q", name, turn.Done, turn.Panic, turn.Stack)
		}
	}
}

func TestAgentRequest(t *testing.T) {
	t.Parallel()
	cold, hot := 0.0, 1.0
	a := world.Agent{Name: "x", Model: "p/m", System: "Be brief.", Temperature: &hot, MaxTokens: 9, Stop: []string{"."}, Fallbacks: []string{"p/n"}}
	ask := llm.Request{Messages: []llm.Message{llm.System("Rules."), llm.User("?")}, Temperature: &cold, Prefix: 1}
	got := a.Request(ask)
	if got.Model != "p/m" || len(got.Messages) != 3 || got.Messages[0].Text() != "Be brief." || got.Prefix != 2 {
		t.Errorf("got %+v", got)
	}
	if *got.Temperature != cold || got.MaxTokens != 9 || got.Fallbacks[0] != "p/n" || got.Stop[0] != "." {
		t.Errorf("what the world set stays, what it left open is the agent's: %+v", got)
	}
	if len(ask.Messages) != 2 {
		t.Error("the world's own request was changed")
	}
}
