package rules

import (
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// strength is how strong a unit is for some purpose, as far as it is known.
type strength struct{ least, most int }

// known is the verdict on x so far.
func (f *battle) known(x board.Province) verdict {
	v := f.verdict[x]
	if v == open && f.reading {
		f.read.Add(x)
	}
	return v
}

// judge decides on x with what is known.
func (f *battle) judge(x board.Province) verdict {
	switch f.orders[x].Kind {
	case order.Move:
		return f.judgeMove(x)
	case order.Support:
		return f.judgeSupport(x)
	case order.Convoy:
		return f.judgeConvoy(x)
	}
	return yes
}

// judgeMove: a move succeeds if it is stronger than what stands in its way and than
// everybody else who wants to go there.
func (f *battle) judgeMove(x board.Province) verdict {
	path := f.path(x)
	if path == no {
		return no
	}
	to := f.to[x]
	attack := f.attack(x, path)
	against := f.hold(to)
	if f.headOn(x, to) {
		against = f.supported(to, board.None)
	}
	won, lost := attack.least > against.most, attack.most <= against.least
	rivals := f.movers[to]
	rivals.Remove(x)
	for y := range rivals.All() {
		prevent := f.prevent(y)
		won = won && attack.least > prevent.most
		lost = lost || attack.most <= prevent.least
	}
	switch {
	case lost:
		return no
	case won:
		return yes
	}
	return open
}

// judgeSupport: a support is cut by any attack of another power that arrives, except
// from where the support is directed: that one must drive the supporter out.
func (f *battle) judgeSupport(x board.Province) verdict {
	target := f.orders[x].To
	if target == board.Nowhere {
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

// judgeConvoy: a convoy works unless its fleet is driven out.
func (f *battle) judgeConvoy(x board.Province) verdict {
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

// headOn says whether x and y go for each other's province by land.
func (f *battle) headOn(x, y board.Province) bool {
	return f.moves.Has(y) && f.to[y] == x && f.to[x] == y && !f.convoyed.Has(x) && !f.convoyed.Has(y)
}

// path says whether x can get to where it goes. Any route of unsunk fleets will do
// (4.A.1).
func (f *battle) path(x board.Province) verdict {
	if !f.convoyed.Has(x) {
		return yes
	}
	var sure, likely board.Seas
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

// supported is the strength of x with its supports, those of one power left out.
func (f *battle) supported(x board.Province, without board.Power) strength {
	s := strength{1, 1}
	for y := range f.helpers[x].All() {
		if without != board.None && f.units[y].Power == without {
			continue
		}
		switch f.known(y) {
		case yes:
			s.least++
			s.most++
		case open:
			s.most++
		}
	}
	return s
}

// hold is the strength that keeps units out of a province.
func (f *battle) hold(p board.Province) strength {
	switch {
	case f.units[p].Power == board.None:
		return strength{0, 0}
	case !f.moves.Has(p):
		return f.supported(p, board.None)
	}
	switch f.known(p) {
	case yes:
		return strength{0, 0}
	case no:
		return strength{1, 1}
	}
	return strength{0, 1}
}

// attack is the strength of x against whoever is where it goes. Nobody attacks a unit
// of their own power or helps to: that counts only if the unit leaves.
func (f *battle) attack(x board.Province, path verdict) strength {
	to := f.to[x]
	all := f.supported(x, board.None)
	if path == open {
		all.least = 0
	}
	victim := f.units[to].Power
	leaves := no
	switch {
	case victim == board.None:
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
		stays.least = 0
	}
	if leaves == open {
		stays.most = all.most
	}
	return stays
}

// prevent is the strength with which x keeps others out of where it goes. Whoever
// loses a head to head battle has none.
func (f *battle) prevent(x board.Province) strength {
	path := f.path(x)
	if path == no {
		return strength{0, 0}
	}
	s := f.supported(x, board.None)
	if path == open {
		s.least = 0
	}
	if to := f.to[x]; f.headOn(x, to) {
		switch f.known(to) {
		case yes:
			return strength{0, 0}
		case open:
			s.least = 0
		}
	}
	return s
}
