// Package rules is the rules of Diplomacy: which orders are legal in a position, and
// what comes of them.
//
// Where the rulebooks differ it follows the choices that the cases of
// testdata/datc.jsonl name: the 2023 rules, and Szykman's for convoy paradoxes. It
// promises that the outcome depends on the position and the orders alone, not on the
// order in which powers or orders are listed (as long as no unit has two orders and
// nobody asks for more builds or removals than allowed: of those the first legal ones
// count); that an illegal order does nothing; and that nothing a player writes makes
// it fail.
//
// It is not for playing: it asks nobody, draws no lots and keeps no history.
package rules

import (
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// Rules are the rules on a board. They hold no game: one may serve any number of
// them at once.
type Rules struct {
	Board *board.Board
}

// New returns the rules of the standard game.
func New() *Rules { return &Rules{Board: board.New()} }

// Orders are the orders of each power, indexed by board.Power.
type Orders [board.Turkey + 1][]order.Order

// Code says what became of an order.
type Code uint8

// What can become of an order.
const (
	Success   Code = iota
	Bounce         // stood off
	Cut            // a support that was attacked
	Void           // legal, but it fits nothing another unit does
	NoConvoy       // an army that nobody carried
	Disrupted      // a convoy that was sunk, or is part of a paradox
	Illegal        // ignored: the unit holds, or is disbanded if it had to retreat
)

// String is the code as it is written.
func (c Code) String() string {
	return [...]string{"success", "bounce", "cut", "void", "noconvoy", "disrupted", "illegal"}[min(c, Illegal)]
}

// Result is what became of one order.
type Result struct {
	// Order is the order with everything filled in that was left out. An illegal one
	// is as it was given.
	Order order.Order
	Code  Code

	// Dislodged says that the unit was driven out.
	Dislodged bool
	// Disbanded says that the unit's retreat failed.
	Disbanded bool

	// Err says why an order is illegal.
	Err error
}

// Codes are the words of a result, as they are written in JSON.
func (r Result) Codes() []string {
	codes := []string{r.Code.String()}
	if r.Disbanded {
		codes = append(codes, "disband")
	}
	if r.Dislodged {
		codes = append(codes, "dislodged")
	}
	return codes
}

// Outcome is what a phase came to.
type Outcome struct {
	// Results are in the place of their orders.
	Results [board.Turkey + 1][]Result

	// After is the position when everything is carried out, still in the same phase.
	// Advance leads on from it.
	After Position

	// Removed are the units that had to go without an order: those that nobody
	// ordered to retreat, and removals that nobody chose.
	Removed []board.Unit
}

// Adjudicate carries out the orders of a phase.
func (r *Rules) Adjudicate(p *Position, orders *Orders) Outcome {
	out := Outcome{After: *p}
	for w, list := range orders {
		if len(list) > 0 {
			out.Results[w] = make([]Result, len(list))
		}
	}
	switch p.Phase.Step {
	case Movement:
		r.move(p, orders, &out)
	case Retreats:
		r.retreat(p, orders, &out)
	case Adjustments:
		r.adjust(p, orders, &out)
	}
	if p.Phase.Season == Fall && p.Phase.Step != Adjustments && !out.After.pending() {
		r.occupy(&out.After)
	}
	return out
}

// occupy gives every centre to whoever stands on it.
func (r *Rules) occupy(p *Position) {
	for c := range r.Board.SupplyCentres().All() {
		if w := p.Units[c].Power; w != board.None {
			p.Owners[c] = w
		}
	}
}

// refuse marks an order as illegal.
func refuse(res *Result, o order.Order, err error) {
	res.Order, res.Code, res.Err = o, Illegal, err
}
