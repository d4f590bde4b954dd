package diplomacy

import (
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/world/exhibit"
	"parley/worlds/diplomacy/rules"
)

// tally counts the events of a game.
type tally struct {
	g        *game
	counts   []centreCount
	moments  []keyMoment
	sums     [rules.Turkey + 1][rules.Turkey + 1]int // of relations
	phases   int                                     // movement phases with relations
	last     rules.Phase                             // the last phase that was played
	played   string                                  // its name
	judged   int                                     // phases with an answer of the judge
	unjudged int                                     // phases without one
}

func newTally(g *game) *tally {
	t := &tally{g: g}
	t.count(g.pos.Phase.Year - 1)
	return t
}

// count records the centres of every power after a year.
func (t *tally) count(year int) {
	c := centreCount{Year: year, Centres: map[string]int{}}
	for _, p := range t.g.players {
		c.Centres[p.seat] = t.g.pos.Centres(p.power)
	}
	t.counts = append(t.counts, c)
}

// phase counts the results of a phase, before the game continues.
func (t *tally) phase(out *rules.Outcome) {
	t.last, t.played = t.g.pos.Phase, t.g.pos.Phase.String()
	for _, p := range t.g.players {
		for i, r := range out.Results[p.power] {
			if p.orders[i].missing {
				continue
			}
			kind := r.Order.Kind.String()
			p.stats.Orders[kind] = setKey(p.stats.Orders[kind], r.Code.String(), p.stats.Orders[kind][r.Code.String()]+1)
		}
	}
	if t.g.pos.Phase.Step == rules.Movement {
		if t.g.Diary {
			t.relations()
		}
		t.dislodgements(out)
	}
	t.captures(&out.After)
}

// relations adds up how powers see each other, and counts alliances.
func (t *tally) relations() {
	t.phases++
	alive := t.g.writers()
	for _, p := range alive {
		for _, other := range alive {
			if p == other {
				continue
			}
			t.sums[p.power][other.power] += int(p.relations[other.power])
			if p.relations[other.power] >= friendly && other.relations[p.power] >= friendly {
				p.stats.Allied++
			}
		}
	}
}

// dislodgements records which powers dislodged units of which others.
func (t *tally) dislodgements(out *rules.Outcome) {
	for i := range out.After.Dislodged {
		d := &out.After.Dislodged[i]
		if d.Unit.Power == rules.None || d.Attacker >= rules.Locations {
			continue
		}
		attacker := t.g.pos.Units[t.g.rules.Board.Province(d.Attacker)].Power
		if attacker == rules.None || attacker == d.Unit.Power {
			continue
		}
		unit := t.g.rules.Board.UnitText(d.Unit)
		t.add("dislodged", attacker, d.Unit.Power, 4, "%s drove out %s of %s", attacker.Name(), unit, d.Unit.Power.Name())
		t.betrayal(attacker, d.Unit.Power, "drove out "+unit)
	}
}

// captures records the centres that one power took from another.
func (t *tally) captures(after *rules.Position) {
	for c := range t.g.rules.Board.SupplyCentres().All() {
		was, is := t.g.pos.Owners[c], after.Owners[c]
		if was == is || was == rules.None {
			continue
		}
		weight := 3
		if t.g.rules.Board.Homes(was).Has(c) {
			weight = 5
		}
		code := t.g.rules.Board.Code(rules.Location(c))
		t.add("centre", is, was, weight, "%s took %s from %s", is.Name(), code, was.Name())
		t.betrayal(is, was, "took "+code)
	}
}

// betrayal records that a power struck another that saw it as a friend, and how. It counts once a
// season: a dislodgement and the capture that follows are one betrayal.
func (t *tally) betrayal(by, of rules.Power, how string) {
	victim := t.g.players[of-1]
	if victim.bot || !t.g.Diary || victim.relations[by] < friendly {
		return
	}
	if slices.ContainsFunc(t.moments, func(m keyMoment) bool {
		return m.Kind == momentBetrayal && strings.HasPrefix(t.played, m.Phase[:len(m.Phase)-1]) && m.Power == by.String() && m.Other == of.String()
	}) {
		return
	}
	stats := t.g.players[by-1].stats
	stats.Betrayed++
	stats.Victims = setKey(stats.Victims, of.String(), stats.Victims[of.String()]+1)
	t.add(momentBetrayal, by, of, 7+int(victim.relations[by]), "%s struck %s, who called it %s: it %s", by.Name(), of.Name(), victim.relations[by], how)
}

// brokenPromise records that a power broke a promise by the orders of the current phase. Going where it promised not to go
// weighs as much as striking a friend; striking an ally weighs more.
func (t *tally) brokenPromise(p *promiseRecord, from rules.Power) {
	to, weight := "all", 6
	if power, ok := rules.ParsePower(p.To); ok {
		to = power.Name()
	}
	if p.Kind == promiseStayOut || p.Kind == promiseNoAttack {
		weight = 8
	}
	text := fmt.Sprintf("%s promised %s %s", from.Name(), to, p.promised())
	if p.Quote != "" {
		text += ": “" + p.Quote + "”"
	}
	t.moments = append(t.moments, keyMoment{Phase: p.Phase, Kind: momentPromise, Power: p.From, Other: p.To, Text: text, Weight: weight})
}

