package worldtest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
)

// standing is a definition with a stand-in.
type standing struct {
	Simple[params]
	player func(model string, req *llm.Request, seed uint64) (string, bool)
}

func (s standing) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return s.player(model, req, seed)
}

// TestStandIn tries stand-ins that are good, and that are wrong in one way each.
func TestStandIn(t *testing.T) {
	t.Parallel()
	type player = func(model string, req *llm.Request, seed uint64) (string, bool)
	form := &llm.Schema{Name: "bid", JSON: json.RawMessage(`{"type":"object","properties":{"bid":{"type":"integer"}},"required":["bid"]}`)}
	asks := func(t *world.Table, label, text string, form *llm.Schema) world.Reply {
		return t.One(world.Call{Seat: "a", Label: label, Ask: llm.Request{Messages: []llm.Message{llm.User(text)}, Schema: form}})
	}
	kind := func(p player) world.Kind {
		d := simple(func(_ *params, t *world.Table) world.Outcome {
			asks(t, "bid", "Your bid, please.", form)
			asks(t, "talk", "Your words, please.", nil)
			return world.Outcome{}
		})
		if p == nil {
			return world.Define(d)
		}
		return world.Define(standing{d, p})
	}
	good := func(_ string, req *llm.Request, _ uint64) (string, bool) {
		if len(req.Messages) == 0 || !strings.HasPrefix(req.Messages[0].Text(), "Your ") {
			return "", false
		}
		return `{"bid": 3}`, true
	}
	drawn := 0
	for _, c := range []struct {
		want   string // "": nothing is wrong
		player player
		labels string
	}{
		{"", good, "bid talk"},
		{"has no stand-in", nil, "bid talk"},
		{`no play asks for "think"`, good, "bid talk think"},
		{`asks for "talk", which is not one of the labels`, good, "bid"},
		{"does not recognise the prompt: …Your words", func(m string, req *llm.Request, s uint64) (string, bool) {
			text, ok := good(m, req, s)
			return text, ok && req.Schema != nil
		}, "bid talk"},
		{"does not follow the schema bid", func(m string, req *llm.Request, s uint64) (string, bool) {
			_, ok := good(m, req, s)
			return `{"bid": "three"}`, ok
		}, "bid talk"},
		{"answers what no world of its kind asks", func(string, *llm.Request, uint64) (string, bool) { return `{"bid": 3}`, true }, "bid talk"},
		{"and then", func(m string, req *llm.Request, s uint64) (string, bool) {
			_, ok := good(m, req, s)
			drawn++
			return strings.Repeat(" ", drawn) + `{"bid": 3}`, ok
		}, "bid talk"},
		{"wrote to the request", func(m string, req *llm.Request, s uint64) (string, bool) {
			text, ok := good(m, req, s)
			req.Messages = append(req.Messages, llm.User("!"))
			return text, ok
		}, "bid talk"},
		{"not understood", good, "bid talk"},
	} {
		o := Options{Deals: 1}
		if c.want == "not understood" {
			o.Understood = func(world.Call, world.Reply) error { return errors.New("not understood") }
		}
		err := errors.Join(standsIn(kind(c.player), strings.Fields(c.labels), []Options{o})...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("found %v, want %q", err, c.want)
		}
	}
	never := func(string, *llm.Request, uint64) (string, bool) { return "", false }
	if bad := standsIn(kind(never), []string{"bid", "talk"}, nil); len(bad) != 2 {
		t.Errorf("two labels that are not understood in %d deals: %v", Options{}.resolved().Deals, bad)
	}
	if bad := standsIn(kind(good), []string{"bid", "talk"}, nil); bad != nil {
		t.Errorf("without plays: %v", bad)
	}
}

// TestExerciseAsksTheStandIn: a kind that asks with a schema is played by its stand-in.
func TestExerciseAsksTheStandIn(t *testing.T) {
	t.Parallel()
	form := &llm.Schema{Name: "bid", JSON: json.RawMessage(`{"type":"object","properties":{"bid":{"type":"integer"}},"required":["bid"]}`)}
	bids := 0
	d := simple(func(_ *params, t *world.Table) world.Outcome {
		r := t.One(world.Call{Seat: "a", Label: "bid", Ask: llm.Request{Messages: []llm.Message{llm.User("Your bid?")}, Schema: form}})
		if string(r.JSON) == `{"bid":3}` {
			bids++
		}
		return world.Outcome{}
	})
	e := &exercise{kind: world.Define(standing{d, func(string, *llm.Request, uint64) (string, bool) { return `{"bid":3}`, true }}), Options: Options{}.resolved()}
	if bad := e.once(); bad != nil || bids != e.Deals {
		t.Errorf("%d bids, %v", bids, bad)
	}
}
