package world

import (
	"slices"

	calc "parley/internal/stats"
	"parley/stats"
)

// Unit says what an observation depends on. Observations with the same Deal, or with the same
// Play, are not independent of each other.
type Unit struct {
	// Deal identifies what the episode was dealt. 0: no other episode was dealt the same.
	Deal int
	// Play identifies what was said in the episode, where another episode with the same words
	// is a copy and not a second observation: see journal.Ended. 0: no other is.
	Play int
}

// Sample is what episodes gave of one number. It is the only place where a mean and its interval
// are computed: every table, chart, plan and comparison shows what Estimate returns. The zero
// value is empty.
type Sample struct {
	// Bounds are what the number can be: no interval goes beyond them. Default: anything.
	Bounds Bounds

	values []float64 // one for each episode
	deals  []int     // of values, by Unit.Deal; nil: none has one
	plays  []int     // of values, by Unit.Play; nil: none has one
}

// Add takes in what one episode gave. An episode counts once: of several values, by their mean.
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

// mark appends the cluster of a value. A list without clusters is not kept.
func (s *Sample) mark(list []int, id int) []int {
	if list == nil && id == 0 {
		return nil
	}
	if list == nil {
		list = make([]int, len(s.values), 2*len(s.values)+8)
	}
	return append(list, id)
}

// Episodes is how many episodes gave something. A nil sample has none.
func (s *Sample) Episodes() int {
	if s == nil {
		return 0
	}
	return len(s.values)
}

// SD is the standard deviation of what episodes gave; 0 for fewer than two.
func (s *Sample) SD() float64 { return calc.Mean(s.values, 0.5).SD }

// Estimate is the mean over episodes with its interval. Its N is the number of independent
// units that it rests on.
//
//   - Where every value is 0 or 1, and can be nothing else, the interval is Wilson's.
//   - Where the number has a lowest and a highest value, it is Wilson's between these, for as
//     many zeros and ones as would vary as much: it never leaves the bounds.
//   - Elsewhere, and of differences, it is Student's, cut to the bounds. Where all values are the same it is unknown: they do not tell
//     how much others would vary.
//   - Where several episodes share a deal or are copies of one play, they form clusters, and
//     the variance is cluster-robust (CR2, with the degrees of freedom of Bell and McCaffrey).
//     Where there are shared deals and copies too, the wider of the two intervals counts.
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

// repeated says whether several values belong to one cluster.
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
		return calc.Unknown(0, "t")
	case s.binary() && c.N() == len(s.values):
		return calc.Of(s.values, confidence).Quantity()
	case s.binary():
		return c.Between(0, 1, confidence)
	case s.Bounds.finite() && !s.Bounds.difference && s.within():
		return c.Between(s.Bounds.Low, s.Bounds.High, confidence)
	case s.constant():
		q := calc.Unknown(c.N(), "t")
		q.Value = s.values[0]
		return q
	default:
		return c.Mean(confidence)
	}
}

// binary says whether values are only ever 0 or 1.
func (s *Sample) binary() bool {
	if s.Bounds.difference || !s.Bounds.Any() && s.Bounds != Share() {
		return false
	}
	return !slices.ContainsFunc(s.values, func(v float64) bool { return v != 0 && v != 1 })
}

// within says whether all values are what they can be.
func (s *Sample) within() bool {
	return !slices.ContainsFunc(s.values, func(v float64) bool { return !(v >= s.Bounds.Low && v <= s.Bounds.High) })
}

func (s *Sample) constant() bool {
	return !slices.ContainsFunc(s.values, func(v float64) bool { return v != s.values[0] })
}

// hopeless says whether more episodes like these are not going to narrow the interval: all are
// copies of one play, or nothing varies and nothing bounds it.
func (s *Sample) hopeless() bool {
	copies := s.plays != nil && !slices.ContainsFunc(s.plays, func(p int) bool { return p == 0 || p != s.plays[0] })
	return len(s.values) > 1 && s.constant() && (copies || s.Bounds.difference || s.Bounds.Any() && !s.binary() || !s.Bounds.Any() && !s.Bounds.finite())
}

// clusters gathers values with the same id. One with 0 stands for itself.
func (s *Sample) clusters(ids []int) *calc.Clusters {
	c := &calc.Clusters{}
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
