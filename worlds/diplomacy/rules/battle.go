// Part battle decides which orders of a movement phase succeed.
//
// A verdict is yes, no, or open while it depends on other verdicts. Settle first draws the
// conclusions that follow from what is known, which is nearly always all of them, and then
// resolves the orders that depend on each other in a circle.
//
// Orders must be legal: package rules checks them and carries out the result.

package rules

// verdict is whether an order succeeds, as far as it is known: a move arrives, a support is
// not cut, a convoy is not disrupted.
type verdict uint8

const (
	open verdict = iota
	no
	yes
)

// rulesBattle is a movement phase while it is resolved. A unit is named by the province that it
// starts in; x and y are such units.
type rulesBattle struct {
	board  *Board
	units  *[Provinces]Unit
	orders [Provinces]Order

	moves    Set[Province] // units that move
	convoyed Set[Province] // those of them that move by convoy
	matched  Set[Province] // supports and convoys that fit the order of their unit
	to       [Provinces]Province

	movers   [Provinces]Set[Province] // units that move into a province
	helpers  [Provinces]Set[Province] // matched supports of a unit
	carriers [Provinces]Set[Province] // matched convoys of a unit

	verdict [Provinces]verdict
	undone  Set[Province] // units without a verdict

	reading bool          // whether to collect in read
	read    Set[Province] // the open verdicts that a judgement used
}

// newBattle returns a battle of units that all hold.
func newBattle(b *Board, units *[Provinces]Unit) rulesBattle {
	return rulesBattle{board: b, units: units}
}

// Moves returns the units that are ordered to move.
func (f *rulesBattle) Moves() Set[Province] { return f.moves }

// Target returns the province that x moves to.
func (f *rulesBattle) Target(x Province) Province { return f.to[x] }

// Location returns the location that x moves to.
func (f *rulesBattle) Location(x Province) Location { return f.orders[x].To }

// Succeeds reports whether the order of x succeeds. Call Settle first.
func (f *rulesBattle) Succeeds(x Province) bool { return f.verdict[x] == yes }

// Arrives reports whether x can reach the province that it moves to, whatever is there.
func (f *rulesBattle) Arrives(x Province) bool { return f.path(x) == yes }

// Convoyed reports whether x moves by convoy.
func (f *rulesBattle) Convoyed(x Province) bool { return f.convoyed.Has(x) }

// Matched reports whether the support or convoy of x fits the order of its unit.
func (f *rulesBattle) Matched(x Province) bool { return f.matched.Has(x) }

// Order sets a legal order. Units without one hold.
func (f *rulesBattle) Order(o Order) {
	x := f.board.Province(o.At)
	f.orders[x] = o
	if o.Kind == Move {
		f.to[x] = f.board.Province(o.To)
		f.moves.Add(x)
		f.movers[f.to[x]].Add(x)
	}
	if o.Kind != Hold {
		f.undone.Add(x)
	}
}

// match finds the supports and convoys that fit the order of their unit.
func (f *rulesBattle) match() {
	for x := range f.moves.All() {
		if f.units[x].Type == Army && f.goesByConvoy(x) {
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
		if f.orders[x].Kind == Support {
			f.helpers[of].Add(x)
		} else {
			f.carriers[of].Add(x)
		}
	}
}

// goesByConvoy decides how an army moves: by convoy if its order says so, if it cannot walk,
// or if a fleet of its own power is ordered to carry it (4.A.3).
func (f *rulesBattle) goesByConvoy(x Province) bool {
	if f.orders[x].Via || !f.board.Reach(Army, Location(x)).Has(f.to[x]) {
		return true
	}
	for y := range f.undone.Minus(f.moves).All() {
		o := &f.orders[y]
		if o.Kind == Convoy && f.units[y].Power == f.units[x].Power && f.board.Province(o.Of) == x && f.board.Province(o.To) == f.to[x] {
			return true
		}
	}
	return false
}

// fits reports whether a support or convoy fits the order of its unit.
func (f *rulesBattle) fits(o *Order, of Province) bool {
	if o.To == Nowhere {
		return !f.moves.Has(of)
	}
	if !f.moves.Has(of) || f.board.Province(o.To) != f.to[of] {
		return false
	}
	if o.Kind == Convoy {
		return f.convoyed.Has(of)
	}
	// A support that names a coast is for a move to that coast (4.B.4).
	return o.To < Provinces || o.To == f.orders[of].To
}

// Settle finds every verdict.
func (f *rulesBattle) Settle() {
	f.match()
	for f.sweep(); !f.undone.Empty(); f.sweep() {
		f.breakCircle()
	}
}

// sweep judges until no verdict changes.
func (f *rulesBattle) sweep() {
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
