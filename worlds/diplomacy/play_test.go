package diplomacy

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

func reply(v any) world.Reply {
	b, err := json.Marshal(v)
	if err != nil {
		return world.Reply{Failed: llm.KindMalformed}
	}
	return world.Reply{Text: string(b), JSON: b, Finish: llm.FinishStop}
}

func summary(t *testing.T, p *played) *recordSummary {
	t.Helper()
	s, ok := p.outcome.Data.(*recordSummary)
	if !ok {
		t.Fatalf("the data is %T", p.outcome.Data)
	}
	return s
}

// TestWholeGame plays a game of three rounds to 1910. It checks that all powers talk and move, that
// centres change owners, and that every phase follows from the orders of the previous one.
func TestWholeGame(t *testing.T) {
	t.Parallel()
	p := playDiplomacy(t, 1, world.Lineup{}, simulated, nil)
	s := summary(t, p)
	if p.outcome.Failed != "" || s.Ended == "" || len(s.Centres) < 5 || len(s.Moments) < 10 {
		t.Errorf("ended %q, %d years, %d moments, failed %q", s.Ended, len(s.Centres)-1, len(s.Moments), p.outcome.Failed)
	}
	for seat, st := range s.Powers {
		n, ok := st.Active()
		if _, illegal := st.Written(); n < 10 || ok == 0 || ok == n || illegal > n/4 || st.Private < 10 {
			t.Errorf("%s: %d of %d orders succeed, %d illegal, %d private messages", seat, ok, n, illegal, st.Private)
		}
	}
	checkPhases(t, Read(p.notes))
}

// checkPhases checks that the orders of each phase of a record lead to the next position.
func checkPhases(t *testing.T, g RecordGame) {
	t.Helper()
	r := rules.New()
	for i := range g.Phases {
		pos, err := r.FromState(g.Phases[i].State)
		if err != nil {
			t.Fatal(err)
		}
		var orders rules.Orders
		for _, w := range rules.Powers() {
			for _, o := range g.Phases[i].Orders[w.String()] {
				read, err := rules.Parse(r.Board, o.Order)
				if err != nil {
					t.Fatal(err)
				}
				orders[w] = append(orders[w], read)
			}
		}
		out := r.Adjudicate(&pos, &orders)
		next := r.State(new(r.Advance(&out.After)))
		want := g.End.State
		if i+1 < len(g.Phases) {
			want = g.Phases[i+1].State
		}
		a, _ := json.Marshal(next)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Fatalf("the orders of %s lead to\n%s\nwant\n%s", pos.Phase, a, b)
		}
	}
}

// TestCriticalPath checks the length of the longest chain of calls in a press game of two rounds to
// the end of 1902, if every answer is legal and nobody retreats: goals, then two rounds and orders
// for each of four movement phases, three reviews between them, and the last winter. The winter of
// 1901 runs in parallel with the review.
func TestCriticalPath(t *testing.T) {
	t.Parallel()
	p := playDiplomacy(t, 1, world.Lineup{}, opening, func(p *Params) { p.MaxYear, p.Rounds = 1902, 2 })
	if want := 1 + 4*(2+1) + 3 + 1; p.depth != want {
		t.Errorf("the longest chain has %d calls, want %d", p.depth, want)
	}
	if n := count(p); n["builds"] == 0 || n["message"] != 7*4*2 || n["orders"] != 7*4 || n["results"] != 7*3 {
		t.Errorf("calls by label: %v", n)
	}
	// No press: goals, four orders, three reviews, the last winter.
	p = playDiplomacy(t, 1, world.Lineup{}, opening, func(p *Params) { p.MaxYear, p.Rounds = 1902, 0 })
	if want := 1 + 4 + 3 + 1; p.depth != want {
		t.Errorf("without press the longest chain has %d calls, want %d", p.depth, want)
	}
	if n := count(p); n["message"] != 0 || n["orders"] != 7*4 || n["results"] != 7*3 {
		t.Errorf("without press: calls by label: %v", n)
	}
}

// opening writes to everybody in every round, takes uncontested neutral centres and then holds, so
// that there are builds and no retreats.
func opening(c world.Call) world.Reply {
	switch strings.TrimPrefix(c.Ask.Schema.Name, "diplomacy_") {
	case "messages":
		return reply(map[string]any{"messages": []map[string]string{{"to": "ALL", "text": lastWords(c)}}})
	case "orders", "diary_and_orders":
		var orders []string
		for _, o := range []string{"A MAR - SPA", "F BRE - MAO", "F MAO - POR", "F KIE - DEN", "F NAP - TYS", "F TYS - TUN", "F EDI - NWG", "F NWG - NWY", "A CON - BUL", "F SEV - RUM", "A BUD - SER", "WAIVE"} {
			if unit := o[:min(5, len(o))]; strings.Contains(c.Ask.Messages[1].Text(), "\n"+unit+",") || c.Label == "builds" && o == "WAIVE" {
				orders = append(orders, o)
			}
		}
		return reply(map[string]any{"reason": "", "orders": orders})
	}
	return simulated(c)
}

