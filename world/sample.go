package world

import (
	"slices"

	"parley/internal/statmath"
	"parley/stats"
)

// Unit says which other observations an observation depends on: those with the same Deal or the same Play.
type Unit struct {
	// Deal identifies what the episode was dealt. 0: no other episode was dealt the same.
	Deal int
	// Play identifies what was said in the episode. Another episode with the same words is a copy and not a second
	// observation: see journal.Ended. 0: there is no copy.
	Play int
}

// Sample holds the values of one number, by episode. It is the only place where a mean and its interval are
// computed: every table, chart, plan and comparison uses Estimate. The zero value is empty.
type Sample struct {
	// Bounds are the possible values: no interval exceeds them. Default: anything.
	Bounds Bounds

	values []float64 // one for each episode
	deals  []int     // Unit.Deal of each value; nil: none has one
	plays  []int     // Unit.Play of each value; nil: none has one
}

// Add adds an episode. If it has several values, their mean counts.
func (s *Sample) Add(u Unit, values ...float64) {
	if len(values) == 0 {
		return
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	s.deals = s.mark(s.deals, u.Deal)
	s.plays = s.mark(s.plays, u.Play)
	s.values = append(s.values, sum/float64(len(values)))
}

// mark appends the cluster of a value. A list without clusters stays nil.
func (s *Sample) mark(list []int, id int) []int {
	if list == nil && id == 0 {
		return nil
	}
	if list == nil {
		list = make([]int, len(s.values), 2*len(s.values)+8)
	}
	return append(list, id)
}

// Episodes returns the number of episodes. It is 0 for a nil sample.
func (s *Sample) Episodes() int {
	if s == nil {
		return 0
	}
	return len(s.values)
}

// SD returns the standard deviation of the values; 0 for fewer than two.
func (s *Sample) SD() float64 { return statmath.Mean(s.values, 0.5).SD }

// Estimate returns the mean over episodes with its interval. Its N is the number of independent units.
//
//   - If every value is 0 or 1, and can be nothing else, the interval is Wilson's.
//   - If the number has a lowest and a highest value, it is Wilson's between these, for as many zeros and ones as
//     would vary as much: it never leaves the bounds.
//   - Otherwise, and for differences, it is Student's, cut to the bounds. If all values are the same it is unknown:
//     they do not show how much others would vary.
//   - If several episodes share a deal or are copies of one play, they form clusters, and the variance is
//     cluster-robust (CR2, with the degrees of freedom of Bell and McCaffrey). If there are both shared deals and
//     copies, the wider of the two intervals counts.
func (s *Sample) Estimate(confidence float64) stats.Quantity {
	q := s.clustered(s.deals, confidence)
	if repeated(s.plays) {
		p := s.clustered(s.plays, confidence)
		if !repeated(s.deals) || !(p.Half() <= q.Half()) || p.Half() == q.Half() && p.N < q.N {
			q = p
		}
	}
	return s.Bounds.Quantity(q)
}

// repeated reports whether several values belong to one cluster.
func repeated(ids []int) bool {
	seen := make(map[int]bool, len(ids))
	return slices.ContainsFunc(ids, func(id int) bool {
		again := id != 0 && seen[id]
		seen[id] = true
		return again
	})
}

func (s *Sample) clustered(ids []int, confidence float64) stats.Quantity {
	c := s.clusters(ids)
	switch {
	case len(s.values) == 0:
		return statmath.Unknown(0, "t")
	case s.binary() && c.N() == len(s.values):
		return statmath.Of(s.values, confidence).Quantity()
	case s.binary():
		return c.Between(0, 1, confidence)
	case s.Bounds.finite() && !s.Bounds.difference && s.within():
		return c.Between(s.Bounds.Low, s.Bounds.High, confidence)
	case s.constant():
		q := statmath.Unknown(c.N(), "t")
		q.Value = s.values[0]
		return q
	default:
		return c.Mean(confidence)
	}
}

// binary reports whether values are only 0 or 1, and can be nothing else.
func (s *Sample) binary() bool {
	if s.Bounds.difference || !s.Bounds.Any() && s.Bounds != Share() {
		return false
	}
	return !slices.ContainsFunc(s.values, func(v float64) bool { return v != 0 && v != 1 })
}

// within reports whether all values are within the bounds.
func (s *Sample) within() bool {
	return !slices.ContainsFunc(s.values, func(v float64) bool { return !(v >= s.Bounds.Low && v <= s.Bounds.High) })
}

func (s *Sample) constant() bool {
	return !slices.ContainsFunc(s.values, func(v float64) bool { return v != s.values[0] })
}

// Hopeless reports whether more such episodes will not narrow the interval: all are copies of one play, or nothing
// varies and there are no bounds.
func (s *Sample) Hopeless() bool {
	copies := s.plays != nil && !slices.ContainsFunc(s.plays, func(p int) bool { return p == 0 || p != s.plays[0] })
	return len(s.values) > 1 && s.constant() && (copies || s.Bounds.difference || s.Bounds.Any() && !s.binary() || !s.Bounds.Any() && !s.Bounds.finite())
}

// clusters groups values with the same id. A value with id 0 is its own cluster.
func (s *Sample) clusters(ids []int) *statmath.Clusters {
	c := &statmath.Clusters{}
	if ids == nil {
		for _, v := range s.values {
			c.Add(v)
		}
		return c
	}
	at := make(map[int]int, len(ids))
	var groups [][]float64
	for i, v := range s.values {
		g, known := at[ids[i]]
		if ids[i] == 0 || !known {
			g = len(groups)
			groups = append(groups, nil)
			at[ids[i]] = g
		}
		groups[g] = append(groups[g], v)
	}
	for _, g := range groups {
		c.Add(g...)
	}
	return c
}
