package diplomacy

import (
	"testing"

	"parley/llm"
	"parley/world"
)

// TestPromises checks that the promises of the judge are compared with the orders, and that invalid
// ones are left out.
func TestPromises(t *testing.T) {
	t.Parallel()
	orders := map[string][]string{"FRANCE": {"A PAR - BUR", "A MAR S A PAR - BUR", "F BRE - ENG"}, "ENGLAND": {"F LON - ENG", "A LVP H"}, "GERMANY": {"A MUN S A PAR - BUR"}}
	cases := []struct {
		promise promiseDraft
		want    string
	}{
		{promiseDraft{From: "FRANCE", To: "GERMANY", Kind: "move", Unit: "A PAR", Place: "BUR"}, verdictKept},
		{promiseDraft{From: "FRANCE", To: "GERMANY", Kind: "move", Unit: "A PAR", Place: "Picardy"}, verdictBroken},
		{promiseDraft{From: "FRANCE", To: "GERMANY", Kind: "move", Unit: "A MUN", Place: "BUR"}, verdictUnclear},
		{promiseDraft{From: "FRANCE", To: "GERMANY", Kind: "move", Unit: "somewhere", Place: "BUR"}, verdictUnclear},
		{promiseDraft{From: "GERMANY", To: "FRANCE", Kind: "support", Unit: "A PAR", Place: "BUR"}, verdictKept},
		{promiseDraft{From: "GERMANY", To: "FRANCE", Kind: "support", Unit: "A PAR"}, verdictKept},
		{promiseDraft{From: "GERMANY", To: "FRANCE", Kind: "support", Unit: "A PAR", Place: "PIC"}, verdictBroken},
		{promiseDraft{From: "FRANCE", To: "ENGLAND", Kind: "stay_out", Place: "ENG"}, verdictBroken},
		{promiseDraft{From: "FRANCE", To: "ALL", Kind: "stay_out", Place: "PIE"}, verdictKept},
		{promiseDraft{From: "ENGLAND", To: "FRANCE", Kind: "hold", Unit: "A LVP"}, verdictKept},
		{promiseDraft{From: "ENGLAND", To: "FRANCE", Kind: "hold", Unit: "F LON"}, verdictBroken},
		{promiseDraft{From: "FRANCE", To: "ENGLAND", Kind: "no_attack"}, verdictKept},
		{promiseDraft{From: "ENGLAND", To: "FRANCE", Kind: "convoy", Unit: "A LVP", Place: "BEL"}, verdictBroken},
	}
	var list []promiseDraft
	for _, c := range cases {
		list = append(list, c.promise)
	}
	invalid := []promiseDraft{{From: "Mars", To: "FRANCE", Kind: "move"}, {From: "FRANCE", To: "FRANCE", Kind: "hold"}, {From: "FRANCE", To: "ITALY", Kind: "sing"}}
	p := playGame(t, 1, world.Lineup{}, func(c world.Call) world.Reply {
		switch c.Label {
		case "promises":
			return reply(map[string]any{"promises": append(list, invalid...)})
		case "orders":
			return reply(map[string]any{"reason": "", "orders": orders[c.Seat]})
		}
		return simulated(c)
	}, func(p *Params) { p.EndPhase, p.Rounds, p.Judge = "S1901M", 1, true })
	got := readGame(p.notes).Phases[0].Promises
	if len(got) != len(cases) {
		t.Fatalf("%d promises, want %d: %+v", len(got), len(cases), got)
	}
	kept := 0
	for i, c := range cases {
		if got[i].Verdict != c.want {
			t.Errorf("%+v: %s, want %s", c.promise, got[i].Verdict, c.want)
		}
		if c.want == verdictKept && c.promise.From == "FRANCE" {
			kept++
		}
	}
	if st := summary(t, p).Powers["FRANCE"]; st.Kept != kept || st.Broken != 2 || st.Unclear != 2 {
		t.Errorf("France: %d kept, %d broken, %d unclear", st.Kept, st.Broken, st.Unclear)
	}
}

func TestJudgeFails(t *testing.T) {
	t.Parallel()
	p := playGame(t, 1, world.Lineup{}, func(c world.Call) world.Reply {
		if c.Seat == judgeSeat {
			return world.Reply{Failed: llm.KindTimeout}
		}
		return simulated(c)
	}, func(p *Params) { p.EndPhase, p.Rounds, p.Judge = "F1901M", 1, true })
	if s := summary(t, p); s.Unjudged != 2 || p.outcome.Failed != "" {
		t.Errorf("%d phases unjudged, failed %q", s.Unjudged, p.outcome.Failed)
	}
}

// TestBetrayal checks that an attack on a power that called the attacker an ally is one betrayal a
// phase.
func TestBetrayal(t *testing.T) {
	t.Parallel()
	p := playGame(t, 1, world.Lineup{}, func(c world.Call) world.Reply {
		switch {
		case c.Label == aboutStart && c.Seat == "AUSTRIA":
			return reply(map[string]any{"goals": []string{}, "relations": []map[string]string{{"power": "ITALY", "relation": "ally"}}})
		case c.Label == "orders":
			return reply(map[string]any{"reason": "", "orders": []string{"A VEN - TRI", "F TRI - ALB", "A TRI H", "F ALB H"}})
		}
		return reply(map[string]any{"diary": "", "goals": []string{}, "relations": []any{}})
	}, func(p *Params) { p.EndPhase, p.Rounds = "F1901M", 0 })
	s := summary(t, p)
	if s.Powers["ITALY"].Betrayed != 1 || s.Powers["ITALY"].Victims["AUSTRIA"] != 1 || s.Powers["AUSTRIA"].Betrayed != 0 || s.Relations["AUSTRIA"]["ITALY"] != 2 {
		t.Errorf("Italy betrayed %d times; %v", s.Powers["ITALY"].Betrayed, s.Moments)
	}
}