// lastWords returns a text that differs in every round.
func lastWords(c world.Call) string {
	text := c.Ask.Messages[1].Text()
	return text[strings.LastIndex(text, "Round "):][:12] + " of " + c.Seat
}

func count(p *played) map[string]int {
	n := map[string]int{}
	for _, c := range p.calls {
		n[c.Label]++
	}
	return n
}

// TestPromptSize checks the total size of the prompts of a game to 1910 with three rounds. It must be
// at most half of what an earlier system needed for a game with as many calls and equally short texts.
func TestPromptSize(t *testing.T) {
	t.Parallel()
	p := playDiplomacy(t, 1, world.Lineup{}, simulated, nil)
	total := 0
	for _, c := range p.calls {
		for _, m := range c.Ask.Messages {
			total += len(m.Text())
		}
	}
	const before = 420*12_000 + 140*9_100 + 175*7_100 + 140*5_500 + 63*12_300 // calls times mean characters, without system prompts
	if total > before/2 || len(p.calls) < 600 {
		t.Errorf("%d bytes in %d calls, want at most %d", total, len(p.calls), before/2)
	}
}

// TestSharedPrefix checks that all prompts of a phase have the same first message, and that it begins
// with the same rules in all phases.
func TestSharedPrefix(t *testing.T) {
	t.Parallel()
	p := playDiplomacy(t, 1, world.Lineup{}, simulated, func(p *Params) { p.MaxYear, p.Rounds = 1902, 1 })
	texts := map[string]bool{}
	for _, c := range p.calls {
		if c.Label == "years" {
			continue
		}
		if c.Ask.Prefix != 1 || c.Ask.Messages[0].Role != llm.RoleSystem {
			t.Fatalf("%s: prefix %d", c.Label, c.Ask.Prefix)
		}
		texts[c.Ask.Messages[0].Text()] = true
	}
	g := Read(p.notes)
	if len(texts) != len(g.Phases) {
		t.Errorf("%d different first messages in %d phases", len(texts), len(g.Phases))
	}
	rulesText, _, _ := strings.Cut(p.calls[0].Ask.Messages[0].Text(), "It is ")
	for text := range texts {
		if !strings.HasPrefix(text, rulesText) {
			t.Errorf("the first message does not begin with the rules: %.80q", text)
		}
	}
}

func TestBotsPlay(t *testing.T) {
	t.Parallel()
	mixed := all("random")
	mixed["FRANCE"] = world.Agent{Name: "greedy", Bot: "greedy"}
	greedy, random := 0, 0
	outcomes := map[string]bool{}
	for deal := range 12 {
		p := playDiplomacy(t, deal, mixed, simulated, func(p *Params) { p.MaxYear = 1908 })
		s := summary(t, p)
		greedy += s.Powers["FRANCE"].Centres
		random += s.Powers["GERMANY"].Centres
		for seat, st := range s.Powers {
			if st.Missing > 0 || len(st.Refused) > 0 {
				t.Errorf("deal %d: %s: %d units without orders, refused %v", deal, seat, st.Missing, st.Refused)
			}
		}
		if n := count(p); n["message"]+n["start"]+n["results"] > 0 {
			t.Errorf("bots got calls for texts: %v", n)
		}
		b, _ := json.Marshal(p.outcome)
		outcomes[string(b)] = true
		checkPhases(t, Read(p.notes))
	}
	if greedy < 2*random || len(outcomes) != 12 {
		t.Errorf("greedy has %d centres, random %d; %d different games", greedy, random, len(outcomes))
	}
}

// TestTwiceTheSame checks that a game of bots and models has the same outcome twice.
func TestTwiceTheSame(t *testing.T) {
	t.Parallel()
	lineup := world.Lineup{"ITALY": {Bot: "random"}, "TURKEY": {Bot: "greedy"}}
	change := func(p *Params) { p.MaxYear, p.Judge, p.Planning, p.DrawFrom = 1904, true, true, 1903 }
	a, _ := json.Marshal(playDiplomacy(t, 3, lineup, simulated, change).outcome)
	b, _ := json.Marshal(playDiplomacy(t, 3, lineup, simulated, change).outcome)
	if string(a) != string(b) {
		t.Error("the outcomes of the same game differ")
	}
}
