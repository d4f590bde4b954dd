package rules

import (
	"slices"
)

// Advance returns the start of the next phase in which a power can give an order. It skips
// retreat phases in which every dislodged unit is lost, and winters without builds and
// removals.
func (r *Rules) Advance(after *Position) Position {
	next := *after
	if next.Phase.Step == Movement && next.pending() {
		next.Phase.Step = Retreats
		return next
	}
	next.Dislodged = [Provinces]Dislodged{}
	switch next.Phase.Season {
	case Spring:
		next.Phase = Phase{Year: next.Phase.Year, Season: Fall}
	case Fall:
		next.Phase = Phase{Year: next.Phase.Year, Season: Winter, Step: Adjustments}
		if slices.ContainsFunc(Powers(), func(w Power) bool { return r.Allowed(&next, w) != 0 }) {
			return next
		}
		fallthrough
	default:
		next.Phase = Phase{Year: next.Phase.Year + 1}
	}
	return next
}

// Allowed is how many units a power may build in an adjustment phase: at most one in each free
// home centre. If it is negative, the power must remove that many.
func (r *Rules) Allowed(p *Position, w Power) int {
	return min(p.surplus(w), r.Sites(p, w).Len())
}

// Sites are the home centres where w can build.
func (r *Rules) Sites(p *Position, w Power) Set[Province] {
	var free Set[Province]
	for c := range r.Board.Homes(w).All() {
		if p.Owners[c] == w && p.Units[c].Power == None {
			free.Add(c)
		}
	}
	return free
}
