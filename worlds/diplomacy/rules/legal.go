package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Check checks an order of a power against the position. It returns the order with types and
// coasts filled in, or an error that says why it is illegal. It does not check how many units
// a power may build or remove: that depends on its other orders.
func (r *Rules) Check(p *Position, w Power, o Order) (Order, error) {
	var seas seaSet
	if p.Phase.Step == Movement {
		seas = r.fleetsAtSea(p)
	}
	return r.check(p, w, o, seas)
}

// check is Check with the fleets at sea given.
func (r *Rules) check(p *Position, w Power, o Order, seas seaSet) (Order, error) {
	waive := o.Kind == Waive && p.Phase.Step == Adjustments
	switch {
	case w == None || w > Turkey:
		return o, errors.New("it is nobody's order")
	case o.At >= Locations && !waive:
		return o, errors.New("it names no unit")
	case p.Phase.Step == Retreats:
		return r.checkRetreat(p, w, o)
	case p.Phase.Step == Adjustments:
		return r.checkAdjustment(p, w, o)
	}
	return r.checkMovement(p, w, o, seas)
}

// fleetsAtSea are the seas in which a fleet could carry an army.
func (r *Rules) fleetsAtSea(p *Position) seaSet {
	var seas seaSet
	for i := range p.Units {
		if p.Units[i].Power != None {
			seas |= r.Board.seaOf(Province(i))
		}
	}
	return seas
}

func (r *Rules) checkMovement(p *Position, w Power, o Order, seas seaSet) (Order, error) {
	u := p.Units[r.Board.Province(o.At)]
	if u.Power == None {
		return o, fmt.Errorf("there is no unit in %s", r.Board.Code(o.At))
	}
	if err := r.checkOwner(u, w, o.Type); err != nil {
		return o, err
	}
	// An order that names another coast is still for the unit there (4.B.5).
	o.Type, o.At = u.Type, u.Location
	switch o.Kind {
	case Hold:
		return NewOrder(Hold, u.Type, u.Location), nil
	case Move:
		return r.checkMove(u, o, seas)
	case Support:
		return r.checkSupport(p, u, o, seas)
	case Convoy:
		return r.checkConvoy(p, u, o, seas)
	}
	return o, fmt.Errorf("%s is no order of a movement phase", o.Kind)
}

func (r *Rules) checkMove(u Unit, o Order, seas seaSet) (Order, error) {
	from := r.Board.Province(u.Location)
	if o.To >= Locations {
		return o, errors.New("it does not say where to")
	}
	to := r.Board.Province(o.To)
	if to == from {
		return o, errors.New("a unit cannot move to where it is")
	}
	if u.Type == Fleet {
		if o.Via {
			return o, errors.New("a fleet cannot be carried")
		}
		return r.fillCoast(u, o)
	}
	o.To = Location(to) // an army ignores coasts (4.B.6)
	walks := r.Board.Reach(Army, u.Location).Has(to)
	switch {
	case walks && !o.Via:
		return o, nil
	case r.canCarry(from, to, seas):
		return o, nil
	case walks:
		return o, fmt.Errorf("no fleets at sea could carry it to %s", r.Board.Code(o.To))
	case r.Board.Terrain(to) == Sea:
		return o, fmt.Errorf("an army cannot stand in %s", r.Board.Code(o.To))
	}
	return o, fmt.Errorf("%s does not touch %s, and no fleets at sea could carry it; it touches %s",
		r.Board.UnitText(u), r.Board.Code(o.To), r.placesText(r.Board.Moves(u.Type, u.Location)))
}

// checkOwner checks that a unit belongs to a power and has the type that its order names.
func (r *Rules) checkOwner(u Unit, w Power, t Type) error {
	switch {
	case u.Power != w:
		return fmt.Errorf("%s is a unit of %s", r.Board.UnitText(u), u.Power.Name())
	case t != AnyType && t != u.Type:
		return fmt.Errorf("the unit there is %s", r.Board.UnitText(u))
	}
	return nil
}

// resolveCoast returns the location of a set that to means. An order can leave out a coast if the set
// has only one of the province's coasts (4.B.1, 4.B.2).
func (r *Rules) resolveCoast(set Set[Location], to Location) (at Location, found bool, err error) {
	if set.Has(to) {
		return to, true, nil
	}
	var in []Location
	if to < Provinces {
		for _, at := range r.Board.fleetLocations(r.Board.Province(to)) {
			if set.Has(at) {
				in = append(in, at)
			}
		}
	}
	switch len(in) {
	case 0:
		return to, false, nil
	case 1:
		return in[0], true, nil
	}
	return to, false, fmt.Errorf("say which coast: %s or %s", r.Board.Code(in[0]), r.Board.Code(in[1]))
}

// fillCoast finds the coast that a fleet moves to.
func (r *Rules) fillCoast(u Unit, o Order) (Order, error) {
	moves := r.Board.Moves(Fleet, u.Location)
	to, found, err := r.resolveCoast(moves, o.To)
	if o.To = to; found || err != nil {
		return o, err
	}
	return o, fmt.Errorf("%s does not touch %s; it touches %s", r.Board.UnitText(u), r.Board.Code(o.To), r.placesText(moves))
}