func (t *tally) add(kind string, power, other rules.Power, weight int, format string, args ...any) {
	m := keyMoment{Phase: t.played, Kind: kind, Power: power.String(), Text: fmt.Sprintf(format, args...), Weight: weight}
	if other != rules.None {
		m.Other = other.String()
	}
	t.moments = append(t.moments, m)
}

// A summary keeps this many broken promises, and this many other moments.
const (
	maxSummaryPromises = 20
	maxSummaryMoments  = 60
)

// topMoments returns the moments with the most weight, in the order in which they happened.
func (t *tally) topMoments() []keyMoment {
	var promises, others []int
	for i, m := range t.moments {
		if m.Kind == momentPromise {
			promises = append(promises, i)
		} else {
			others = append(others, i)
		}
	}
	top := func(index []int, limit int) []int {
		slices.SortStableFunc(index, func(i, j int) int { return t.moments[j].Weight - t.moments[i].Weight })
		return index[:min(len(index), limit)]
	}
	index := append(top(promises, maxSummaryPromises), top(others, maxSummaryMoments)...)
	slices.Sort(index)
	var best []keyMoment
	for _, i := range index {
		best = append(best, t.moments[i])
	}
	return best
}

// advance records that the game moved to the next phase.
func (t *tally) advance(before *rules.Position) {
	year := before.Phase.Year
	for _, p := range t.g.players {
		if before.Alive(p.power) && !t.g.pos.Alive(p.power) {
			p.stats.Out = year
			t.add("out", p.power, rules.None, 7, "%s is out of the game", p.power.Name())
		}
	}
	if t.g.pos.Phase.Year <= year {
		return
	}
	t.yearEnds(year)
	for _, p := range t.g.players {
		p.stats.Welfare += max(0, t.g.pos.Centres(p.power)-t.g.pos.Count(p.power))
	}
}

// yearEnds counts at the end of a year.
func (t *tally) yearEnds(year int) {
	last := t.counts[len(t.counts)-1]
	t.count(year)
	now := t.counts[len(t.counts)-1]
	for _, p := range t.g.players {
		switch change := now.Centres[p.seat] - last.Centres[p.seat]; {
		case change >= 3:
			t.add("surge", p.power, rules.None, 6, "%s won %d centres in %d", p.power.Name(), change, year)
		case change <= -3:
			t.add("collapse", p.power, rules.None, 6, "%s lost %d centres in %d", p.power.Name(), -change, year)
		}
	}
}

// ended records how the game ended.
func (t *tally) ended(reason string, winners []rules.Power) {
	if t.last.Season != rules.Spring && t.last.Year > t.counts[len(t.counts)-1].Year {
		t.yearEnds(t.last.Year) // fall was played, winter was not
	}
	switch reason {
	case endSolo, endConcession:
		t.add(reason, winners[0], rules.None, 10, "%s won the game (%s)", winners[0].Name(), reason)
	case endDraw:
		t.add(reason, winners[0], rules.None, 9, "%d powers agreed to a draw", len(winners))
	}
}

// The scorings.
const (
	scoreGame    = "game"
	scoreShare   = "share"
	scoreDraw    = "draw"
	scoreWelfare = "welfare"
)

// scoringText explains the scoring to players.
func scoringText(scoring string) string {
	const solo = "Whoever owns 18 of the 34 supply centres after a fall wins. "
	switch scoring {
	case scoreShare:
		return solo + "Without a winner, your share of the centres at the end is your score."
	case scoreDraw:
		return solo + "Without a winner, all who are left share the victory equally: the fewer, the better."
	case scoreWelfare:
		return "After each winter you score a point for every supply centre that you keep no unit for; the sum of these points is all that counts, and nobody wins by conquest."
	}
	return solo + "Without a winner, every year you survive and every centre you own at the end count."
}

// score is a power's score.
func (g *game) score(p *player) float64 {
	centres := g.pos.Centres(p.power)
	won := g.won(p)
	switch g.Scoring {
	case scoreShare:
		if won {
			return 1
		}
		if g.decided() {
			return 0
		}
		return float64(centres) / rules.Centres
	case scoreDraw:
		switch {
		case won:
			return 1
		case g.decided() || !g.pos.Alive(p.power):
			return 0
		}
		return 1 / float64(len(g.alive()))
	case scoreWelfare:
		return float64(p.stats.Welfare)
	}
	last := g.MaxYear - 1900
	switch {
	case won:
		return float64(last + g.MaxYear - g.tally.last.Year + 18)
	case p.stats.Out > 0:
		return float64(p.stats.Out - 1900)
	}
	return float64(last + centres)
}

// decided reports whether one power won.
func (g *game) decided() bool {
	return len(g.end.Winners) == 1 && g.end.Reason != endDraw
}

