package world

import (
	"math"
	"slices"

	"parley/internal/kit/statmath"
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

	total  float64       // of all values that were added
	count  int           // of them
	values []float64     // one for each episode
	deals  []int32       // Unit.Deal of each value; nil: none has one
	plays  []int32       // Unit.Play of each value; nil: none has one
	wide   map[int]int32 // negative numbers for ids that are no int32, or negative
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
	s.total += sum
	s.count += len(values)
	s.deals = s.mark(s.deals, u.Deal)
	s.plays = s.mark(s.plays, u.Play)
	s.values = append(s.values, sum/float64(len(values)))
}

// Grow makes room for n more episodes.
func (s *Sample) Grow(n int) { s.values = slices.Grow(s.values, n) }

// mark appends the cluster of a value. A list without clusters stays nil.
func (s *Sample) mark(list []int32, id int) []int32 {
	if list == nil && id == 0 {
		return nil
	}
	if list == nil {
		list = make([]int32, len(s.values), 2*len(s.values)+8)
	}
	return append(list, s.narrow(id))
}

// narrow returns a number for an id: the id itself, if it is small.
func (s *Sample) narrow(id int) int32 {
	if id >= 0 && id <= math.MaxInt32 {
		return int32(id)
	}
	n, ok := s.wide[id]
	if !ok {
		if s.wide == nil {
			s.wide = map[int]int32{}
		}
		n = -1 - int32(len(s.wide))
		s.wide[id] = n
	}
	return n
}

// Episodes returns the number of episodes. It is 0 for a nil sample.
func (s *Sample) Episodes() int {
	if s == nil {
		return 0
	}
	return len(s.values)
}

// Total returns the sum of all values, and how many there are: an episode may have several.
func (s *Sample) Total() (sum float64, values int) {
	if s == nil {
		return 0, 0
	}
	return s.total, s.count
}

// SD returns the standard deviation of the values; 0 for fewer than two.
func (s *Sample) SD() float64 { return statmath.Mean(s.values, 0.5).SD }

// Estimate returns the mean over episodes with its interval. Its N is the number of independent units.
//
//   - If every value is 0 or 1, and can be nothing else, the interval is Wilson's.
//   - If all values are the same otherwise, the interval is unknown: they do not show how much others would differ.
//   - If the number has a lowest and a highest value, it is Wilson's between these, for as many zeros and ones as
//     would vary as much: it never leaves the bounds.
//   - Otherwise, and for differences, it is Student's, cut to the bounds.
//   - If several episodes share a deal or are copies of one play, they form clusters. The interval is of the
//     same form, but its variance is cluster-robust (CR2, with the degrees of freedom of Bell and McCaffrey). If there are both shared deals and
//     copies, the wider of the two intervals counts.
func (s *Sample) Estimate(confidence float64) stats.Quantity {
	return s.Bounds.Quantity(s.wider(func(g groups) stats.Quantity { return s.clustered(g, confidence) }))
}

// wider returns the estimate by deals, or that by plays if some are copies and its interval is wider.
func (s *Sample) wider(of func(groups) stats.Quantity) stats.Quantity {
	deals, plays := groupsOf(s.deals), groupsOf(s.plays)
	q := of(deals)
	if plays.repeated() {
		p := of(plays)
		if !deals.repeated() || !(p.Half() <= q.Half()) || p.Half() == q.Half() && p.N < q.N {
			q = p
		}
	}
	return q
}

// Clustered estimates something other than a mean, such as how far raters agree, from observations with these units. It calls of with the
// number of the cluster of each observation, from 0: by deal, and also by play if some are copies. As for a mean, the wider interval counts.
func Clustered(units []Unit, of func(clusters []int) stats.Quantity) stats.Quantity {
	var s Sample
	for _, u := range units {
		s.Add(u, 0)
	}
	return s.wider(func(g groups) stats.Quantity {
		clusters := make([]int, len(units))
		for i := range clusters {
			clusters[i] = i
			if g.of != nil {
				clusters[i] = int(g.of[i])
			}
		}
		return of(clusters)
	})
}

