package rules

import (
	"encoding/binary"
	"hash/fnv"
)

// Dislodged is a unit that must retreat. The zero Dislodged is no unit.
type Dislodged struct {
	Unit Unit
	// Attacker is where the attack came from, or Nowhere if that is unknown.
	Attacker Location
	// Retreats are the locations that it can go to. Without any the unit is lost.
	Retreats Set[Location]
}

// Position is the whole state of a game. Positions are values: copy them by assignment and
// compare them with ==.
type Position struct {
	Phase     Phase
	Units     [Provinces]Unit
	Dislodged [Provinces]Dislodged
	Owners    [Provinces]Power // of supply centres
}

// Start is the position the game begins with.
func (r *Rules) Start() Position {
	p := Position{Phase: First()}
	for _, u := range r.Board.Start() {
		p.Units[r.Board.Province(u.Location)] = u
		p.Owners[r.Board.Province(u.Location)] = u.Power
	}
	return p
}

// Centres is the number of supply centres of a power.
func (p *Position) Centres(w Power) int {
	n := 0
	for _, owner := range p.Owners {
		if owner == w {
			n++
		}
	}
	return n
}

// Count is the number of units of a power, without those that must retreat.
func (p *Position) Count(w Power) int {
	n := 0
	for i := range p.Units {
		if p.Units[i].Power == w {
			n++
		}
	}
	return n
}

// Winner is the power with a majority of the centres, or None.
func (p *Position) Winner() Power {
	for _, w := range Powers() {
		if p.Centres(w) >= majority {
			return w
		}
	}
	return None
}

// Alive reports whether a power has a unit or a centre left.
func (p *Position) Alive(w Power) bool {
	for i := range p.Units {
		if p.Units[i].Power == w || p.Owners[i] == w || p.Dislodged[i].Unit.Power == w {
			return true
		}
	}
	return false
}

// Hash returns a number for the position, the same on every machine.
func (p *Position) Hash() uint64 {
	h := fnv.New64a()
	b := make([]byte, 0, 1024)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Phase.Year))
	b = append(b, byte(p.Phase.Season), byte(p.Phase.Step))
	for i := range p.Units {
		u, d := p.Units[i], &p.Dislodged[i]
		b = append(b, byte(u.Power), byte(u.Type), byte(u.Location), byte(p.Owners[i]), byte(d.Unit.Power))
		if d.Unit.Power != None {
			b = append(b, byte(d.Unit.Type), byte(d.Unit.Location), byte(d.Attacker))
			b = binary.LittleEndian.AppendUint64(b, d.Retreats[0])
			b = binary.LittleEndian.AppendUint64(b, d.Retreats[1])
		}
	}
	_, _ = h.Write(b) // a hash does not fail
	return h.Sum64()
}

// pending reports whether a unit can retreat.
func (p *Position) pending() bool {
	for i := range p.Dislodged {
		if !p.Dislodged[i].Retreats.Empty() {
			return true
		}
	}
	return false
}

// surplus is how many units a power may build, or, if negative, must remove.
func (p *Position) surplus(w Power) int { return p.Centres(w) - p.Count(w) }