func (r *Rules) checkSupport(p *Position, u Unit, o Order, seas seaSet) (Order, error) {
	o, other, err := r.otherUnit(p, u, o)
	if err != nil {
		return o, err
	}
	o.Via = false
	reach := r.Board.Reach(u.Type, u.Location)
	if o.To == Nowhere {
		if !reach.Has(r.Board.Province(o.Of)) {
			return o, fmt.Errorf("%s cannot support in %s, since it could not go there", r.Board.UnitText(u), r.Board.Code(o.Of))
		}
		return o, nil
	}
	if o.To >= Locations || !reach.Has(r.Board.Province(o.To)) {
		return o, fmt.Errorf("%s cannot support into %s, since it could not go there", r.Board.UnitText(u), r.Board.Code(o.To))
	}
	from, to := r.Board.Province(o.Of), r.Board.Province(o.To)
	if from == to {
		return o, fmt.Errorf("%s cannot move to where it is", r.Board.UnitText(other))
	}
	if other.Type == Army {
		o.To = Location(to)
		if r.Board.Reach(Army, o.Of).Has(to) || r.canCarry(from, to, seas&^r.Board.seaOf(r.Board.Province(u.Location))) {
			return o, nil
		}
	} else if r.Board.Moves(Fleet, o.Of).Has(o.To) || o.To < Provinces && r.Board.Reach(Fleet, o.Of).Has(to) {
		return o, nil
	}
	return o, fmt.Errorf("%s cannot move to %s", r.Board.UnitText(other), r.Board.Code(o.To))
}

func (r *Rules) checkConvoy(p *Position, u Unit, o Order, seas seaSet) (Order, error) {
	sea := r.Board.seaOf(r.Board.Province(u.Location))
	if sea == 0 {
		return o, errors.New("only a fleet at sea carries armies")
	}
	o, other, err := r.otherUnit(p, u, o)
	if err != nil {
		return o, err
	}
	if other.Type != Army {
		return o, fmt.Errorf("%s is not an army", r.Board.UnitText(other))
	}
	if o.To >= Locations {
		return o, errors.New("it does not say where to")
	}
	to := r.Board.Province(o.To)
	o.To, o.Via = Location(to), false
	for _, c := range r.Board.crossings(r.Board.Province(o.Of)) {
		if c.To == to && c.Seas&sea != 0 && c.Seas&^seas == 0 {
			return o, nil
		}
	}
	return o, fmt.Errorf("%s is on no route of fleets from %s to %s", r.Board.UnitText(u), r.Board.Code(o.Of), r.Board.Code(o.To))
}

// otherUnit finds the unit that is supported or carried.
func (r *Rules) otherUnit(p *Position, u Unit, o Order) (Order, Unit, error) {
	if o.Of >= Locations {
		return o, Unit{}, errors.New("it does not say for which unit")
	}
	at := r.Board.Province(o.Of)
	other := p.Units[at]
	switch {
	case other.Power == None:
		return o, other, fmt.Errorf("there is no unit in %s", r.Board.Code(o.Of))
	case other == u:
		return o, other, errors.New("a unit cannot do that for itself")
	case o.OfType != AnyType && o.OfType != other.Type:
		return o, other, fmt.Errorf("the unit there is %s", r.Board.UnitText(other))
	}
	o.OfType, o.Of = other.Type, other.Location
	return o, other, nil
}

// canCarry reports whether fleets in seas could carry an army from one province to another.
func (r *Rules) canCarry(from, to Province, seas seaSet) bool {
	for _, c := range r.Board.crossings(from) {
		if c.To == to && c.Seas&^seas == 0 {
			return true
		}
	}
	return false
}

func (r *Rules) placesText(set Set[Location]) string {
	var codes []string
	for p := range set.All() {
		codes = append(codes, r.Board.Code(p))
	}
	slices.Sort(codes)
	return strings.Join(codes, ", ")
}

// legalOrders returns all legal orders of all powers in a position: by province in the order of
// codes, and for each first the hold, then moves, supports and convoys. Supports of a fleet's
// move name no coast, so that they fit any. It reuses the slice, which may be nil.
func (r *Rules) legalOrders(p *Position, into []Order) []Order {
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
		l := movementLister{rules: r, p: p, out: into, seas: r.fleetsAtSea(p)}
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
	legal := r.legalOrders(p, nil)
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
	for _, coast := range r.Board.fleetLocations(at) {
		out = append(out, NewOrder(Build, Fleet, coast))
	}
	return append(out, NewOrder(Waive, AnyType, Location(at)))
}

// movementLister lists the legal orders of a movement phase.
type movementLister struct {
	rules *Rules
	p     *Position
	seas  seaSet
	out   []Order

	units  []unitReach
	armies []voyage
}

// unitReach is a unit and the provinces that it can move to.
type unitReach struct {
	unit  Unit
	at    Province
	reach Set[Province]
	army  int // its voyage, or -1
}

// voyage is where an army can be carried.
type voyage struct {
	to Set[Province]
	// For each province: the seas that are on all routes to it, and those on any.
	all, any [Provinces]seaSet
}

func (l *movementLister) run() {
	b := l.rules.Board
	l.units = make([]unitReach, 0, 40)
	l.armies = make([]voyage, 0, 24)
	for i, u := range l.p.Units {
		if u.Power == None {
			continue
		}
		unit := unitReach{unit: u, at: Province(i), reach: b.Reach(u.Type, u.Location), army: -1}
		if u.Type == Army && b.Terrain(unit.at) == Coast && l.seas != 0 {
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
func (l *movementLister) sail(from Province) int {
	found := -1
	for _, c := range l.rules.Board.crossings(from) {
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

func (l *movementLister) moves(u *unitReach) {
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

func (l *movementLister) supports(u *unitReach) {
	o := NewOrder(Support, u.unit.Type, u.unit.Location)
	sea := l.rules.Board.seaOf(u.at)
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

func (l *movementLister) convoys(u *unitReach) {
	sea := l.rules.Board.seaOf(u.at)
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
