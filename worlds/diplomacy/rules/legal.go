package rules

import (
	"slices"
)

// Legal returns all legal orders of all powers in a position: by province in the order of
// codes, and for each first the hold, then moves, supports and convoys. Supports of a fleet's
// move name no coast, so that they fit any. It reuses the slice, which may be nil.
func (r *Rules) Legal(p *Position, into []Order) []Order {
	into = into[:0]
	switch p.Phase.Step {
	case Retreats:
		for i := range p.Dislodged {
			into = r.legalRetreats(into, &p.Dislodged[i])
		}
	case Adjustments:
		for i := range p.Units {
			into = r.legalAdjustments(into, p, Province(i))
		}
	default:
		l := lister{rules: r, p: p, out: into, seas: r.fleetsAtSea(p)}
		l.run()
		into = l.out
	}
	return into
}

// Choice is the legal orders at one province: to the unit there, to the unit dislodged there,
// or to build.
type Choice struct {
	Power  Power
	At     Province
	Orders []Order
}

// Choices returns the legal orders by province, in the order of codes.
func (r *Rules) Choices(p *Position) []Choice {
	var choices []Choice
	legal := r.Legal(p, nil)
	for start, end := 0, 0; start < len(legal); start = end {
		at := r.Board.Province(legal[start].At)
		for end < len(legal) && r.Board.Province(legal[end].At) == at {
			end++
		}
		w := p.Units[at].Power
		switch {
		case p.Phase.Step == Retreats:
			w = p.Dislodged[at].Unit.Power
		case w == None:
			w = p.Owners[at]
		}
		choices = append(choices, Choice{w, at, legal[start:end:end]})
	}
	return choices
}

// ChoicesOf returns the choices of one power.
func ChoicesOf(choices []Choice, w Power) []Choice {
	return slices.DeleteFunc(slices.Clone(choices), func(c Choice) bool { return c.Power != w })
}

func (r *Rules) legalRetreats(out []Order, d *Dislodged) []Order {
	if d.Unit.Power == None {
		return out
	}
	for at := range d.Retreats.All() {
		o := NewOrder(Retreat, d.Unit.Type, d.Unit.Location)
		o.To = at
		out = append(out, o)
	}
	return append(out, NewOrder(Disband, d.Unit.Type, d.Unit.Location))
}

func (r *Rules) legalAdjustments(out []Order, p *Position, at Province) []Order {
	if u := p.Units[at]; u.Power != None {
		if p.surplus(u.Power) < 0 {
			out = append(out, NewOrder(Disband, u.Type, u.Location))
		}
		return out
	}
	w := p.Owners[at]
	if w == None || !r.Board.Homes(w).Has(at) || p.surplus(w) <= 0 {
		return out
	}
	out = append(out, NewOrder(Build, Army, Location(at)))
	for _, coast := range r.Board.FleetLocations(at) {
		out = append(out, NewOrder(Build, Fleet, coast))
	}
	return append(out, NewOrder(Waive, boardAny, Location(at)))
}

// lister lists the legal orders of a movement phase.
type lister struct {
	rules *Rules
	p     *Position
	seas  Seas
	out   []Order

	units  []ready
	armies []voyage
}

// ready is a unit and the provinces that it can move to.
type ready struct {
	unit  Unit
	at    Province
	reach Set[Province]
	army  int // its voyage, or -1
}

// voyage is where an army can be carried.
type voyage struct {
	to Set[Province]
	// For each province: the seas that are on all routes to it, and those on any.
	all, any [Provinces]Seas
}

func (l *lister) run() {
	b := l.rules.Board
	l.units = make([]ready, 0, 40)
	l.armies = make([]voyage, 0, 24)
	for i, u := range l.p.Units {
		if u.Power == None {
			continue
		}
		unit := ready{unit: u, at: Province(i), reach: b.Reach(u.Type, u.Location), army: -1}
		if u.Type == Army && b.Terrain(unit.at) == boardCoast && l.seas != 0 {
			unit.army = l.sail(unit.at)
		}
		l.units = append(l.units, unit)
	}
	for i := range l.units {
		l.moves(&l.units[i])
		l.supports(&l.units[i])
		l.convoys(&l.units[i])
	}
}

// sail finds where the army at from can be carried. It returns the index of the voyage, or -1.
func (l *lister) sail(from Province) int {
	found := -1
	for _, c := range l.rules.Board.Crossings(from) {
		if c.Seas&^l.seas != 0 {
			continue
		}
		if found < 0 {
			found = len(l.armies)
			l.armies = append(l.armies, voyage{})
		}
		v := &l.armies[found]
		if !v.to.Has(c.To) {
			v.to.Add(c.To)
			v.all[c.To] = c.Seas
		}
		v.all[c.To] &= c.Seas
		v.any[c.To] |= c.Seas
	}
	return found
}

func (l *lister) moves(u *ready) {
	o := NewOrder(Hold, u.unit.Type, u.unit.Location)
	l.out = append(l.out, o)
	o.Kind = Move
	for to := range l.rules.Board.Moves(u.unit.Type, u.unit.Location).All() {
		o.To = to
		l.out = append(l.out, o)
	}
	if u.army < 0 {
		return
	}
	o.Via = true
	for to := range l.armies[u.army].to.All() {
		o.To = Location(to)
		l.out = append(l.out, o)
	}
}

func (l *lister) supports(u *ready) {
	o := NewOrder(Support, u.unit.Type, u.unit.Location)
	sea := l.rules.Board.SeaOf(u.at)
	for i := range l.units {
		other := &l.units[i]
		if other.at == u.at {
			continue
		}
		o.OfType, o.Of, o.To = other.unit.Type, other.unit.Location, Nowhere
		if u.reach.Has(other.at) {
			l.out = append(l.out, o)
		}
		able := other.reach
		if other.army >= 0 {
			able = able.Or(l.armies[other.army].to)
		}
		both := able.And(u.reach)
		if both.Empty() {
			continue
		}
		for to := range both.All() {
			// A fleet cannot support an army that cannot arrive without its convoy.
			if sea != 0 && !other.reach.Has(to) && l.armies[other.army].all[to]&sea != 0 {
				continue
			}
			o.To = Location(to)
			l.out = append(l.out, o)
		}
	}
}

func (l *lister) convoys(u *ready) {
	sea := l.rules.Board.SeaOf(u.at)
	if sea == 0 {
		return
	}
	o := NewOrder(Convoy, u.unit.Type, u.unit.Location)
	for i := range l.units {
		other := &l.units[i]
		if other.army < 0 {
			continue
		}
		o.OfType, o.Of = other.unit.Type, other.unit.Location
		v := &l.armies[other.army]
		for to := range v.to.All() {
			if v.any[to]&sea != 0 {
				o.To = Location(to)
				l.out = append(l.out, o)
			}
		}
	}
}
