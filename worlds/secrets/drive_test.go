package secrets

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"parley/llm"
	"parley/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// played is an episode that a test has played.
type played struct {
	*Params
	calls   []world.Call // in order, one strand after the other
	notes   []world.Note
	secrets map[string]string
	outcome world.Outcome
	record  Game
}

// paramsOf returns the defaults with some changed.
func paramsOf(t *testing.T, params string) *Params {
	t.Helper()
	p := definition{}.Defaults()
	if err := json.Unmarshal([]byte(params), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// drive plays an episode. The function answer replies to each call.
func drive(t *testing.T, params string, deal int, answer func(p *played, c world.Call) world.Reply) *played {
	t.Helper()
	p := &played{Params: paramsOf(t, params), secrets: map[string]string{}}
	w, err := definition{}.World(p.Params, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.strand(t, world.Begin(w, world.Deal{Seed: 1, Number: deal}), answer)
	return p
}

// strand plays a strand and its forks.
func (p *played) strand(t *testing.T, s *world.Strand, answer func(p *played, c world.Call) world.Reply) {
	t.Helper()
	defer s.Stop()
	turn := s.Next(nil)
	for !turn.Done {
		p.take(t, turn)
		var replies []world.Reply
		for _, f := range turn.Forks {
			p.strand(t, f, answer)
		}
		for _, c := range turn.Calls {
			p.calls = append(p.calls, c)
			replies = append(replies, answer(p, c))
		}
		turn = s.Next(replies)
	}
	p.take(t, turn)
	if r, ok := turn.Outcome.Data.(Game); ok {
		p.outcome, p.record = turn.Outcome, r
	}
}

func (p *played) take(t *testing.T, turn world.Turn) {
	t.Helper()
	if turn.Panic != "" {
		t.Fatal(turn.Panic, turn.Stack)
	}
	p.notes = append(p.notes, turn.Notes...)
	for _, n := range turn.Notes {
		var word string
		if n.Kind == "secret" && json.Unmarshal(n.Data, &word) == nil {
			p.secrets[n.Seat] = word
		}
	}
}

// script plays a conversation of two players. The function say gets the number of the turn and both
// secrets.
func script(t *testing.T, params string, deal int, say func(turn int, own, other string) world.Reply) *played {
	t.Helper()
	return drive(t, params, deal, func(p *played, c world.Call) world.Reply {
		turn := len(p.calls) - 1
		seats := []string{First, Second}
		if c.Seat != seats[turn%2] {
			t.Fatalf("turn %d: the call is for %s", turn, c.Seat)
		}
		return say(turn, p.secrets[c.Seat], p.secrets[seats[1-turn%2]])
	})
}

func (p *played) score(seat, name string) float64 {
	for _, s := range p.outcome.Scores {
		if s.Seat == seat && s.Name == name {
			return s.Value
		}
	}
	return -1
}

func failed() world.Reply { return world.Reply{Failed: llm.KindTimeout} }
