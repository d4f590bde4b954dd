package planner

import (
	"slices"

	"parley/world"
)

// Measures returns the scores that a kind declares for specs: each once, with the bounds that hold for all of them.
func Measures(kind world.Kind, stages ...world.Specs) (all []world.Measure) {
	seen := map[string]bool{}
	for _, specs := range stages {
		for _, spec := range specs.Distinct() {
			if seen[string(spec.Params)] {
				continue
			}
			seen[string(spec.Params)] = true
			params, err := kind.Read(spec.Params)
			if err != nil {
				continue // a run file may hold anything
			}
			all = JoinMeasures(all, kind.Measures(params))
		}
	}
	return all
}

// JoinMeasures adds more scores to all. A score of both has the bounds that hold in both.
func JoinMeasures(all, more []world.Measure) []world.Measure {
	at := make(map[string]int, len(all))
	for i, m := range all {
		at[m.Name] = i
	}
	for _, m := range more {
		i, known := at[m.Name]
		if !known {
			at[m.Name] = len(all)
			all = append(all, m)
			continue
		}
		was := &all[i]
		was.Bounds, was.Rivals, was.Seats = was.Join(m.Bounds), was.Rivals || m.Rivals, slices.Clip(was.Seats)
		for _, seat := range m.Seats {
			if !slices.Contains(was.Seats, seat) {
				was.Seats = append(was.Seats, seat)
			}
		}
	}
	return all
}
