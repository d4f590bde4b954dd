package training

import "math"

// Bound returns the number below which the first n planned groups are, or false if nothing is planned yet. n must not
// shrink.
func (g *trajectoryGroups) Bound(n int) (episode int, ok bool) {
	if n >= g.planned {
		return math.MaxInt, len(g.stages) > 0
	}
	for w := &g.walked; w.groups < n; w.groups++ {
		for !g.stages[w.stage].skip(&w.within) {
			w.stage, w.within = w.stage+1, 0
		}
		w.episode = max(w.episode, g.stages[w.stage].bound(&w.within))
	}
	return max(g.walked.episode, g.boundJudged(g.walked.stage)), true
}

// skip moves a place beyond judgements, and reports whether there is a group.
func (s *stage) skip(place *int) bool {
	for s.shared == nil && s.judgements[*place] != "" {
		*place++
	}
	return *place < s.places()
}

// places returns how many places bound walks over.
func (s *stage) places() int {
	if s.shared != nil {
		return len(s.names)
	}
	return s.Specs.Len()
}

// bound returns the number that follows the group at a place, and moves the place to the next group.
func (s *stage) bound(place *int) int {
	if s.shared != nil {
		of := s.shared[s.names[*place]]
		*place++
		return of[len(of)-1] + 1
	}
	_, *place = s.Specs.Group(*place)
	return s.First + *place
}

// boundJudged returns the number that follows the judgements of a stage, or 0 if it has none. No group of such a stage is
// complete before all of it was played and judged, so it is bounded as a whole.
func (g *trajectoryGroups) boundJudged(i int) int {
	if !g.stages[i].judged {
		return 0
	}
	end := g.stages[i].First + g.stages[i].Specs.Len()
	if i+1 < len(g.stages) && len(g.stages[i+1].judgements) > 0 {
		return end + g.stages[i+1].Specs.Len()
	}
	return end + g.stages[i].groups // the judgements to come
}
