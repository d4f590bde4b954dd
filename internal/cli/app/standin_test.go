package app

import (
	"sync/atomic"
	"testing"

	"parley/internal/ask/sim"
	"parley/internal/run/planfile"
	"parley/llm"
	"parley/world"
	"parley/world/part"
	"parley/worlds"
)

// stranger is a kind from outside this repository: its world asks for a price, and its stand-in knows one.
type stranger struct{ answer string }

func (stranger) About() world.About {
	return world.About{Name: "stranger", Version: 1, Doc: "Asks for a price."}
}
func (stranger) Defaults() *struct{}               { return &struct{}{} }
func (stranger) Seats(*struct{}) ([]string, error) { return []string{"seller"}, nil }

func (s stranger) World(*struct{}, world.Lineup) (world.World, error) {
	return world.Func(func(t *world.Table) world.Outcome {
		r := t.One(world.Call{Seat: "seller", Label: "price", Ask: llm.Request{Messages: []llm.Message{llm.User("Name your price.")}}})
		if r.Text != s.answer {
			return world.Outcome{Failed: "somebody else answered: " + r.Text}
		}
		return world.Outcome{}
	}), nil
}

func (s stranger) StandIn(model string, req *llm.Request, _ uint64) (string, bool) {
	return s.answer, model == "small" && req.Messages[0].Text() == "Name your price."
}

// TestStrangersStandIn: the simulated provider plays a kind that does not come with Parley by its own stand-in.
func TestStrangersStandIn(t *testing.T) {
	t.Parallel()
	kinds := append(worlds.Standard(), world.Define(stranger{"forty-two"}))
	plan, err := planfile.Parse("plan.yaml", []byte("kind: stranger\nagents: {a: sim/small}\nepisodes: 3\n"), kinds, nil)
	if err != nil {
		t.Fatal(err)
	}
	if sum := played(t, Play{Kinds: kinds, Plan: plan, File: inFolder(t)}); sum.Episodes.Failed > 0 || sum.Episodes.Complete != 3 {
		t.Errorf("%+v", sum)
	}
}

// referee is a kind whose stand-in answers nothing and counts requests that more than one kind's answers.
type referee struct {
	stranger
	others    []part.StandIn
	contested *atomic.Int64
}

func newReferee() referee {
	return referee{others: sim.StandIns(worlds.Standard()...), contested: new(atomic.Int64)}
}

func (r referee) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	known := 0
	for _, s := range r.others {
		if _, ok := s.StandIn(model, req, seed); ok {
			known++
		}
	}
	if known > 1 {
		r.contested.Add(1)
	}
	return "", false
}
