// Package battle decides which orders of a movement phase succeed.
//
// A verdict is yes, no, or open while it depends on other verdicts. Settle first draws the
// conclusions that follow from what is known, which is nearly always all of them, and then
// resolves the orders that depend on each other in a circle.
//
// Orders must be legal: package rules checks them and carries out the result.
package battle

import (
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// verdict is whether an order succeeds, as far as it is known: a move arrives, a support is
// not cut, a convoy is not disrupted.
type verdict uint8

const (
	open verdict = iota
	no
	yes
)

// Battle is a movement phase while it is resolved. A unit is named by the province that it
// starts in; x and y are such units.
type Battle struct {
	board  *board.Board
	units  *[board.Provinces]board.Unit
	orders [board.Provinces]order.Order

	moves    board.Set[board.Province] // units that move
	convoyed board.Set[board.Province] // those of them that move by convoy
	matched  board.Set[board.Province] // supports and convoys that fit the order of their unit
	to       [board.Provinces]board.Province

	movers   [board.Provinces]board.Set[board.Province] // units that move into a province
	helpers  [board.Provinces]board.Set[board.Province] // matched supports of a unit
	carriers [board.Provinces]board.Set[board.Province] // matched convoys of a unit

	verdict [board.Provinces]verdict
	undone  board.Set[board.Province] // units without a verdict

	reading bool                      // whether to collect in read
	read    board.Set[board.Province] // the open verdicts that a judgement used
}

// New returns a battle of units that all hold.
func New(b *board.Board, units *[board.Provinces]board.Unit) Battle {
	return Battle{board: b, units: units}
}

// Moves returns the units that are ordered to move.
func (f *Battle) Moves() board.Set[board.Province] { return f.moves }

// Target returns the province that x moves to.
func (f *Battle) Target(x board.Province) board.Province { return f.to[x] }

// Location returns the location that x moves to.
func (f *Battle) Location(x board.Province) board.Location { return f.orders[x].To }

// Succeeds reports whether the order of x succeeds. Call Settle first.
func (f *Battle) Succeeds(x board.Province) bool { return f.verdict[x] == yes }

// Arrives reports whether x can reach the province that it moves to, whatever is there.
func (f *Battle) Arrives(x board.Province) bool { return f.path(x) == yes }

// Convoyed reports whether x moves by convoy.
func (f *Battle) Convoyed(x board.Province) bool { return f.convoyed.Has(x) }

// Matched reports whether the support or convoy of x fits the order of its unit.
func (f *Battle) Matched(x board.Province) bool { return f.matched.Has(x) }

// Order sets a legal order. Units without one hold.
func (f *Battle) Order(o order.Order) {
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

// match finds the supports and convoys that fit the order of their unit.
func (f *Battle) match() {
	for x := range f.moves.All() {
		if f.units[x].Type == board.Army && f.goesByConvoy(x) {
			f.convoyed.Add(x)
		}
	}
	for x := range f.undone.Minus(f.moves).All() {
		of := f.board.Province(f.orders[x].Of)
		if !f.fits(&f.orders[x], of) {
			f.undone.Remove(x) // it has no effect
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

// goesByConvoy decides how an army moves: by convoy if its order says so, if it cannot walk,
// or if a fleet of its own power is ordered to carry it (4.A.3).
func (f *Battle) goesByConvoy(x board.Province) bool {
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

// fits reports whether a support or convoy fits the order of its unit.
func (f *Battle) fits(o *order.Order, of board.Province) bool {
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

// Settle finds every verdict.
func (f *Battle) Settle() {
	f.match()
	for f.sweep(); !f.undone.Empty(); f.sweep() {
		f.breakCircle()
	}
}

// sweep judges until no verdict changes.
func (f *Battle) sweep() {
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
