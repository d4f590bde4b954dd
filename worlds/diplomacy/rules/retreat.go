package rules

import (
	"fmt"
)

// checkRetreat is Check in a retreat phase. A move of a dislodged unit is read as its
// retreat.
func (r *Rules) checkRetreat(p *Position, w Power, o Order) (Order, error) {
	d := &p.Dislodged[r.Board.Province(o.At)]
	u := d.Unit
	if u.Power == None {
		return o, fmt.Errorf("no unit in %s has to retreat", r.Board.Code(o.At))
	}
	if err := r.own(u, w, o.Type); err != nil {
		return o, err
	}
	switch o.Kind {
	case Disband:
		return NewOrder(Disband, u.Type, u.Location), nil
	case Move, Retreat:
		to, err := r.retreatTo(d, o.To)
		if err != nil {
			return o, err
		}
		o = NewOrder(Retreat, u.Type, u.Location)
		o.To = to
		return o, nil
	}
	return o, fmt.Errorf("%s is no order of a retreat phase", o.Kind)
}

// retreatTo finds the location that a retreat means.
func (r *Rules) retreatTo(d *Dislodged, to Location) (Location, error) {
	if d.Unit.Type == Army && to < Locations {
		to = Location(r.Board.Province(to))
	}
	at, found, err := r.coast(d.Retreats, to)
	switch {
	case found, err != nil:
		return at, err
	case d.Retreats.Empty():
		return to, fmt.Errorf("%s has nowhere to retreat to", r.Board.UnitText(d.Unit))
	}
	return to, fmt.Errorf("%s may retreat to %s", r.Board.UnitText(d.Unit), r.placesText(d.Retreats))
}

// retreat carries out a retreat phase.
func (r *Rules) retreat(p *Position, orders *Orders, out *Outcome) {
	var goal [Provinces]*Result // by the province that the unit lost
	var count [Provinces]int    // retreats to a province
	for w, list := range orders {
		for i, o := range list {
			res := &out.Results[w][i]
			legal, err := r.Check(p, Power(w), o)
			if err == nil && goal[r.Board.Province(legal.At)] != nil {
				err = errOrdered
			}
			if err != nil {
				refuse(res, o, err)
				continue
			}
			res.Order = legal
			goal[r.Board.Province(legal.At)] = res
			if legal.Kind == Retreat {
				count[r.Board.Province(legal.To)]++
			}
		}
	}
	out.After.Dislodged = [Provinces]Dislodged{}
	for x := range p.Dislodged {
		u := p.Dislodged[x].Unit
		switch res := goal[x]; {
		case u.Power == None:
		case res == nil:
			out.Removed = append(out.Removed, u)
		case res.Order.Kind == Disband:
		case count[r.Board.Province(res.Order.To)] > 1:
			res.Code, res.Disbanded = Bounce, true
		default:
			u.Location = res.Order.To
			out.After.Units[r.Board.Province(u.Location)] = u
		}
	}
}
