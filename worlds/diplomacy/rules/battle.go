package rules

// verdict is whether an order succeeds, as far as it is known: a move arrives, a support is
// not cut, a convoy is not disrupted.
type verdict uint8

const (
	open verdict = iota
	no
	yes
)

// battle is a movement phase while it is resolved. A unit is named by the province that it
// starts in; x and y are such units. Orders must be legal.
//
// settle first draws the conclusions that follow from what is known, which is nearly always all of
// them. Then it resolves the orders that depend on each other in a circle.
type battle struct {
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

	verdict   [Provinces]verdict
	undecided Set[Province] // units without a verdict

	reading bool          // whether to collect in read
	read    Set[Province] // the open verdicts that a judgement used
}

// newBattle returns a battle of units that all hold.
func newBattle(b *Board, units *[Provinces]Unit) battle {
	return battle{board: b, units: units}
}

// succeeds reports whether the order of x succeeds. Call settle first.
func (f *battle) succeeds(x Province) bool { return f.verdict[x] == yes }

// arrives reports whether x can reach the province that it moves to, whatever is there.
func (f *battle) arrives(x Province) bool { return f.path(x) == yes }

// setOrder sets a legal order. Units without one hold.
func (f *battle) setOrder(o Order) {
	x := f.board.Province(o.At)
	f.orders[x] = o
	if o.Kind == Move {
		f.to[x] = f.board.Province(o.To)
		f.moves.Add(x)
		f.movers[f.to[x]].Add(x)
	}
	if o.Kind != Hold {
		f.undecided.Add(x)
	}
}

