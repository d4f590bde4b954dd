// Package rules has the rules of Diplomacy: which orders are legal in a position, and what
// their results are.
//
// Where rulebooks differ, it follows the choices named by the cases of testdata/datc.jsonl: the
// 2023 rules, and Szykman's rule for convoy paradoxes. The outcome depends only on the position
// and the orders, not on the order in which they are listed, except that the first legal order
// counts if a unit has two or a power orders too many builds or removals. An illegal order has
// no effect. No order makes it fail.
//
// It plays no game: it asks no player, draws no random number and keeps no history.
package rules

// Rules are the rules on a board. They hold no game, so any number of games can share them.
type Rules struct {
	Board *Board
}

// New returns the rules of the standard game.
func New() *Rules { return &Rules{Board: NewBoard()} }

// Orders are the orders of each power, indexed by Power.
type Orders [Turkey + 1][]Order

// Code is the result of an order.
type Code uint8

// The results of an order.
const (
	Success   Code = iota
	Bounce         // a move that was stopped
	Cut            // a support that was attacked
	Void           // legal, but it does not fit the order of its unit
	NoConvoy       // an army that no fleet carried
	Disrupted      // a convoy whose fleet was dislodged, or that is part of a paradox
	Illegal        // ignored: the unit holds, or is disbanded if it had to retreat
)

// String returns the code in a word.
func (c Code) String() string {
	return [...]string{"success", "bounce", "cut", "void", "noconvoy", "disrupted", "illegal"}[min(c, Illegal)]
}

// Result is the result of one order.
type Result struct {
	// Order is the order with types and coasts filled in. An illegal order is unchanged.
	Order Order
	Code  Code

	Dislodged bool  // the unit was dislodged
	Disbanded bool  // the unit's retreat failed
	Err       error // why the order is illegal
}

// Codes returns the result in words, as JSON files write it.
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

// Outcome is the outcome of a phase.
type Outcome struct {
	// Results has the index of the orders.
	Results [Turkey + 1][]Result

	// After is the position after the orders, in the same phase. Advance returns the next one.
	After Position

	// Removed are the units that were removed without an order: those without an order to
	// retreat, and those of a power that ordered too few removals.
	Removed []Unit
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

// occupy gives every centre to the power of the unit on it.
func (r *Rules) occupy(p *Position) {
	for c := range r.Board.SupplyCentres().All() {
		if w := p.Units[c].Power; w != None {
			p.Owners[c] = w
		}
	}
}

// refuse marks an order as illegal.
func refuse(res *Result, o Order, err error) {
	res.Order, res.Code, res.Err = o, Illegal, err
}
