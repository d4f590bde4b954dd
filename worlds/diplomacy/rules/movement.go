package rules

import (
	"errors"

	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// errOrdered is for a second order to a unit: the first legal one counts.
var errOrdered = errors.New("the unit has an order already")

// move carries out a movement phase.
func (r *Rules) move(p *Position, orders *Orders, out *Outcome) {
	f := battle{board: r.Board, units: &p.Units}
	seas := r.fleetsAtSea(p)
	var has board.Set[board.Province]
	for w, list := range orders {
		for i, o := range list {
			res := &out.Results[w][i]
			legal, err := r.check(p, board.Power(w), o, seas)
			if err == nil && has.Has(r.Board.Province(legal.At)) {
				err = errOrdered
			}
			if err != nil {
				refuse(res, o, err)
				continue
			}
			has.Add(r.Board.Province(legal.At))
			res.Order = legal
			f.order(legal)
		}
	}
	f.match()
	f.settle()
	f.carryOut(&out.After)
	for w := range out.Results {
		for i := range out.Results[w] {
			f.report(board.Power(w), &out.Results[w][i], &out.After)
		}
	}
}

// carryOut moves the units whose moves succeeded, and finds who is driven out and
// where to.
func (f *battle) carryOut(p *Position) {
	var from [board.Provinces]board.Province
	var taken board.Set[board.Province]
	for x := range f.moves.All() {
		if f.verdict[x] == yes {
			p.Units[x] = board.Unit{}
		}
	}
	for x := range f.moves.All() {
		if f.verdict[x] != yes {
			continue
		}
		to := f.to[x]
		if p.Units[to].Power != board.None {
			p.Dislodged[to] = Dislodged{Unit: p.Units[to], Attacker: board.Location(x)}
		}
		u := f.units[x]
		u.Location = f.orders[x].To
		p.Units[to] = u
		from[to] = x
		taken.Add(to)
	}
	closed := f.contested(p)
	for x := range taken.All() {
		if d := &p.Dislodged[x]; d.Unit.Power != board.None {
			d.Retreats = f.retreats(p, d.Unit, from[x], closed)
		}
	}
}

// contested are the empty provinces in which units stood each other off. The loser
// of a head to head battle has contested nothing there (6.H.9).
func (f *battle) contested(p *Position) board.Set[board.Province] {
	var set board.Set[board.Province]
	for x := range f.moves.All() {
		to := f.to[x]
		if f.verdict[x] == yes || p.Units[to].Power != board.None || f.path(x) != yes {
			continue
		}
		if !f.headOn(x, to) || f.verdict[to] != yes {
			set.Add(to)
		}
	}
	return set
}

// retreats are the places open to a unit that was driven out from attacker. An
// attacker that came over water does not close where it came from (4.A.5).
func (f *battle) retreats(p *Position, u board.Unit, attacker board.Province, closed board.Set[board.Province]) board.Set[board.Location] {
	var open board.Set[board.Location]
	if !f.convoyed.Has(attacker) {
		closed.Add(attacker)
	}
	for at := range f.board.Moves(u.Type, u.Location).All() {
		q := f.board.Province(at)
		if p.Units[q].Power == board.None && !closed.Has(q) {
			open.Add(at)
		}
	}
	return open
}

// report fills in what became of an order.
func (f *battle) report(w board.Power, res *Result, after *Position) {
	if res.Order.At >= board.Locations {
		return
	}
	x := f.board.Province(res.Order.At)
	res.Dislodged = f.units[x].Power == w && after.Dislodged[x].Unit.Power == w
	if res.Code == Illegal {
		return
	}
	failed := f.verdict[x] != yes
	switch o := res.Order; {
	case o.Kind == order.Hold:
	case o.Kind == order.Move && failed && f.path(x) != yes:
		res.Code = NoConvoy
	case o.Kind == order.Move && failed:
		res.Code = Bounce
	case o.Kind == order.Move:
	case !f.matched.Has(x):
		res.Code = Void
	case failed && o.Kind == order.Support:
		res.Code = Cut
	case failed:
		res.Code = Disrupted
	}
}
