package rules

import (
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// verdict says whether an order succeeds, as far as it is known: a move arrives, a
// support is not cut, a convoy is not sunk.
type verdict uint8

const (
	open verdict = iota
	no
	yes
)

// battle is a movement phase while it is worked out. Units are named by the province
// they began in; x, y are such units.
type battle struct {
	board  *board.Board
	units  *[board.Provinces]board.Unit
	orders [board.Provinces]order.Order

	moves    board.Set[board.Province] // units that move
	convoyed board.Set[board.Province] // those of them that go over water
	matched  board.Set[board.Province] // supports and convoys that fit what their unit does
	to       [board.Provinces]board.Province

	movers   [board.Provinces]board.Set[board.Province] // the units that move into a province
	helpers  [board.Provinces]board.Set[board.Province] // the matched supports of a unit
	carriers [board.Provinces]board.Set[board.Province] // the matched convoys of a unit

	verdict [board.Provinces]verdict
	undone  board.Set[board.Province] // the units without a verdict

	// reading collects which open verdicts are looked at.
	reading bool
	read    board.Set[board.Province]
}

// order takes a legal order. Units without one hold.
func (f *battle) order(o order.Order) {
	x := f.board.Province(o.At)
	f.orders[x] = o
	if o.Kind == order.Move {
		f.to[x] = f.board.Province(o.To)
		f.moves.Add(x)
		f.movers[f.to[x]].Add(x)
	}
	if o.Kind != order.Hold {
		f.undone.Add(x)
	}
}

// match brings supports and convoys together with what they are for.
func (f *battle) match() {
	for x := range f.moves.All() {
		if f.units[x].Type == board.Army && f.goesOverWater(x) {
			f.convoyed.Add(x)
		}
	}
	for x := range f.undone.Minus(f.moves).All() {
		of := f.board.Province(f.orders[x].Of)
		if !f.fits(&f.orders[x], of) {
			f.undone.Remove(x) // it helps nobody, whatever comes of it
			f.verdict[x] = yes
			continue
		}
		f.matched.Add(x)
		if f.orders[x].Kind == order.Support {
			f.helpers[of].Add(x)
		} else {
			f.carriers[of].Add(x)
		}
	}
}

// goesOverWater decides how an army goes: by convoy if it says so, if it cannot walk,
// or if a fleet of its own power is ordered to carry it (4.A.3).
func (f *battle) goesOverWater(x board.Province) bool {
	if f.orders[x].Via || !f.board.Reach(board.Army, board.Location(x)).Has(f.to[x]) {
		return true
	}
	for y := range f.undone.Minus(f.moves).All() {
		o := &f.orders[y]
		if o.Kind == order.Convoy && f.units[y].Power == f.units[x].Power && f.board.Province(o.Of) == x && f.board.Province(o.To) == f.to[x] {
			return true
		}
	}
	return false
}

// fits says whether a support or convoy is for what its unit does.
func (f *battle) fits(o *order.Order, of board.Province) bool {
	if o.To == board.Nowhere {
		return !f.moves.Has(of)
	}
	if !f.moves.Has(of) || f.board.Province(o.To) != f.to[of] {
		return false
	}
	if o.Kind == order.Convoy {
		return f.convoyed.Has(of)
	}
	// A support that names a coast is for a move to that coast (4.B.4).
	return o.To < board.Provinces || o.To == f.orders[of].To
}

// settle finds every verdict. What follows from what is known is found first, which
// nearly always is everything. What is left hangs together in circles.
func (f *battle) settle() {
	for f.sweep(); !f.undone.Empty(); f.sweep() {
		f.breakCircle()
	}
}

// sweep judges until nothing more follows.
func (f *battle) sweep() {
	for changed := true; changed; {
		changed = false
		for x := range f.undone.All() {
			if v := f.judge(x); v != open {
				f.verdict[x] = v
				f.undone.Remove(x)
				changed = true
			}
		}
	}
}
