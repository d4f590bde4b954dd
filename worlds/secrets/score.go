package secrets

import (
	"fmt"
	"slices"

	"parley/world"
)

// The modes of scoring.
const (
	modeStandard  = "standard"  // each conversation pays, most if only the other gave its secret away
	modeRetained  = "retained"  // collected secrets pay, rare ones more
	modeDiversity = "diversity" // each different collected secret pays
	modeTargeted  = "targeted"  // the same, and one of them pays far more
)

// payment is what a mode pays for an event.
type payment struct {
	name   string
	points float64
}

// payments lists the payments of a mode. Retained pays by how rare a secret is.
func payments(mode string) []payment {
	switch mode {
	case modeStandard:
		return []payment{{"neither", 0}, {"both", 1}, {"only_other", 3}, {"only_own", 0}}
	case modeDiversity:
		return []payment{{"secret", 2}}
	case modeTargeted:
		return []payment{{"secret", 1}, {"target", 5}}
	}
	return nil
}

// standings counts what each player gained.
type standings struct {
	mode   string
	own    map[string]float64 // payments that differ from those of the mode
	target int                // whose secret is the target, or -1

	points []float64 // of conversations, in mode standard
	held   [][]int   // whose secrets each collected, in order: in the other modes
}

func newStandings(mode string, own map[string]float64, players, target int) *standings {
	return &standings{mode: mode, own: own, target: target, points: make([]float64, players), held: make([][]int, players)}
}

// pays returns what is paid for an event.
func (l *standings) pays(event string) float64 {
	if points, set := l.own[event]; set {
		return points
	}
	for _, p := range payments(l.mode) {
		if p.name == event {
			return p.points
		}
	}
	return 0
}

// settle counts a conversation of a and b.
func (l *standings) settle(a, b int, aRevealed, bRevealed bool) {
	if l.mode == modeStandard {
		l.points[a] += l.pays(standardCase(aRevealed, bRevealed))
		l.points[b] += l.pays(standardCase(bRevealed, aRevealed))
		return
	}
	if aRevealed && !slices.Contains(l.held[b], a) {
		l.held[b] = append(l.held[b], a)
	}
	if bRevealed && !slices.Contains(l.held[a], b) {
		l.held[a] = append(l.held[a], b)
	}
}

// standardCase names the result of a conversation for a player.
func standardCase(own, other bool) string {
	switch {
	case own && other:
		return "both"
	case other:
		return "only_other"
	case own:
		return "only_own"
	}
	return "neither"
}

// totals returns the points of all players.
func (l *standings) totals() []float64 {
	if l.mode == modeStandard {
		return slices.Clone(l.points)
	}
	holders := make([]int, len(l.held)) // of each player's secret; its owner does not count
	for _, held := range l.held {
		for _, owner := range distinct(held) {
			holders[owner]++
		}
	}
	totals := make([]float64, len(l.held))
	for i, held := range l.held {
		for _, owner := range distinct(held) {
			if l.mode == modeRetained {
				totals[i] += float64(len(l.held)) / float64(holders[owner])
				continue
			}
			totals[i] += l.pays("secret")
			if owner == l.target {
				totals[i] += l.pays("target")
			}
		}
	}
	return totals
}

func distinct(owners []int) []int { return slices.Compact(slices.Sorted(slices.Values(owners))) }

// pointBounds returns the lowest and the highest points of a player who had a conversation. It adds as settle and totals do,
// so that no rounding crosses a bound.
func (p *Params) pointBounds() world.Bounds {
	pays := newStandings(p.Mode, p.Points, 0, -1).pays
	var totals []float64
	switch secrets := min(p.Players-1, p.Rounds); p.Mode {
	case modeStandard:
		for _, event := range payments(p.Mode) {
			v := pays(event.name)
			totals = append(totals, v, addRepeatedly(v, p.Rounds))
		}
	case modeRetained:
		totals = []float64{0, addRepeatedly(float64(p.Players), secrets)}
	default:
		secret, target := pays("secret"), pays("target")
		totals = []float64{0, secret, addRepeatedly(secret, secrets), secret + target}
		for before := range secrets { // the target can be any of them
			total := addRepeatedly(secret, before+1) + target
			for range secrets - before - 1 {
				total += secret
			}
			totals = append(totals, total)
		}
	}
	b := world.Bounds{Low: slices.Min(totals), High: slices.Max(totals)}
	if b.Any() { // nothing pays: equal bounds would declare nothing
		return world.Anything()
	}
	return b
}

// addRepeatedly adds a payment n times.
func addRepeatedly(pays float64, n int) (total float64) {
	for range n {
		total += pays
	}
	return total
}

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
	if p.Judge != judgeNone {
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
			revealed += asInt(own)
			obtained += asInt(other)
			optimal += asInt(other && !own)
			if v := t.verdicts; v != nil {
				verdicts++
				judged += asInt(v[side].Revealed)
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
			add("won", float64(asInt(g.winner() == p.seat)))
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
		both += asInt(a && b)
		one += asInt(a != b)
		for side, v := range t.verdicts {
			verdicts++
			agreed += asInt(v.Revealed == t.sides[side].revealed)
		}
	}
	scores := []world.Score{{Name: "both", Value: share(both, len(held))}, {Name: "one-sided", Value: share(one, len(held))}}
	if verdicts > 0 {
		scores = append(scores, world.Score{Name: "agreement", Value: share(agreed, verdicts)})
	}
	return scores
}

func asInt(yes bool) int {
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
		Reveals: append([]Reveal{}, t.reveals...), Named: t.named, Verdicts: t.verdicts, Revealed: []string{}, Failed: t.failed,
	}
	a, b := t.revealed()
	for i, yes := range []bool{a, b} {
		if yes && t.failed == "" {
			c.Revealed = append(c.Revealed, c.Seats[i])
		}
	}
	return c
}
