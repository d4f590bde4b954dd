package rules

// strength is the strength of a unit for some purpose: bounds, since supports may be open.
type strength struct{ low, high int }

// known returns the verdict on x so far.
func (f *rulesBattle) known(x Province) verdict {
	v := f.verdict[x]
	if v == open && f.reading {
		f.read.Add(x)
	}
	return v
}

// judge decides on x from the verdicts that are known.
func (f *rulesBattle) judge(x Province) verdict {
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
func (f *rulesBattle) judgeMove(x Province) verdict {
	path := f.path(x)
	if path == no {
		return no
	}
	to := f.to[x]
	attack := f.attack(x, path)
	against := f.hold(to)
	if f.HeadOn(x, to) {
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
func (f *rulesBattle) judgeSupport(x Province) verdict {
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
func (f *rulesBattle) judgeConvoy(x Province) verdict {
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

// HeadOn reports whether x and y move into each other's province by land.
func (f *rulesBattle) HeadOn(x, y Province) bool {
	return f.moves.Has(y) && f.to[y] == x && f.to[x] == y && !f.convoyed.Has(x) && !f.convoyed.Has(y)
}

// path decides whether x can reach its target: any one route of fleets that are not
// dislodged is enough (4.A.1).
func (f *rulesBattle) path(x Province) verdict {
	if !f.convoyed.Has(x) {
		return yes
	}
	var sure, likely Seas
	for y := range f.carriers[x].All() {
		switch f.known(y) {
		case yes:
			sure |= f.board.SeaOf(y)
		case open:
			likely |= f.board.SeaOf(y)
		}
	}
	if sure|likely == 0 {
		return no
	}
	result := no
	for _, c := range f.board.Crossings(x) {
		switch {
		case c.To != f.to[x] || c.Seas&^(sure|likely) != 0:
		case c.Seas&^sure == 0:
			return yes
		default:
			result = open
		}
	}
	return result
}

// supported is the strength of x with its supports, except those of one power.
func (f *rulesBattle) supported(x Province, without Power) strength {
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
func (f *rulesBattle) hold(p Province) strength {
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
func (f *rulesBattle) attack(x Province, path verdict) strength {
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
	case f.moves.Has(to) && !f.HeadOn(x, to):
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
func (f *rulesBattle) prevent(x Province) strength {
	path := f.path(x)
	if path == no {
		return strength{0, 0}
	}
	s := f.supported(x, None)
	if path == open {
		s.low = 0
	}
	if to := f.to[x]; f.HeadOn(x, to) {
		switch f.known(to) {
		case yes:
			return strength{0, 0}
		case open:
			s.low = 0
		}
	}
	return s
}
