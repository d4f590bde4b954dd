package diplomacy

import (
	"encoding/json"
	"fmt"
	"slices"
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

func summary(t *testing.T, p *played) *gameSummary {
	t.Helper()
	s, ok := p.outcome.Data.(*gameSummary)
	if !ok {
		t.Fatalf("the data is %T", p.outcome.Data)
	}
	return s
}

// TestWholeGame plays a game of three rounds to 1910. It checks that all powers talk and move, that
// centres change owners, and that every phase follows from the orders of the previous one.
func TestWholeGame(t *testing.T) {
	t.Parallel()
	p := playGame(t, 1, world.Lineup{}, simulated, nil)
	s := summary(t, p)
	if p.outcome.Failed != "" || s.Ended == "" || len(s.Centres) < 5 || len(s.Moments) < 10 {
		t.Errorf("ended %q, %d years, %d moments, failed %q", s.Ended, len(s.Centres)-1, len(s.Moments), p.outcome.Failed)
	}
	for seat, st := range s.Powers {
		n, ok := st.active()
		if _, illegal := st.written(); n < 10 || ok == 0 || ok == n || illegal > n/4 || st.Private < 10 {
			t.Errorf("%s: %d of %d orders succeed, %d illegal, %d private messages", seat, ok, n, illegal, st.Private)
		}
	}
	checkPhases(t, readGame(p.notes))
}

// checkPhases checks that the orders of each phase of a record lead to the next position.
func checkPhases(t *testing.T, g gameRecord) {
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
	p := playGame(t, 1, world.Lineup{}, opening, func(p *Params) { p.MaxYear, p.Rounds = 1902, 2 })
	if want := 1 + 4*(2+1) + 3 + 1; p.depth != want {
		t.Errorf("the longest chain has %d calls, want %d", p.depth, want)
	}
	if n := callsByLabel(p); n["builds"] == 0 || n["message"] != 7*4*2 || n["orders"] != 7*4 || n["results"] != 7*3 {
		t.Errorf("calls by label: %v", n)
	}
	// No press: goals, four orders, three reviews, the last winter.
	p = playGame(t, 1, world.Lineup{}, opening, func(p *Params) { p.MaxYear, p.Rounds = 1902, 0 })
	if want := 1 + 4 + 3 + 1; p.depth != want {
		t.Errorf("without press the longest chain has %d calls, want %d", p.depth, want)
	}
	if n := callsByLabel(p); n["message"] != 0 || n["orders"] != 7*4 || n["results"] != 7*3 {
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

func callsByLabel(p *played) map[string]int {
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
	p := playGame(t, 1, world.Lineup{}, simulated, nil)
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
	p := playGame(t, 1, world.Lineup{}, simulated, func(p *Params) { p.MaxYear, p.Rounds = 1902, 1 })
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
	g := readGame(p.notes)
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
	mixed := allBots("random")
	mixed["FRANCE"] = world.Agent{Name: "greedy", Bot: "greedy"}
	greedy, random := 0, 0
	outcomes := map[string]bool{}
	for deal := range 12 {
		p := playGame(t, deal, mixed, simulated, func(p *Params) { p.MaxYear = 1908 })
		s := summary(t, p)
		greedy += s.Powers["FRANCE"].Centres
		random += s.Powers["GERMANY"].Centres
		for seat, st := range s.Powers {
			if st.Missing > 0 || len(st.Refused) > 0 {
				t.Errorf("deal %d: %s: %d units without orders, refused %v", deal, seat, st.Missing, st.Refused)
			}
		}
		if n := callsByLabel(p); n["message"]+n["start"]+n["results"] > 0 {
			t.Errorf("bots got calls for texts: %v", n)
		}
		b, _ := json.Marshal(p.outcome)
		outcomes[string(b)] = true
		checkPhases(t, readGame(p.notes))
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
	a, _ := json.Marshal(playGame(t, 3, lineup, simulated, change).outcome)
	b, _ := json.Marshal(playGame(t, 3, lineup, simulated, change).outcome)
	if string(a) != string(b) {
		t.Error("the outcomes of the same game differ")
	}
}

// holding orders all units to hold and votes by seat; the vote of "" is for all other seats.
func holding(votes map[string]string) answerer {
	return func(c world.Call) world.Reply {
		vote := votes[c.Seat]
		if vote == "" {
			vote = votes[""]
		}
		return reply(map[string]any{"reason": "", "orders": []string{"A VIE H", "A BUD H", "F TRI H"}, "vote": vote})
	}
}

func TestVotes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		votes   map[string]string
		lineup  world.Lineup
		ended   string
		winners int
	}{
		{"all for a draw", map[string]string{"": voteDraw}, nil, endDraw, 7},
		{"one against", map[string]string{"": voteDraw, "ITALY": voteContinue}, nil, endYear, 0},
		{"one says nothing", map[string]string{"": voteDraw, "ITALY": " "}, nil, endYear, 0},
		{"all concede", map[string]string{"": "ITALY", "ITALY": voteContinue}, nil, endConcession, 1},
		{"one does not concede", map[string]string{"": "ITALY", "TURKEY": "FRANCE"}, nil, endYear, 0},
		{"everybody for itself", map[string]string{"AUSTRIA": "AUSTRIA", "ITALY": "ITALY", "": "FRANCE", "FRANCE": "FRANCE"}, nil, endYear, 0},
		{"bots have no vote", map[string]string{"": "draw"}, world.Lineup{"ITALY": {Bot: "greedy"}}, endDraw, 7},
	}
	for _, c := range cases {
		p := playGame(t, 1, c.lineup, holding(c.votes), func(p *Params) { p.Rounds, p.Diary, p.MaxYear, p.DrawFrom = 0, false, 1903, 1902 })
		s := summary(t, p)
		if s.Ended != c.ended || len(s.Winners) != c.winners {
			t.Errorf("%s: ended by %s with the winners %v; want %s and %d winners", c.name, s.Ended, s.Winners, c.ended, c.winners)
		}
		if c.ended != endYear && (len(s.Centres) != 2 || readGame(p.notes).End.Votes == nil) {
			t.Errorf("%s: ended after %d years", c.name, len(s.Centres)-1)
		}
	}
	p := playGame(t, 1, nil, holding(map[string]string{"": voteDraw}), func(p *Params) { p.Rounds, p.Diary, p.MaxYear = 0, false, 1902 })
	if s := summary(t, p); s.Ended != endYear {
		t.Errorf("without draw_from a vote ended the game: %s", s.Ended)
	}
}

// nearly returns a position in which Turkey can take its eighteenth centre with one move.
func nearly() rules.State {
	return rules.State{
		Name: "F1907M", Units: map[string][]string{"TURKEY": {"F ION"}, "ENGLAND": {"F LON"}},
		Centers: map[string][]string{"TURKEY": strings.Fields("ANK CON SMY BUL GRE RUM SER SEV BUD VIE TRI VEN ROM NAP WAR MOS MUN"), "ENGLAND": strings.Fields("LON EDI LVP TUN")},
	}
}

// TestEnds checks why and when games end, and their scores.
func TestEnds(t *testing.T) {
	t.Parallel()
	solo := func(c world.Call) world.Reply {
		return reply(map[string]any{"reason": "", "orders": []string{"F ION - TUN", "F LON H"}})
	}
	cases := []struct {
		name            string
		change          func(*Params)
		ended, last     string
		turkey, england float64
	}{
		{"solo", func(p *Params) {}, endSolo, "F1907M", 10 + 3 + 18, 10 + 3},
		{"solo by share", func(p *Params) { p.Scoring = scoreShare }, endSolo, "F1907M", 1, 0},
		{"solo by draw", func(p *Params) { p.Scoring = scoreDraw }, endSolo, "F1907M", 1, 0},
		{"welfare continues", func(p *Params) { p.Scoring, p.MaxYear = scoreWelfare, 1907 }, endYear, "W1907A", 17, 2},
		{"phase", func(p *Params) { p.Position.Name, p.EndPhase = "S1907M", "S1907M" }, endPhase, "S1907M", 10 + 17, 10 + 4},
		{"share", func(p *Params) { p.Position.Name, p.EndPhase, p.Scoring = "S1907M", "S1907M", scoreShare }, endPhase, "S1907M", 17.0 / 34, 4.0 / 34},
		{"draw", func(p *Params) { p.Position.Name, p.EndPhase, p.Scoring = "S1907M", "S1907M", scoreDraw }, endPhase, "S1907M", 0.5, 0.5},
	}
	for _, c := range cases {
		p := playGame(t, 1, nil, solo, func(p *Params) {
			p.Rounds, p.Diary, p.Position = 0, false, nearly()
			c.change(p)
		})
		s := summary(t, p)
		if s.Ended != c.ended || s.Last != c.last {
			t.Errorf("%s: ended by %s after %s; want %s after %s", c.name, s.Ended, s.Last, c.ended, c.last)
		}
		if a, b := s.Powers["TURKEY"].Score, s.Powers["ENGLAND"].Score; a != c.turkey || b != c.england {
			t.Errorf("%s: Turkey scores %v, England %v; want %v and %v", c.name, a, b, c.turkey, c.england)
		}
		if out := s.Powers["FRANCE"]; out.Survived || s.Scoring == scoreGame && out.Score != 6 {
			t.Errorf("%s: France has no unit and no centre, and scores %v (survived: %v)", c.name, out.Score, out.Survived)
		}
	}
}

// TestOutOfTheGame checks that a power without centres and units is out and gets no more calls.
func TestOutOfTheGame(t *testing.T) {
	t.Parallel()
	position := rules.State{
		Name: "F1903M", Units: map[string][]string{"FRANCE": {"A PAR"}, "GERMANY": {"A BUR", "A PIC", "A GAS"}, "ITALY": {"A ROM"}},
		Centers: map[string][]string{"FRANCE": {"PAR"}, "GERMANY": {"MUN", "BER", "KIE"}, "ITALY": {"ROM"}},
	}
	p := playGame(t, 1, nil, func(c world.Call) world.Reply {
		if c.Label == "orders" && strings.Contains(c.Ask.Messages[0].Text(), "F1903M (") {
			return reply(map[string]any{"reason": "", "orders": []string{"A BUR - PAR", "A PIC S A BUR - PAR", "A GAS S A BUR - PAR", "A PAR H"}})
		}
		if c.Label == "retreats" {
			return reply(map[string]any{"reason": "", "orders": []string{"A PAR D"}})
		}
		return simulated(c)
	}, func(p *Params) { p.Position, p.MaxYear, p.Rounds = position, 1904, 1 })
	s := summary(t, p)
	if st := s.Powers["FRANCE"]; st.Survived || st.Out != 1903 || st.Score != 3 {
		t.Errorf("%+v", st)
	}
	for _, c := range p.calls {
		if c.Seat == "FRANCE" && strings.Contains(c.Ask.Messages[0].Text(), "It is S1904M") {
			t.Errorf("France is out and gets the call %s", c.Label)
		}
	}
	kinds := map[string]bool{}
	for _, m := range s.Moments {
		kinds[m.Kind] = true
	}
	if !kinds["out"] || !kinds["dislodged"] || !kinds["centre"] {
		t.Errorf("moments: %+v", s.Moments)
	}
}

func TestBestMoments(t *testing.T) {
	t.Parallel()
	b := &tally{}
	for i := range 200 {
		b.moments = append(b.moments, keyMoment{Phase: fmt.Sprint(i), Weight: 3 + i%2})
	}
	b.moments[150].Weight = 10
	best := b.topMoments()
	if len(best) != maxSummaryMoments || !slices.ContainsFunc(best, func(m keyMoment) bool { return m.Weight == 10 }) || best[0].Phase != "1" || best[1].Phase != "3" {
		t.Errorf("%+v", best)
	}
}

// TestAbsentPower checks that a power that never gave a legal order has no scores, while the others
// have theirs, and that messages and betrayals have no score if all calls about them failed.
func TestAbsentPower(t *testing.T) {
	t.Parallel()
	p := playGame(t, 0, nil, func(c world.Call) world.Reply {
		if c.Seat == "ITALY" || c.Label == "message" || c.Label == "start" || c.Label == "results" {
			return world.Reply{Failed: llm.KindTooLong}
		}
		return simulated(c)
	}, func(p *Params) { p.MaxYear, p.Rounds, p.Diary = 1901, 1, true })
	scored := map[string]int{}
	for _, s := range p.outcome.Scores {
		scored[s.Seat]++
		if s.Name == "messages" || s.Name == "betrayals" {
			t.Errorf("all calls about this failed, and the score is %+v", s)
		}
	}
	rec := p.outcome.Data.(*gameSummary)
	if p.outcome.Failed != "" || scored["ITALY"] > 0 || scored["FRANCE"] < 4 || rec.Powers["ITALY"].Failed["orders"] == 0 {
		t.Errorf("%q, scores %v, %+v", p.outcome.Failed, scored, rec.Powers["ITALY"])
	}
	dumb := playGame(t, 0, nil, func(world.Call) world.Reply { return world.Reply{Text: "hi", JSON: []byte(`{"orders":["hi"]}`)} }, func(p *Params) { p.MaxYear = 1901 })
	if rec := dumb.outcome.Data.(*gameSummary); dumb.outcome.Failed != "nobody ever gave a legal order" || rec.Powers["ITALY"].Refused["order: unreadable"] == 0 {
		t.Errorf("%q %+v", dumb.outcome.Failed, rec.Powers["ITALY"])
	}
}
