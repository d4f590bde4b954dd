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
	return r.check(p, w, o, r.fleetsAtSea(p))
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
	case r.canCarry(from, to, 0, seas):
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
		if r.Board.Reach(Army, o.Of).Has(to) || r.canCarry(from, to, 0, seas&^r.Board.seaOf(r.Board.Province(u.Location))) {
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
	if r.canCarry(r.Board.Province(o.Of), to, sea, seas) {
		return o, nil
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

// canCarry reports whether fleets in seas could carry an army from one province to another, on a route over all seas of by.
func (r *Rules) canCarry(from, to Province, by, seas seaSet) bool {
	return slices.ContainsFunc(r.Board.routes[from][to], func(way seaSet) bool { return way&^seas == 0 && way&by == by })
}

func (r *Rules) placesText(set Set[Location]) string {
	var codes []string
	for p := range set.All() {
		codes = append(codes, r.Board.Code(p))
	}
	slices.Sort(codes)
	return strings.Join(codes, ", ")
}

// Choice is the legal orders at one province: to the unit there, to the unit dislodged there,
// or to build.
type Choice struct {
	Power  Power
	At     Province
	Orders []Order
}

// Choices returns the legal orders by province, in the order of codes. For a unit that can move they are first the hold, then
// moves, supports and convoys. Supports of a fleet's move name no coast, so that they fit any.
func (r *Rules) Choices(p *Position) []Choice {
	var choices []Choice
	seas := r.fleetsAtSea(p)
	for at := range Province(Provinces) {
		c := Choice{At: at}
		switch p.Phase.Step {
		case Retreats:
			c.Power, c.Orders = p.Dislodged[at].Unit.Power, legalRetreats(&p.Dislodged[at])
		case Adjustments:
			c.Power, c.Orders = r.legalAdjustments(p, at)
		default:
			c.Power, c.Orders = p.Units[at].Power, r.legalMovement(p, at, seas)
		}
		if len(c.Orders) > 0 {
			choices = append(choices, c)
		}
	}
	return choices
}

// ChoicesOf returns the choices of one power.
func ChoicesOf(choices []Choice, w Power) []Choice {
	return slices.DeleteFunc(slices.Clone(choices), func(c Choice) bool { return c.Power != w })
}

func legalRetreats(d *Dislodged) (out []Order) {
	if d.Unit.Power == None {
		return nil
	}
	for at := range d.Retreats.All() {
		o := NewOrder(Retreat, d.Unit.Type, d.Unit.Location)
		o.To = at
		out = append(out, o)
	}
	return append(out, NewOrder(Disband, d.Unit.Type, d.Unit.Location))
}

func (r *Rules) legalAdjustments(p *Position, at Province) (w Power, out []Order) {
	if u := p.Units[at]; u.Power != None {
		if p.surplus(u.Power) < 0 {
			out = append(out, NewOrder(Disband, u.Type, u.Location))
		}
		return u.Power, out
	}
	w = p.Owners[at]
	if w == None || !r.Board.Homes(w).Has(at) || p.surplus(w) <= 0 {
		return w, nil
	}
	out = append(out, NewOrder(Build, Army, Location(at)))
	for _, coast := range r.Board.fleetLocations(at) {
		out = append(out, NewOrder(Build, Fleet, coast))
	}
	return w, append(out, NewOrder(Waive, AnyType, Location(at)))
}

// legalMovement lists the orders of a movement phase for the unit in a province, if there is one.
func (r *Rules) legalMovement(p *Position, at Province, seas seaSet) (out []Order) {
	u := p.Units[at]
	if u.Power == None {
		return nil
	}
	o := NewOrder(Hold, u.Type, u.Location)
	out = append(out, o)
	o.Kind = Move
	for o.To = range r.Board.Moves(u.Type, u.Location).All() {
		out = append(out, o)
	}
	o.Via = true
	for to := range Province(Provinces) {
		if u.Type == Army && r.canCarry(at, to, 0, seas) {
			o.To = Location(to)
			out = append(out, o)
		}
	}
	return r.legalConvoys(r.legalSupports(out, p, at, seas), p, at, seas)
}

func (r *Rules) legalSupports(out []Order, p *Position, at Province, seas seaSet) []Order {
	u := p.Units[at]
	reach := r.Board.Reach(u.Type, u.Location)
	seas &^= r.Board.seaOf(at) // a fleet cannot support an army that it has to carry
	for i, other := range p.Units {
		from := Province(i)
		if other.Power == None || from == at {
			continue
		}
		o := Order{Kind: Support, Type: u.Type, At: u.Location, OfType: other.Type, Of: other.Location, To: Nowhere}
		if reach.Has(from) {
			out = append(out, o)
		}
		walks := r.Board.Reach(other.Type, other.Location)
		for to := range reach.All() {
			if walks.Has(to) || other.Type == Army && r.canCarry(from, to, 0, seas) {
				o.To = Location(to)
				out = append(out, o)
			}
		}
	}
	return out
}

func (r *Rules) legalConvoys(out []Order, p *Position, at Province, seas seaSet) []Order {
	u, sea := p.Units[at], r.Board.seaOf(at)
	if sea == 0 {
		return out
	}
	for from, army := range p.Units {
		if army.Type != Army {
			continue
		}
		o := Order{Kind: Convoy, Type: u.Type, At: u.Location, OfType: Army, Of: army.Location}
		for to := range Province(Provinces) {
			if r.canCarry(Province(from), to, sea, seas) {
				o.To = Location(to)
				out = append(out, o)
			}
		}
	}
	return out
}
