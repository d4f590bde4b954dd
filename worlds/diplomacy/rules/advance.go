package rules

import "parley/worlds/diplomacy/rules/board"

// Advance leads from the position after a phase to the next phase in which somebody
// has something to order. Retreat phases in which every dislodged unit is lost, and
// winters in which nobody builds or removes, are left out.
func (r *Rules) Advance(after *Position) Position {
	next := *after
	if next.Phase.Step == Movement && next.pending() {
		next.Phase.Step = Retreats
		return next
	}
	next.Dislodged = [board.Provinces]Dislodged{}
	switch next.Phase.Season {
	case Spring:
		next.Phase = Phase{Year: next.Phase.Year, Season: Fall}
	case Fall:
		next.Phase = Phase{Year: next.Phase.Year, Season: Winter, Step: Adjustments}
		if r.anyAdjusts(&next) {
			return next
		}
		fallthrough
	default:
		next.Phase = Phase{Year: next.Phase.Year + 1}
	}
	return next
}

// anyAdjusts says whether a power may build somewhere or has to remove units.
func (r *Rules) anyAdjusts(p *Position) bool {
	for _, w := range board.Powers() {
		if r.Allowed(p, w) != 0 {
			return true
		}
	}
	return false
}

// Allowed is how many units a power may build in an adjustment phase: no more than
// there are free home centres. Below zero, it has to remove as many.
func (r *Rules) Allowed(p *Position, w board.Power) int {
	return min(p.surplus(w), r.sites(p, w).Len())
}

// sites are the home centres where w can build.
func (r *Rules) sites(p *Position, w board.Power) board.Set[board.Province] {
	var free board.Set[board.Province]
	for c := range r.Board.Homes(w).All() {
		if p.Owners[c] == w && p.Units[c].Power == board.None {
			free.Add(c)
		}
	}
	return free
}
