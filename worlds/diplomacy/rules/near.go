package rules

import (
	"cmp"
	"slices"
)

// Way is a shortest path over the board, both ends included.
type Way struct {
	Unit Unit // which would go
	To   Province
	Path []Location
}

// NearestCentres returns the ways of a unit to the nearest centres that its power does not own,
// at most n.
func (r *Rules) NearestCentres(p *Position, u Unit, n int) []Way {
	var ways []Way
	for c := range r.Board.SupplyCentres().All() {
		if p.Owners[c] != u.Power && c != r.Board.Province(u.Location) {
			ways = append(ways, Way{Unit: u, To: c})
		}
	}
	return r.nearest(ways, n)
}

// NearestThreats returns the ways of the nearest units of other powers to a unit, at most n.
func (r *Rules) NearestThreats(p *Position, u Unit, n int) []Way {
	var ways []Way
	for _, other := range p.Units {
		if other.Power != None && other.Power != u.Power {
			ways = append(ways, Way{Unit: other, To: r.Board.Province(u.Location)})
		}
	}
	return r.nearest(ways, n)
}

// nearest keeps the n shortest ways, the first of equal ones, and finds their paths.
func (r *Rules) nearest(ways []Way, n int) []Way {
	far := func(w Way) int { return r.Board.Distance(w.Unit.Type, w.Unit.Location, w.To) }
	ways = slices.DeleteFunc(ways, func(w Way) bool { return far(w) == boardFar })
	slices.SortStableFunc(ways, func(a, b Way) int { return cmp.Compare(far(a), far(b)) })
	ways = ways[:min(len(ways), max(n, 0))]
	for i, w := range ways {
		ways[i].Path = r.Board.Path(w.Unit.Type, w.Unit.Location, w.To)
	}
	return ways
}
