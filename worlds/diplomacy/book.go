package diplomacy

import (
	"fmt"
	"slices"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// book counts the events of a game.
type book struct {
	g        *game
	counts   []recordCount
	moments  []Moment
	sums     [rules.Turkey + 1][rules.Turkey + 1]int // of relations
	phases   int                                     // movement phases with relations
	last     rules.Phase                             // the last phase that was played
	played   string                                  // its name
	unjudged int                                     // phases without an answer of the judge
}

func newStats() *recordPower {
	return &recordPower{Orders: map[string]map[string]int{}, Refused: map[string]int{}, Failed: map[string]int{}}
}

func newBook(g *game) *book {
	b := &book{g: g}
	b.count(g.pos.Phase.Year - 1)
	return b
}

// count records the centres of every power after a year.
func (b *book) count(year int) {
	c := recordCount{Year: year, Centres: map[string]int{}}
	for _, p := range b.g.players {
		c.Centres[p.seat] = b.g.pos.Centres(p.power)
	}
	b.counts = append(b.counts, c)
}

// phase counts the results of a phase, before the game continues.
func (b *book) phase(out *rules.Outcome) {
	b.last, b.played = b.g.pos.Phase, b.g.pos.Phase.String()
	for _, p := range b.g.players {
		for i, r := range out.Results[p.power] {
			if p.orders[i].missing {
				continue
			}
			kind := r.Order.Kind.String()
			p.stats.Orders[kind] = put(p.stats.Orders[kind], r.Code.String(), p.stats.Orders[kind][r.Code.String()]+1)
		}
	}
	if b.g.pos.Phase.Step == rules.Movement {
		if b.g.Diary {
			b.relations()
		}
		b.strikes(out)
	}
	b.captures(&out.After)
}

// relations adds up how powers see each other, and counts alliances.
func (b *book) relations() {
	b.phases++
	alive := b.g.writers()
	for _, p := range alive {
		for _, other := range alive {
			if p == other {
				continue
			}
			b.sums[p.power][other.power] += int(p.relations[other.power])
			if p.relations[other.power] >= friendly && other.relations[p.power] >= friendly {
				p.stats.Allied++
			}
		}
	}
}

// strikes records which powers dislodged units of which others.
func (b *book) strikes(out *rules.Outcome) {
	for i := range out.After.Dislodged {
		d := &out.After.Dislodged[i]
		if d.Unit.Power == rules.None || d.Attacker >= rules.Locations {
			continue
		}
		attacker := b.g.pos.Units[b.g.rules.Board.Province(d.Attacker)].Power
		if attacker == rules.None || attacker == d.Unit.Power {
			continue
		}
		b.add("dislodged", attacker, d.Unit.Power, 4, "%s drove out %s of %s", attacker.Name(), b.g.rules.Board.UnitText(d.Unit), d.Unit.Power.Name())
		b.betrayal(attacker, d.Unit.Power)
	}
}

// captures records the centres that one power took from another.
func (b *book) captures(after *rules.Position) {
	for c := range b.g.rules.Board.SupplyCentres().All() {
		was, is := b.g.pos.Owners[c], after.Owners[c]
		if was == is || was == rules.None {
			continue
		}
		weight := 3
		if b.g.rules.Board.Homes(was).Has(c) {
			weight = 5
		}
		b.add("centre", is, was, weight, "%s took %s from %s", is.Name(), b.g.rules.Board.Code(rules.Location(c)), was.Name())
		b.betrayal(is, was)
	}
}

// betrayal records that a power struck another that saw it as a friend. It counts once a
// season: a dislodgement and the capture that follows are one betrayal.
func (b *book) betrayal(by, of rules.Power) {
	victim := b.g.players[of-1]
	if victim.bot || !b.g.Diary || victim.relations[by] < friendly {
		return
	}
	if slices.ContainsFunc(b.moments, func(m Moment) bool {
		return m.Kind == "betrayal" && strings.HasPrefix(b.played, m.Phase[:len(m.Phase)-1]) && m.Power == by.String() && m.Other == of.String()
	}) {
		return
	}
	stats := b.g.players[by-1].stats
	stats.Betrayed++
	if stats.Victims == nil {
		stats.Victims = map[string]int{}
	}
	stats.Victims[of.String()]++
	b.add("betrayal", by, of, 8, "%s struck %s, who called it %s", by.Name(), of.Name(), victim.relations[by])
}

func (b *book) add(kind string, power, other rules.Power, weight int, format string, args ...any) {
	m := Moment{Phase: b.played, Kind: kind, Power: power.String(), Text: fmt.Sprintf(format, args...), Weight: weight}
	if other != rules.None {
		m.Other = other.String()
	}
	b.moments = append(b.moments, m)
}

// maxMoments is how many moments a summary keeps.
const maxMoments = 60

// best returns the moments with the most weight, in the order in which they happened.
func (b *book) best() []Moment {
	var index []int
	for i := range b.moments {
		index = append(index, i)
	}
	slices.SortStableFunc(index, func(i, j int) int { return b.moments[j].Weight - b.moments[i].Weight })
	index = index[:min(len(index), maxMoments)]
	slices.Sort(index)
	var best []Moment
	for _, i := range index {
		best = append(best, b.moments[i])
	}
	return best
}

// advance records that the game moved to the next phase.
func (b *book) advance(before *rules.Position) {
	year := before.Phase.Year
	for _, p := range b.g.players {
		if before.Alive(p.power) && !b.g.pos.Alive(p.power) {
			p.stats.Out = year
			b.add("out", p.power, rules.None, 7, "%s is out of the game", p.power.Name())
		}
	}
	if b.g.pos.Phase.Year <= year {
		return
	}
	b.yearEnds(year)
	for _, p := range b.g.players {
		p.stats.Welfare += max(0, b.g.pos.Centres(p.power)-b.g.pos.Count(p.power))
	}
}

// yearEnds counts at the end of a year.
func (b *book) yearEnds(year int) {
	last := b.counts[len(b.counts)-1]
	b.count(year)
	now := b.counts[len(b.counts)-1]
	for _, p := range b.g.players {
		switch change := now.Centres[p.seat] - last.Centres[p.seat]; {
		case change >= 3:
			b.add("surge", p.power, rules.None, 6, "%s won %d centres in %d", p.power.Name(), change, year)
		case change <= -3:
			b.add("collapse", p.power, rules.None, 6, "%s lost %d centres in %d", p.power.Name(), -change, year)
		}
	}
}

// ended records how the game ended.
func (b *book) ended(reason string, winners []rules.Power) {
	if b.last.Season != rules.Spring && b.last.Year > b.counts[len(b.counts)-1].Year {
		b.yearEnds(b.last.Year) // fall was played, winter was not
	}
	switch reason {
	case recordSolo, concession:
		b.add(reason, winners[0], rules.None, 10, "%s won the game (%s)", winners[0].Name(), reason)
	case recordDraw:
		b.add(reason, winners[0], rules.None, 9, "%d powers agreed to a draw", len(winners))
	}
}
