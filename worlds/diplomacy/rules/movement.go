package rules

import (
	"errors"
)

// errOrdered is the error for a second order to a unit: the first legal one counts.
var errOrdered = errors.New("the unit has an order already")

// move carries out a movement phase.
func (r *Rules) move(p *Position, orders *Orders, out *Outcome) {
	f := newBattle(r.Board, &p.Units)
	seas := r.fleetsAtSea(p)
	var has Set[Province]
	for w, list := range orders {
		for i, o := range list {
			res := &out.Results[w][i]
			legal, err := r.check(p, Power(w), o, seas)
			if err == nil && has.Has(r.Board.Province(legal.At)) {
				err = errOrdered
			}
			if err != nil {
				refuse(res, o, err)
				continue
			}
			has.Add(r.Board.Province(legal.At))
			res.Order = legal
			f.Order(legal)
		}
	}
	f.Settle()
	r.carryOut(&f, p, &out.After)
	for w := range out.Results {
		for i := range out.Results[w] {
			r.report(&f, p, Power(w), &out.Results[w][i], &out.After)
		}
	}
}

// carryOut moves the units whose moves succeeded, and finds which units are dislodged and
// where they can retreat to.
func (r *Rules) carryOut(f *rulesBattle, before, p *Position) {
	var from [Provinces]Province
	var taken Set[Province]
	for x := range f.Moves().All() {
		if f.Succeeds(x) {
			p.Units[x] = Unit{}
		}
	}
	for x := range f.Moves().All() {
		if !f.Succeeds(x) {
			continue
		}
		to := f.Target(x)
		if p.Units[to].Power != None {
			p.Dislodged[to] = Dislodged{Unit: p.Units[to], Attacker: Location(x)}
		}
		u := before.Units[x]
		u.Location = f.Location(x)
		p.Units[to] = u
		from[to] = x
		taken.Add(to)
	}
	contested := contested(f, p)
	for x := range taken.All() {
		d := &p.Dislodged[x]
		if d.Unit.Power == None {
			continue
		}
		closed := contested
		if !f.Convoyed(from[x]) { // after a convoy the attacker's province stays open (4.A.5)
			closed.Add(from[x])
		}
		for at := range r.Board.Moves(d.Unit.Type, d.Unit.Location).All() {
			if q := r.Board.Province(at); p.Units[q].Power == None && !closed.Has(q) {
				d.Retreats.Add(at)
			}
		}
	}
}

// contested are the empty provinces in which moves bounced. The loser of a head to head battle
// contests nothing (6.H.9).
func contested(f *rulesBattle, p *Position) Set[Province] {
	var set Set[Province]
	for x := range f.Moves().All() {
		to := f.Target(x)
		if f.Succeeds(x) || p.Units[to].Power != None || !f.Arrives(x) {
			continue
		}
		if !f.HeadOn(x, to) || !f.Succeeds(to) {
			set.Add(to)
		}
	}
	return set
}

// report fills in the result of an order.
func (r *Rules) report(f *rulesBattle, before *Position, w Power, res *Result, after *Position) {
	if res.Order.At >= Locations {
		return
	}
	x := r.Board.Province(res.Order.At)
	res.Dislodged = before.Units[x].Power == w && after.Dislodged[x].Unit.Power == w
	if res.Code == Illegal {
		return
	}
	switch kind, failed := res.Order.Kind, !f.Succeeds(x); {
	case kind == Hold, kind == Move && !failed:
	case kind == Move && !f.Arrives(x):
		res.Code = NoConvoy
	case kind == Move:
		res.Code = Bounce
	case !f.Matched(x):
		res.Code = Void
	case failed && kind == Support:
		res.Code = Cut
	case failed:
		res.Code = Disrupted
	}
}
