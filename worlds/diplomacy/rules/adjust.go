package rules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// checkAdjustment is Check in an adjustment phase.
func (r *Rules) checkAdjustment(p *Position, w Power, o Order) (Order, error) {
	surplus := p.surplus(w)
	switch o.Kind {
	case Build, Waive:
		if surplus <= 0 {
			return o, fmt.Errorf("%s has nothing to build", w.Name())
		}
		if o.Kind == Waive {
			return NewOrder(Waive, boardAny, o.At), nil
		}
		return r.checkBuild(p, w, o)
	case Disband:
		u := p.Units[r.Board.Province(o.At)]
		switch {
		case surplus >= 0:
			return o, fmt.Errorf("%s has nothing to remove", w.Name())
		case u.Power != w:
			return o, fmt.Errorf("%s has no unit in %s", w.Name(), r.Board.Code(o.At))
		}
		return NewOrder(Disband, u.Type, u.Location), r.own(u, w, o.Type)
	}
	return o, fmt.Errorf("%s is no order of an adjustment phase", o.Kind)
}

func (r *Rules) checkBuild(p *Position, w Power, o Order) (Order, error) {
	at := r.Board.Province(o.At)
	switch {
	case !r.Board.Homes(w).Has(at):
		return o, fmt.Errorf("%s is no home centre of %s", r.Board.Code(Location(at)), w.Name())
	case p.Owners[at] != w:
		return o, fmt.Errorf("%s does not own %s", w.Name(), r.Board.Code(Location(at)))
	case p.Units[at].Power != None:
		return o, fmt.Errorf("there is a unit in %s", r.Board.Code(Location(at)))
	}
	coasts := r.Board.FleetLocations(at)
	switch {
	case o.Type == boardAny && len(coasts) > 0:
		return o, errors.New("say whether an army (A) or a fleet (F)")
	case o.Type != Fleet:
		return NewOrder(Build, Army, Location(at)), nil
	case len(coasts) == 0:
		return o, fmt.Errorf("a fleet cannot stand in %s", r.Board.Code(o.At))
	case len(coasts) == 1:
		return NewOrder(Build, Fleet, coasts[0]), nil
	case o.At < Provinces:
		return o, fmt.Errorf("say which coast: %s or %s", r.Board.Code(coasts[0]), r.Board.Code(coasts[1]))
	}
	return NewOrder(Build, Fleet, o.At), nil
}

// adjust carries out an adjustment phase. If there are too many orders, the first legal ones
// count (4.D.4, 4.D.6).
func (r *Rules) adjust(p *Position, orders *Orders, out *Outcome) {
	for w, list := range orders {
		w := Power(w)
		left := max(p.surplus(w), -p.surplus(w))
		for i, o := range list {
			res := &out.Results[w][i]
			legal, err := r.Check(p, w, o)
			if err == nil {
				err = r.change(&out.After, w, legal, left)
			}
			if err != nil {
				refuse(res, o, err)
				continue
			}
			res.Order = legal
			left--
		}
	}
	for _, w := range Powers() {
		r.disorder(&out.After, w, out)
	}
}

// change carries out one adjustment, if that is still possible.
func (r *Rules) change(p *Position, w Power, o Order, left int) error {
	if left <= 0 {
		return fmt.Errorf("%s has ordered enough already", w.Name())
	}
	if o.Kind == Waive {
		return nil
	}
	u := &p.Units[r.Board.Province(o.At)]
	if o.Kind == Build {
		if u.Power != None {
			return errors.New("something is built there already")
		}
		*u = Unit{Power: w, Type: o.Type, Location: o.At}
		return nil
	}
	if u.Power != w {
		return errors.New("that unit is removed already")
	}
	*u = Unit{}
	return nil
}

// disorder removes units of a power that has too many and did not choose: those farthest
// from its centres over land or water, fleets before armies, then by the alphabet (4.D.8).
func (r *Rules) disorder(p *Position, w Power, out *Outcome) {
	excess := -p.surplus(w)
	if excess <= 0 {
		return
	}
	var units []Unit
	var far [Provinces]int
	for x, u := range p.Units {
		if u.Power != w {
			continue
		}
		units = append(units, u)
		far[x] = boardFar
		for c, owner := range p.Owners {
			if owner == w {
				far[x] = min(far[x], r.Board.Hops(Province(x), Province(c)))
			}
		}
	}
	slices.SortFunc(units, func(a, b Unit) int {
		x, y := r.Board.Province(a.Location), r.Board.Province(b.Location)
		before := -1
		if r.Board.NameBefore(y, x) {
			before = 1
		}
		return cmp.Or(far[y]-far[x], int(b.Type)-int(a.Type), before)
	})
	for _, u := range units[:excess] {
		p.Units[r.Board.Province(u.Location)] = Unit{}
		out.Removed = append(out.Removed, u)
	}
}
