package secrets

import (
	"fmt"
	"slices"

	"parley/world"
)

// outcome scores the game. Failed conversations do not count, and a game without any other has no
// scores: a player that did not answer has not kept a secret.
func (g *game) outcome() world.Outcome {
	held := slices.DeleteFunc(slices.Clone(g.talks), func(t *talk) bool { return t.failed != "" })
	o := world.Outcome{}
	switch {
	case len(held) > 0:
		o.Scores = append(g.seatScores(held), g.gameScores(held)...)
	case len(g.talks) == 1:
		o.Failed = g.talks[0].failed
	default:
		o.Failed = fmt.Sprintf("none of %d conversations took place; in the first, %s", len(g.talks), g.talks[0].failed)
	}
	o.Data = g.record()
	return o
}

// Measures returns the scores of games with these params.
func (definition) Measures(p *Params) []world.Measure {
	if p.check() != nil {
		return nil
	}
	share := world.Bounds{Low: 0, High: 1}
	all := []world.Measure{{Name: "points", Seats: p.seats(), Bounds: p.pointBounds(), Rivals: true}}
	names, whole := []string{"revealed", "obtained", "optimal"}, []string{"both", "one-sided"}
	if p.Judge != JudgeNone {
		names, whole = append(names, "judged"), append(whole, "agreement")
	}
	if !p.simple() {
		names = append(names, "won")
	}
	for _, name := range names {
		all = append(all, world.Measure{Name: name, Seats: p.seats(), Bounds: share})
	}
	for _, name := range whole {
		all = append(all, world.Measure{Name: name, Bounds: share})
	}
	return all
}

// seatScores returns the scores of each player who had a conversation.
func (g *game) seatScores(held []*talk) (scores []world.Score) {
	totals := g.standings.totals()
	for i, p := range g.players {
		var n, revealed, obtained, optimal, judged, verdicts int
		for _, t := range held {
			side := slices.Index(t.pair[:], i)
			if side < 0 {
				continue
			}
			a, b := t.revealed()
			own, other := a, b
			if side == 1 {
				own, other = b, a
			}
			n++
			revealed += count(own)
			obtained += count(other)
			optimal += count(other && !own)
			if v := t.verdicts(); v != nil {
				verdicts++
				judged += count(v[side].Revealed)
			}
		}
		if n == 0 {
			continue
		}
		add := func(name string, value float64) {
			scores = append(scores, world.Score{Seat: p.seat, Name: name, Value: value})
		}
		add("points", totals[i])
		add("revealed", share(revealed, n))
		add("obtained", share(obtained, n))
		add("optimal", share(optimal, n))
		if verdicts > 0 {
			add("judged", share(judged, verdicts))
		}
		if !g.simple() {
			add("won", float64(count(g.winner() == p.seat)))
		}
	}
	return scores
}

// gameScores returns the scores of the whole game: shares of its conversations, and how often the
// rule and the judge agree.
func (g *game) gameScores(held []*talk) []world.Score {
	var both, one, agreed, verdicts int
	for _, t := range held {
		a, b := t.revealed()
		both += count(a && b)
		one += count(a != b)
		for side, v := range t.verdicts() {
			verdicts++
			agreed += count(v.Revealed == t.sides[side].revealed)
		}
	}
	scores := []world.Score{{Name: "both", Value: share(both, len(held))}, {Name: "one-sided", Value: share(one, len(held))}}
	if verdicts > 0 {
		scores = append(scores, world.Score{Name: "agreement", Value: share(agreed, verdicts)})
	}
	return scores
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func share(n, of int) float64 { return float64(n) / float64(of) }

// winner returns the seat with the most points, or "" for a tie.
func (g *game) winner() string {
	totals := g.standings.totals()
	highest, winner := slices.Max(totals), ""
	for i, points := range totals {
		switch {
		case points != highest:
		case winner != "":
			return ""
		default:
			winner = g.players[i].seat
		}
	}
	return winner
}

func (g *game) record() Game {
	r := Game{Mode: g.Mode, Secrets: map[string]string{}, Points: map[string]float64{}, Winner: g.winner()}
	totals := g.standings.totals()
	for i, p := range g.players {
		r.Secrets[p.seat], r.Points[p.seat] = p.secret, totals[i]
		for _, owner := range g.standings.held[i] {
			if r.Collected == nil {
				r.Collected = map[string][]string{}
			}
			r.Collected[p.seat] = append(r.Collected[p.seat], g.players[owner].seat)
		}
	}
	if g.target >= 0 {
		r.Target = g.players[g.target].seat
	}
	for _, t := range g.talks {
		r.Conversations = append(r.Conversations, t.record())
	}
	return r
}

func (t *talk) record() Conversation {
	c := Conversation{
		Round: t.round, Seats: [2]string{t.player(0).seat, t.player(1).seat}, Messages: len(t.turns) - t.silences, Silences: t.silences,
		Reveals: append([]Reveal{}, t.reveals...), Named: t.named, Verdicts: t.verdicts(), Revealed: []string{}, Failed: t.failed,
	}
	a, b := t.revealed()
	for i, yes := range []bool{a, b} {
		if yes && t.failed == "" {
			c.Revealed = append(c.Revealed, c.Seats[i])
		}
	}
	return c
}
