package diplomacy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

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
		{"all for a draw", map[string]string{"": voteDraw}, nil, recordDraw, 7},
		{"one against", map[string]string{"": voteDraw, "ITALY": voteContinue}, nil, recordYear, 0},
		{"one says nothing", map[string]string{"": voteDraw, "ITALY": " "}, nil, recordYear, 0},
		{"all concede", map[string]string{"": "ITALY", "ITALY": voteContinue}, nil, concession, 1},
		{"one does not concede", map[string]string{"": "ITALY", "TURKEY": "FRANCE"}, nil, recordYear, 0},
		{"everybody for itself", map[string]string{"AUSTRIA": "AUSTRIA", "ITALY": "ITALY", "": "FRANCE", "FRANCE": "FRANCE"}, nil, recordYear, 0},
		{"bots have no vote", map[string]string{"": "draw"}, world.Lineup{"ITALY": {Bot: "greedy"}}, recordDraw, 7},
	}
	for _, c := range cases {
		p := playDiplomacy(t, 1, c.lineup, holding(c.votes), func(p *Params) { p.Rounds, p.Diary, p.MaxYear, p.DrawFrom = 0, false, 1903, 1902 })
		s := summary(t, p)
		if s.Ended != c.ended || len(s.Winners) != c.winners {
			t.Errorf("%s: ended by %s with the winners %v; want %s and %d winners", c.name, s.Ended, s.Winners, c.ended, c.winners)
		}
		if c.ended != recordYear && (len(s.Centres) != 2 || Read(p.notes).End.Votes == nil) {
			t.Errorf("%s: ended after %d years", c.name, len(s.Centres)-1)
		}
	}
	p := playDiplomacy(t, 1, nil, holding(map[string]string{"": voteDraw}), func(p *Params) { p.Rounds, p.Diary, p.MaxYear = 0, false, 1902 })
	if s := summary(t, p); s.Ended != recordYear {
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
		{"solo", func(p *Params) {}, recordSolo, "F1907M", 10 + 3 + 18, 10 + 3},
		{"solo by share", func(p *Params) { p.Scoring = scoreShare }, recordSolo, "F1907M", 1, 0},
		{"solo by draw", func(p *Params) { p.Scoring = scoreDraw }, recordSolo, "F1907M", 1, 0},
		{"welfare continues", func(p *Params) { p.Scoring, p.MaxYear = scoreWelfare, 1907 }, recordYear, "W1907A", 17, 2},
		{"phase", func(p *Params) { p.Position.Name, p.EndPhase = "S1907M", "S1907M" }, recordUntil, "S1907M", 10 + 17, 10 + 4},
		{"share", func(p *Params) { p.Position.Name, p.EndPhase, p.Scoring = "S1907M", "S1907M", scoreShare }, recordUntil, "S1907M", 17.0 / 34, 4.0 / 34},
		{"draw", func(p *Params) { p.Position.Name, p.EndPhase, p.Scoring = "S1907M", "S1907M", scoreDraw }, recordUntil, "S1907M", 0.5, 0.5},
	}
	for _, c := range cases {
		p := playDiplomacy(t, 1, nil, solo, func(p *Params) {
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
	p := playDiplomacy(t, 1, nil, func(c world.Call) world.Reply {
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
	b := &book{}
	for i := range 200 {
		b.moments = append(b.moments, Moment{Phase: fmt.Sprint(i), Weight: 3 + i%2})
	}
	b.moments[150].Weight = 10
	best := b.best()
	if len(best) != maxMoments || !slices.ContainsFunc(best, func(m Moment) bool { return m.Weight == 10 }) || best[0].Phase != "1" || best[1].Phase != "3" {
		t.Errorf("%+v", best)
	}
}

// TestAbsentPower checks that a power that never gave a legal order has no scores, while the others
// have theirs, and that messages and betrayals have no score if all calls about them failed.
func TestAbsentPower(t *testing.T) {
	t.Parallel()
	p := playDiplomacy(t, 0, nil, func(c world.Call) world.Reply {
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
	rec := p.outcome.Data.(*recordSummary)
	if p.outcome.Failed != "" || scored["ITALY"] > 0 || scored["FRANCE"] < 4 || rec.Powers["ITALY"].Failed["orders"] == 0 {
		t.Errorf("%q, scores %v, %+v", p.outcome.Failed, scored, rec.Powers["ITALY"])
	}
	dumb := playDiplomacy(t, 0, nil, func(world.Call) world.Reply { return world.Reply{Text: "hi", JSON: []byte(`{"orders":["hi"]}`)} }, func(p *Params) { p.MaxYear = 1901 })
	if rec := dumb.outcome.Data.(*recordSummary); dumb.outcome.Failed != "nobody ever gave a legal order" || rec.Powers["ITALY"].Refused["order: unreadable"] == 0 {
		t.Errorf("%q %+v", dumb.outcome.Failed, rec.Powers["ITALY"])
	}
}
