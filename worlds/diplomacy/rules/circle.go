package rules

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
func (f *rulesBattle) breakCircle() {
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
			f.undone.Remove(x)
		}
	}
	if !convoys {
		f.adopt(circle, &s.best)
	}
}

// adopt sets verdicts. An open one becomes no.
func (f *rulesBattle) adopt(circle Set[Province], verdicts *[Provinces]verdict) {
	for x := range circle.All() {
		f.verdict[x] = max(verdicts[x], no)
		f.undone.Remove(x)
	}
}

// circle finds units that depend on each other and on no other open verdict.
func (f *rulesBattle) circle() Set[Province] {
	var reach [Provinces]Set[Province]
	for x := range f.undone.All() {
		reach[x] = f.inputs(x)
		reach[x].Add(x)
	}
	for changed := true; changed; {
		changed = false
		for x := range f.undone.All() {
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
	for x := range f.undone.All() {
		if least.Empty() || reach[x].Len() < least.Len() {
			least = reach[x]
		}
	}
	return least
}

// inputs are the open verdicts that can change the verdict on x.
func (f *rulesBattle) inputs(x Province) Set[Province] {
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
	f      *rulesBattle
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
	for x := range s.f.undone.Minus(s.circle).All() {
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