func (g *game) won(p *player) bool { return g.decided() && g.end.Winners[0] == p.seat }

// outcome returns the scores and the data of the game.
func (g *game) outcome() world.Outcome {
	o := world.Outcome{}
	s := &gameSummary{
		Ended: g.end.Reason, Last: g.tally.played, Winners: g.end.Winners, Scoring: g.Scoring, Press: g.Rounds > 0,
		Powers: map[string]*powerStats{}, Centres: g.tally.counts, Relations: g.meanRelations(), Moments: g.tally.topMoments(), Judged: g.tally.judged, Unjudged: g.tally.unjudged,
	}
	for _, p := range g.players {
		st := p.stats
		st.Score, st.Centres, st.Units = g.score(p), g.pos.Centres(p.power), g.pos.Count(p.power)
		st.Survived, st.Solo = g.pos.Alive(p.power), g.won(p)
		s.Powers[p.seat] = st
		o.Scores = append(o.Scores, g.scores(p)...)
	}
	o.Scores = append(o.Scores, world.Score{Name: "solo", Value: exhibit.Indicator(g.decided())}, world.Score{Name: "draw", Value: exhibit.Indicator(g.end.Reason == endDraw)},
		world.Score{Name: "years", Value: float64(len(g.tally.counts) - 1)})
	if g.nobodyOrdered() {
		o.Failed, o.Scores = g.ordersAsked.Because("nobody ever gave a legal order"), nil
	}
	o.Data = s
	return o
}

// Measures are the scores of games with these params.
func (d *definition) Measures(p *Params) []world.Measure {
	if d.check(p) != nil {
		return nil
	}
	var all []world.Measure
	for _, name := range powerScores() {
		if name == "messages" && p.Rounds == 0 || name == "betrayals" && !p.Diary {
			continue
		}
		rivals := name == "score" && p.Scoring != scoreWelfare // one power's welfare does not reduce another's
		all = append(all, world.Measure{Name: name, Seats: rules.PowerNames(), Bounds: scoreBounds(name, p.Scoring), Rivals: rivals})
	}
	return append(all, world.Measure{Name: "solo", Bounds: world.Share()}, world.Measure{Name: "draw", Bounds: world.Share()}, world.Measure{Name: "years", Bounds: world.AtLeast0()})
}

// nobodyOrdered reports whether orders were due and no power ever gave a legal one: then there is
// nothing to score.
func (g *game) nobodyOrdered() bool {
	absent := false
	for _, p := range g.players {
		if p.stats.given() > 0 {
			return false
		}
		absent = absent || p.neverOrdered()
	}
	return absent
}

// neverOrdered reports whether orders of a power were due and it never gave a legal one: its units only
// held, which says nothing about its agent.
func (p *player) neverOrdered() bool { return p.stats.given() == 0 && p.stats.Missing > 0 }

// scores returns the scores of a power: none if it never gave a legal order, and none about
// messages if every question for messages failed.
func (g *game) scores(p *player) []world.Score {
	st := p.stats
	var list []world.Score
	if p.neverOrdered() {
		return nil
	}
	add := func(name string, value float64) {
		list = append(list, world.Score{Seat: p.seat, Name: name, Value: value})
	}
	add("score", st.Score)
	add("centres", float64(st.Centres))
	add("survived", exhibit.Indicator(st.Survived))
	add("solo", exhibit.Indicator(st.Solo))
	if n, ok := st.active(); n > 0 {
		add("success", float64(ok)/float64(n))
	}
	if n, illegal := st.written(); n > 0 && !p.bot {
		add("invalid", float64(illegal)/float64(n))
	}
	if g.Rounds > 0 && !p.bot && (p.wroteMessages || p.stats.Failed["message"] == 0) {
		add("messages", float64(st.Private+st.Public))
	}
	if g.Diary && g.relationsKnown(p) {
		add("betrayals", float64(st.Betrayed))
	}
	if n := st.Kept + st.Broken; n > 0 {
		add("kept", float64(st.Kept)/float64(n))
	}
	return list
}

// relationsKnown reports whether the relations of others to a power are known: whether one of those that
// keep a diary ever gave its relations, or nobody keeps one.
func (g *game) relationsKnown(p *player) bool {
	writers := 0
	for _, other := range g.players {
		if other == p || other.bot {
			continue
		}
		if other.gaveRelations {
			return true
		}
		writers++
	}
	return writers == 0
}

// meanRelations is how powers saw each other, the mean over the game.
func (g *game) meanRelations() map[string]map[string]float64 {
	if g.tally.phases == 0 {
		return nil
	}
	all := map[string]map[string]float64{}
	for _, p := range g.players {
		if p.bot {
			continue
		}
		all[p.seat] = map[string]float64{}
		for _, other := range g.players {
			if other != p && !other.bot {
				all[p.seat][other.seat] = float64(g.tally.sums[p.power][other.power]) / float64(g.tally.phases)
			}
		}
	}
	return all
}
