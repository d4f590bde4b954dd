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
	var seas Seas
	if p.Phase.Step == Movement {
		seas = r.fleetsAtSea(p)
	}
	return r.check(p, w, o, seas)
}

// check is Check with the fleets at sea given.
func (r *Rules) check(p *Position, w Power, o Order, seas Seas) (Order, error) {
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
func (r *Rules) fleetsAtSea(p *Position) Seas {
	var seas Seas
	for i := range p.Units {
		if p.Units[i].Power != None {
			seas |= r.Board.SeaOf(Province(i))
		}
	}
	return seas
}

func (r *Rules) checkMovement(p *Position, w Power, o Order, seas Seas) (Order, error) {
	u := p.Units[r.Board.Province(o.At)]
	if u.Power == None {
		return o, fmt.Errorf("there is no unit in %s", r.Board.Code(o.At))
	}
	if err := r.own(u, w, o.Type); err != nil {
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

func (r *Rules) checkMove(u Unit, o Order, seas Seas) (Order, error) {
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
	case r.carried(from, to, seas):
		return o, nil
	case walks:
		return o, fmt.Errorf("no fleets at sea could carry it to %s", r.Board.Code(o.To))
	case r.Board.Terrain(to) == Sea:
		return o, fmt.Errorf("an army cannot stand in %s", r.Board.Code(o.To))
	}
	return o, fmt.Errorf("%s does not touch %s, and no fleets at sea could carry it; it touches %s",
		r.Board.UnitText(u), r.Board.Code(o.To), r.placesText(r.Board.Moves(u.Type, u.Location)))
}

// own checks that a unit belongs to a power and has the type that its order names.
func (r *Rules) own(u Unit, w Power, t Type) error {
	switch {
	case u.Power != w:
		return fmt.Errorf("%s is a unit of %s", r.Board.UnitText(u), u.Power.Name())
	case t != boardAny && t != u.Type:
		return fmt.Errorf("the unit there is %s", r.Board.UnitText(u))
	}
	return nil
}

// coast returns the location of a set that to means. An order can leave out a coast if the set
// has only one of the province's coasts (4.B.1, 4.B.2).
func (r *Rules) coast(set Set[Location], to Location) (at Location, found bool, err error) {
	if set.Has(to) {
		return to, true, nil
	}
	var in []Location
	if to < Provinces {
		for _, at := range r.Board.FleetLocations(r.Board.Province(to)) {
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
	to, found, err := r.coast(moves, o.To)
	if o.To = to; found || err != nil {
		return o, err
	}
	return o, fmt.Errorf("%s does not touch %s; it touches %s", r.Board.UnitText(u), r.Board.Code(o.To), r.placesText(moves))
}

func (r *Rules) checkSupport(p *Position, u Unit, o Order, seas Seas) (Order, error) {
	o, other, err := r.other(p, u, o)
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
		if r.Board.Reach(Army, o.Of).Has(to) || r.carried(from, to, seas&^r.Board.SeaOf(r.Board.Province(u.Location))) {
			return o, nil
		}
	} else if r.Board.Moves(Fleet, o.Of).Has(o.To) || o.To < Provinces && r.Board.Reach(Fleet, o.Of).Has(to) {
		return o, nil
	}
	return o, fmt.Errorf("%s cannot move to %s", r.Board.UnitText(other), r.Board.Code(o.To))
}

func (r *Rules) checkConvoy(p *Position, u Unit, o Order, seas Seas) (Order, error) {
	sea := r.Board.SeaOf(r.Board.Province(u.Location))
	if sea == 0 {
		return o, errors.New("only a fleet at sea carries armies")
	}
	o, other, err := r.other(p, u, o)
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
	for _, c := range r.Board.Crossings(r.Board.Province(o.Of)) {
		if c.To == to && c.Seas&sea != 0 && c.Seas&^seas == 0 {
			return o, nil
		}
	}
	return o, fmt.Errorf("%s is on no route of fleets from %s to %s", r.Board.UnitText(u), r.Board.Code(o.Of), r.Board.Code(o.To))
}

// other finds the unit that is supported or carried.
func (r *Rules) other(p *Position, u Unit, o Order) (Order, Unit, error) {
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
	case o.OfType != boardAny && o.OfType != other.Type:
		return o, other, fmt.Errorf("the unit there is %s", r.Board.UnitText(other))
	}
	o.OfType, o.Of = other.Type, other.Location
	return o, other, nil
}

// carried reports whether fleets in seas could carry an army from one province to another.
func (r *Rules) carried(from, to Province, seas Seas) bool {
	for _, c := range r.Board.Crossings(from) {
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