// groups numbers clusters in the order in which they first occur.
type groups struct {
	of []int32 // the number of the cluster of each value; nil: each value is its own
	n  int     // clusters
}

// groupsOf returns the clusters of values with these ids. A value with id 0 is its own cluster.
func groupsOf(ids []int32) groups {
	if len(ids) == 0 {
		return groups{}
	}
	g := groups{of: make([]int32, len(ids))}
	var near []int32 // by id, the number + 1: ids are usually small
	far := map[int32]int32{}
	if top := int(slices.Max(ids)); top <= 2*len(ids) {
		near = make([]int32, max(0, top)+1)
	}
	for i, id := range ids {
		number := int32(0)
		switch {
		case id == 0:
		case id > 0 && int(id) < len(near):
			number = near[id]
		default:
			number = far[id]
		}
		if number == 0 {
			g.n++
			number = int32(g.n)
			if id > 0 && int(id) < len(near) {
				near[id] = number
			} else if id != 0 {
				far[id] = number
			}
		}
		g.of[i] = number - 1
	}
	return g
}

// repeated reports whether several values belong to one cluster.
func (g groups) repeated() bool { return g.n < len(g.of) }

func (s *Sample) clustered(ids groups, confidence float64) stats.Quantity {
	c := s.clusters(ids)
	switch {
	case len(s.values) == 0:
		return statmath.Unknown(0, "t")
	case s.binary() && c.N() == len(s.values):
		return statmath.EstimateMean(s.values, confidence).Quantity()
	case s.binary():
		return c.Between(0, 1, confidence)
	case s.constant():
		q := statmath.Unknown(c.N(), stats.Constant)
		q.Value = s.values[0]
		return q
	case s.Bounds.finite() && !s.Bounds.difference && s.within():
		return c.Between(s.Bounds.Low, s.Bounds.High, confidence)
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
// varies and the values are no shares.
func (s *Sample) Hopeless() bool {
	copies := s.plays != nil && !slices.ContainsFunc(s.plays, func(p int32) bool { return p == 0 || p != s.plays[0] })
	return len(s.values) > 1 && s.constant() && (copies || !s.binary())
}

// clusters returns the values of each cluster.
func (s *Sample) clusters(g groups) *statmath.Clusters {
	c := &statmath.Clusters{}
	if !g.repeated() {
		c.Grow(len(s.values))
		for i := range s.values {
			c.Add(s.values[i : i+1]...)
		}
		return c
	}
	c.Grow(g.n)
	ends := make([]int, g.n+1) // where the values of each cluster end, once they are there
	for _, n := range g.of {
		ends[n+1]++
	}
	for i := range g.n {
		ends[i+1] += ends[i]
	}
	sorted := make([]float64, len(s.values))
	for i, v := range s.values {
		n := g.of[i]
		sorted[ends[n]] = v
		ends[n]++
	}
	begin := 0
	for _, end := range ends[:g.n] {
		c.Add(sorted[begin:end]...)
		begin = end
	}
	return c
}

// Paired compares two sides that did the same things, such as solve the same problems. It returns the mean difference
// a-b with its interval, and a test of how often chance alone makes such a difference. If all values are 0 or 1,
// these are Newcombe's interval and McNemar's test; otherwise Student's and a sign-flip test, which draws from the
// seed. If the lengths differ, the result is unknown.
func Paired(a, b []float64, confidence float64, seed uint64) (stats.Quantity, stats.Test) {
	if len(a) == len(b) && zeroOne(a) && zeroOne(b) {
		var p statmath.Pairs
		for i := range a {
			p.Count(a[i], b[i])
		}
		return statmath.PairedShareDifference(p, confidence), statmath.McNemar(p)
	}
	var differences []float64
	if len(a) == len(b) {
		for i := range a {
			differences = append(differences, a[i]-b[i])
		}
	}
	return statmath.PairedDifference(a, b, confidence), statmath.Permutation{Seed: seed}.SignFlip(differences)
}

func zeroOne(xs []float64) bool {
	for _, x := range xs {
		if x != 0 && x != 1 {
			return false
		}
	}
	return true
}
