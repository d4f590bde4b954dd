package diplomacy

import (
	"encoding/json"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

func orders(t *testing.T, r world.Reply) []string {
	t.Helper()
	var answer struct{ Orders []string }
	if err := json.Unmarshal(r.JSON, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Orders
}

// TestBotsAreLegal checks that bots give every unit a legal order, and build and remove no more
// units than they may.
func TestBotsAreLegal(t *testing.T) {
	t.Parallel()
	r := rules.New()
	for name, bot := range newBots(r) {
		p := r.Start()
		steps := map[rules.Step]int{}
		for i := range 120 {
			steps[p.Phase.Step]++
			var all rules.Orders
			for _, w := range rules.Powers() {
				for _, text := range orders(t, bot(botCall(w.String(), "orders", nil, r.State(&p), uint64(i)))) {
					o, err := rules.Parse(r.Board, text)
					if err == nil {
						_, err = r.Check(&p, w, o)
					}
					if err != nil {
						t.Fatalf("%s: %s: %s: %q: %v", name, p.Phase, w.Name(), text, err)
					}
					all[w] = append(all[w], o)
				}
				if n := len(all[w]); p.Phase.Step == rules.Movement && n != p.Count(w) {
					t.Fatalf("%s: %s: %s: %d orders for %d units", name, p.Phase, w.Name(), n, p.Count(w))
				}
			}
			out := r.Adjudicate(&p, &all)
			for w, list := range out.Results {
				for _, res := range list {
					if res.Code == rules.Illegal {
						t.Fatalf("%s: %s: %s: %v", name, p.Phase, rules.Power(w).Name(), res.Err)
					}
				}
			}
			p = r.Advance(&out.After)
		}
		if steps[rules.Retreats] == 0 || steps[rules.Adjustments] == 0 {
			t.Errorf("%s: phases by step: %v, want retreats and adjustments", name, steps)
		}
	}
}

func TestBotsWithBadPrompts(t *testing.T) {
	t.Parallel()
	for name, bot := range newBots(rules.New()) {
		for _, text := range []string{"", "{", `{"power":"MARS"}`, `{"power":"FRANCE","state":{"name":"S1901M","units":{"FRANCE":["A ZZZ"]}}}`, "You are France."} {
			if got := orders(t, bot(world.Call{Ask: llm.Request{Messages: []llm.Message{llm.User(text)}}})); len(got) != 0 {
				t.Errorf("%s: the answer to %q is %q, want no orders", name, text, got)
			}
		}
		if got := orders(t, bot(world.Call{})); len(got) != 0 {
			t.Errorf("%s: the answer to an empty call is %q, want no orders", name, got)
		}
	}
}

// TestGreedyTakesCentres checks that greedy takes an open centre and attacks a defended one with
// support.
func TestGreedyTakesCentres(t *testing.T) {
	t.Parallel()
	r := rules.New()
	state := rules.State{
		Name: "F1903M", Units: map[string][]string{"FRANCE": {"A BUR", "A RUH", "A GAS"}, "GERMANY": {"A MUN"}},
		Centers: map[string][]string{"FRANCE": {"PAR", "BRE", "MAR", "BEL", "HOL", "KIE"}, "GERMANY": {"MUN", "BER"}},
	}
	got := orders(t, newBots(r)["greedy"](botCall("FRANCE", "orders", nil, state, 1)))
	has := map[string]bool{}
	for _, o := range got {
		has[o] = true
	}
	if !has["A GAS - SPA"] || has["A BUR - MUN"] != has["A RUH S A BUR - MUN"] || has["A RUH - MUN"] != has["A BUR S A RUH - MUN"] || has["A BUR - MUN"] == has["A RUH - MUN"] {
		t.Errorf("orders %q", got)
	}
}