// match finds the supports and convoys that fit the order of their unit.
func (f *battle) match() {
	for x := range f.moves.All() {
		if f.units[x].Type == Army && f.goesByConvoy(x) {
			f.convoyed.Add(x)
		}
	}
	for x := range f.undecided.Minus(f.moves).All() {
		of := f.board.Province(f.orders[x].Of)
		if !f.fits(&f.orders[x], of) {
			f.undecided.Remove(x) // it has no effect
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
func (f *battle) goesByConvoy(x Province) bool {
	if f.orders[x].Via || !f.board.Reach(Army, Location(x)).Has(f.to[x]) {
		return true
	}
	for y := range f.undecided.Minus(f.moves).All() {
		o := &f.orders[y]
		if o.Kind == Convoy && f.units[y].Power == f.units[x].Power && f.board.Province(o.Of) == x && f.board.Province(o.To) == f.to[x] {
			return true
		}
	}
	return false
}

// fits reports whether a support or convoy fits the order of its unit.
func (f *battle) fits(o *Order, of Province) bool {
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

// settle finds every verdict.
func (f *battle) settle() {
	f.match()
	for f.sweep(); !f.undecided.Empty(); f.sweep() {
		f.breakCircle()
	}
}

// sweep judges until no verdict changes.
func (f *battle) sweep() {
	for changed := true; changed; {
		changed = false
		for x := range f.undecided.All() {
			if v := f.judge(x); v != open {
				f.verdict[x] = v
				f.undecided.Remove(x)
				changed = true
			}
		}
	}
}

// strength is the strength of a unit for some purpose: bounds, since supports may be open.
type strength struct{ low, high int }

// known returns the verdict on x so far.
func (f *battle) known(x Province) verdict {
	v := f.verdict[x]
	if v == open && f.reading {
		f.read.Add(x)
	}
	return v
}

// judge decides on x from the verdicts that are known.
func (f *battle) judge(x Province) verdict {
	switch f.orders[x].Kind {
	case Move:
		return f.judgeMove(x)
	case Support:
		return f.judgeSupport(x)
	case Convoy:
		return f.judgeConvoy(x)
	}
	return yes
}

// judgeMove judges a move. It succeeds if it is stronger than the defence of its target and
// than every other move there.
func (f *battle) judgeMove(x Province) verdict {
	path := f.path(x)
	if path == no {
		return no
	}
	to := f.to[x]
	attack := f.attack(x, path)
	against := f.hold(to)
	if f.headOn(x, to) {
		against = f.supported(to, None)
	}
	won, lost := attack.low > against.high, attack.high <= against.low
	rivals := f.movers[to]
	rivals.Remove(x)
	for y := range rivals.All() {
		prevent := f.prevent(y)
		won = won && attack.low > prevent.high
		lost = lost || attack.high <= prevent.low
	}
	switch {
	case lost:
		return no
	case won:
		return yes
	}
	return open
}

// judgeSupport judges a support. Any attack of another power that arrives cuts it, except one
// from the province that the support is directed at: that attack must dislodge the supporter.
func (f *battle) judgeSupport(x Province) verdict {
	target := f.orders[x].To
	if target == Nowhere {
		target = f.orders[x].Of
	}
	result := yes
	for y := range f.movers[x].All() {
		if f.units[y].Power == f.units[x].Power {
			continue
		}
		cuts := f.path(y)
		if y == f.board.Province(target) {
			cuts = f.known(y)
		}
		switch cuts {
		case yes:
			return no
		case open:
			result = open
		}
	}
	return result
}

// judgeConvoy judges a convoy. It succeeds unless its fleet is dislodged.
func (f *battle) judgeConvoy(x Province) verdict {
	result := yes
	for y := range f.movers[x].All() {
		switch f.known(y) {
		case yes:
			return no
		case open:
			result = open
		}
	}
	return result
}

// headOn reports whether x and y move into each other's province by land.
func (f *battle) headOn(x, y Province) bool {
	return f.moves.Has(y) && f.to[y] == x && f.to[x] == y && !f.convoyed.Has(x) && !f.convoyed.Has(y)
}

// path decides whether x can reach its target: any one route of fleets that are not
// dislodged is enough (4.A.1).
func (f *battle) path(x Province) verdict {
	if !f.convoyed.Has(x) {
		return yes
	}
	var sure, likely seaSet
	for y := range f.carriers[x].All() {
		switch f.known(y) {
		case yes:
			sure |= f.board.seaOf(y)
		case open:
			likely |= f.board.seaOf(y)
		}
	}
	if sure|likely == 0 {
		return no
	}
	result := no
	for _, way := range f.board.routes[x][f.to[x]] {
		switch {
		case way&^(sure|likely) != 0:
		case way&^sure == 0:
			return yes
		default:
			result = open
		}
	}
	return result
}

// supported is the strength of x with its supports, except those of one power.
func (f *battle) supported(x Province, without Power) strength {
	s := strength{1, 1}
	for y := range f.helpers[x].All() {
		if without != None && f.units[y].Power == without {
			continue
		}
		switch f.known(y) {
		case yes:
			s.low++
			s.high++
		case open:
			s.high++
		}
	}
	return s
}

// hold is the strength with which a province is defended.
func (f *battle) hold(p Province) strength {
	switch {
	case f.units[p].Power == None:
		return strength{0, 0}
	case !f.moves.Has(p):
		return f.supported(p, None)
	}
	switch f.known(p) {
	case yes:
		return strength{0, 0}
	case no:
		return strength{1, 1}
	}
	return strength{0, 1}
}

// attack is the strength of x against the unit at its target. A power neither dislodges its
// own unit nor supports that: such strength counts only if the unit leaves.
func (f *battle) attack(x Province, path verdict) strength {
	to := f.to[x]
	all := f.supported(x, None)
	if path == open {
		all.low = 0
	}
	victim := f.units[to].Power
	leaves := no
	switch {
	case victim == None:
		leaves = yes
	case f.moves.Has(to) && !f.headOn(x, to):
		leaves = f.known(to)
	}
	if leaves == yes {
		return all
	}
	stays := strength{0, 0}
	if victim != f.units[x].Power {
		stays = f.supported(x, victim)
	}
	if path == open {
		stays.low = 0
	}
	if leaves == open {
		stays.high = all.high
	}
	return stays
}

// prevent is the strength with which x keeps other units out of its target. The loser of a
// head to head battle has none.
func (f *battle) prevent(x Province) strength {
	path := f.path(x)
	if path == no {
		return strength{0, 0}
	}
	s := f.supported(x, None)
	if path == open {
		s.low = 0
	}
	if to := f.to[x]; f.headOn(x, to) {
		switch f.known(to) {
		case yes:
			return strength{0, 0}
		case open:
			s.low = 0
		}
	}
	return s
}

// Bounds of the search for the resolutions of a circle. Real circles have at most two, found
// in a few steps.
const (
	maxInputs = 10
	maxSteps  = 4096
)

// breakCircle decides on units whose verdicts depend only on each other. If exactly one
// resolution is consistent, that is it. Otherwise, if convoys are part of the circle, it is a
// paradox, and by Szykman's rule those convoys fail. Otherwise the units follow each other in
// a ring, and they move.
func (f *battle) breakCircle() {
	circle := f.circle()
	s := search{f: f, circle: circle}
	s.run()
	if s.found == 1 && !s.gaveUp {
		f.adopt(circle, &s.best)
		return
	}
	convoys := false
	for x := range circle.All() {
		if f.orders[x].Kind == Convoy {
			convoys = true
			f.verdict[x] = no
			f.undecided.Remove(x)
		}
	}
	if !convoys {
		f.adopt(circle, &s.best)
	}
}

// adopt sets verdicts. An open one becomes no.
func (f *battle) adopt(circle Set[Province], verdicts *[Provinces]verdict) {
	for x := range circle.All() {
		f.verdict[x] = max(verdicts[x], no)
		f.undecided.Remove(x)
	}
}

// circle finds units that depend on each other and on no other open verdict.
func (f *battle) circle() Set[Province] {
	var reach [Provinces]Set[Province]
	for x := range f.undecided.All() {
		reach[x] = f.inputs(x)
		reach[x].Add(x)
	}
	for changed := true; changed; {
		changed = false
		for x := range f.undecided.All() {
			more := reach[x]
			for y := range reach[x].All() {
				more = more.Or(reach[y])
			}
			changed = changed || more != reach[x]
			reach[x] = more
		}
	}
	// The unit that reaches fewest others reaches none outside its own circle.
	var least Set[Province]
	for x := range f.undecided.All() {
		if least.Empty() || reach[x].Len() < least.Len() {
			least = reach[x]
		}
	}
	return least
}

// inputs are the open verdicts that can change the verdict on x.
func (f *battle) inputs(x Province) Set[Province] {
	f.reading, f.read = true, Set[Province]{}
	f.judge(x)
	f.reading = false
	read := f.read
	if read.Len() > maxInputs {
		return read
	}
	var list [maxInputs]Province
	n := 0
	for y := range read.All() {
		list[n] = y
		n++
	}
	var results [1 << maxInputs]verdict
	for m := range 1 << n {
		for i, y := range list[:n] {
			f.verdict[y] = no + verdict(m>>i&1)
		}
		results[m] = f.judge(x)
	}
	var matter Set[Province]
	for i, y := range list[:n] {
		f.verdict[y] = open
		for m := range 1 << n {
			if results[m] != results[m^1<<i] {
				matter.Add(y)
			}
		}
	}
	return matter
}

// search finds all consistent resolutions of a circle.
type search struct {
	f      *battle
	circle Set[Province]
	steps  int
	gaveUp bool

	found int
	moved int // the highest number of moves that succeed in one of them
	best  [Provinces]verdict
}

// run searches, and leaves the battle unchanged.
func (s *search) run() {
	before := s.f.verdict
	for x := range s.f.undecided.Minus(s.circle).All() {
		s.f.verdict[x] = no // it does not affect the circle
	}
	s.try()
	s.f.verdict = before
}

// try follows the assumptions so far to their end.
func (s *search) try() {
	if s.steps++; s.steps > maxSteps {
		s.gaveUp = true
		return
	}
	next, ok := s.follow()
	if !ok {
		return
	}
	if s.f.verdict[next] != open {
		s.keep()
		return
	}
	before := s.f.verdict
	for _, v := range []verdict{yes, no} {
		s.f.verdict[next] = v
		s.try()
		s.f.verdict = before
	}
}

// follow draws conclusions until there are no more. It returns a unit that is still open, if
// there is one, and false if the assumptions contradict each other.
func (s *search) follow() (next Province, ok bool) {
	for changed := true; changed; {
		changed = false
		for x := range s.circle.All() {
			v := s.f.judge(x)
			switch {
			case s.f.verdict[x] == open && v == open:
			case s.f.verdict[x] == open:
				s.f.verdict[x] = v
				changed = true
			case v != open && v != s.f.verdict[x]:
				return 0, false
			}
		}
	}
	for x := range s.circle.All() {
		next = x
		if s.f.verdict[x] == open {
			break
		}
	}
	return next, true
}

// keep counts a consistent resolution, and keeps the one with the most moves.
func (s *search) keep() {
	moved := 0
	for x := range s.circle.And(s.f.moves).All() {
		if s.f.verdict[x] == yes {
			moved++
		}
	}
	if s.found++; s.found == 1 || moved > s.moved {
		s.moved, s.best = moved, s.f.verdict
	}
}
