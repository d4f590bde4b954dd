package report

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"parley/internal/kit/statmath"
)

// design simulates a comparison with more units: its test, and the level that P must
// be below.
type design struct {
	pairing
	shares bool
	level  float64
	x, y   []float64 // the values to draw from: differences if paired and not shares, otherwise those of a and b
}

// newDesign widens values so that draws from n of them, with replacement, have the variance of
// n-1 degrees of freedom. Zeros among paired differences stay zero.
func newDesign(p pairing, shares bool, level float64) *design {
	d := &design{pairing: p, shares: shares, level: level, x: p.a, y: p.b}
	switch {
	case shares:
	case p.paired:
		d.x, d.y = widened(differences(p), true), nil
	default:
		d.x, d.y = widened(p.a, false), widened(p.b, false)
	}
	return d
}

// widened spreads values about their mean. With keepZeros, zeros do not change or count.
func widened(xs []float64, keepZeros bool) []float64 {
	var some []float64
	for _, x := range xs {
		if x != 0 || !keepZeros {
			some = append(some, x)
		}
	}
	n := float64(len(some))
	mean := statmath.Mean(some, confidence).Mean
	out := make([]float64, len(xs))
	for i, x := range xs {
		switch {
		case x == 0 && keepZeros:
		case n > 1:
			out[i] = mean + (x-mean)*math.Sqrt(n/(n-1))
		default:
			out[i] = x
		}
	}
	return out
}

// Limits of the simulation.
const (
	maxTests            = 400    // simulated tests for one number of units
	minTests            = 100    // the same if each is much work
	testWork            = 40_000 // units of all simulated tests
	maxSimulated        = 2_000  // units: beyond, the tests are like Student's
	maxSimulatedMatches = 48     // comparisons, those with the smallest P
)

// enough reports whether the test finds the difference often enough with so many more units on each side, if they
// are like those seen. The draws are the same each time.
func (d *design) enough(more int) bool {
	n := len(d.x) + more
	tests := min(maxTests, max(minTests, testWork/n))
	r := rand.New(rand.NewPCG(seed, 2))
	x, y := make([]float64, n), []float64(nil)
	if d.y != nil {
		y = make([]float64, len(d.y)+more)
	}
	fisher := map[[2]int]float64{}
	found := 0
	for range tests {
		if d.finds(r, x, y, fisher) {
			found++
		}
	}
	return float64(found) >= power*float64(tests)
}

// finds draws units and reports whether their test finds a difference.
func (d *design) finds(r *rand.Rand, x, y []float64, fisher map[[2]int]float64) bool {
	for i := range x {
		at := r.IntN(len(d.x))
		x[i] = d.x[at]
		if d.paired && d.shares {
			y[i] = d.y[at]
		}
	}
	for i := range y {
		if !d.paired {
			y[i] = d.y[r.IntN(len(d.y))]
		}
	}
	switch {
	case d.paired && d.shares:
		return statmath.McNemar(tally(x, y)).P < d.level
	case d.paired:
		return statmath.SignFlipBelow(x, d.level)
	case d.shares:
		k := [2]int{ones(x), ones(y)}
		p, known := fisher[k]
		if !known {
			p = statmath.Fisher(k[0], len(x), k[1], len(y)).P
			fisher[k] = p
		}
		return p < d.level
	default:
		return statmath.Welch(x, y).P < d.level
	}
}

// least returns the smallest number of units on the smaller side with which the test can find anything: an
// exact test has a smallest P. For Welch's test it is two.
func (d *design) least() int {
	small, large := min(len(d.a), len(d.b)), max(len(d.a), len(d.b))
	for n := 2; ; n++ {
		var p float64
		switch {
		case d.paired:
			p = 2 * math.Pow(0.5, float64(n))
		case d.shares:
			p = statmath.Fisher(n, n, 0, max(n, n+large-small)).P
		}
		if p < d.level || n >= maxSimulated {
			return n
		}
	}
}

// needed returns how many units the smaller side needs for the test to find the difference four times in
// five. It is not ok if limit units are too few. The search begins at guess.
func (d *design) needed(from, guess, limit int) (n int, ok bool) {
	have := min(len(d.a), len(d.b))
	low, high := from-1, max(from, min(guess, limit))
	for high < maxSimulated && !d.enough(high-have) {
		if high >= limit {
			return limit, false
		}
		low, high = high, min(limit, high+max(1, high/2))
	}
	if high >= maxSimulated {
		return high, guess <= limit && guess > 0
	}
	for high-low > max(1, high/50) {
		if mid := (low + high) / 2; d.enough(mid - have) {
			high = mid
		} else {
			low = mid
		}
	}
	return high, true
}

// plan finds how many more units would show the difference, if it is as large as it looks, and the
// smallest number that can show anything.
func (c *Comparison) plan(level float64, simulate bool) {
	if c.Differs() {
		return
	}
	c.More = -1
	if c.N < 2 || !c.Test.Known() {
		return
	}
	d := newDesign(c.pairs, c.shares, level)
	if least := d.least(); least > c.N {
		c.Least = least
	}
	if c.Difference.Value == 0 || !c.Difference.Known() || c.noise() {
		return
	}
	limit := 100 * c.N // more is impractical
	from := max(c.N+1, c.Least)
	guess := c.guess(level)
	n, ok := max(from, guess), guess > 0 && guess <= limit
	if simulate {
		n, ok = d.needed(from, guess, max(from, limit))
	}
	if !ok {
		c.Beyond = limit
		return
	}
	c.More = n - c.N
	c.Episodes = c.More * max(1, c.perDeal)
}

// guess returns about how many units are needed by general formulas, or 0 if they do not apply.
func (c *Comparison) guess(level float64) (n int) {
	switch d := c.Effect.Value; {
	case math.IsNaN(d) || d == 0:
	case c.Paired:
		n, _ = statmath.PairedNeeded(d, level, power)
	case c.shares:
		n, _ = statmath.SharesNeeded(c.MeanA.Value, c.MeanB.Value, level, power)
	default:
		n, _ = statmath.MeansNeeded(d, level, power)
	}
	return n
}

// noise reports whether P is above a half: then the interval says all there is to say.
func (c *Comparison) noise() bool {
	half := c.Difference.Half()
	return c.Test.P > 0.5 && half > 0 && !math.IsInf(half, 0)
}

// plan finds for all open comparisons how many more units would show a difference, at the level
// that the next finding must be below while the others stay unchanged.
func (r *Result) plan() {
	var open []int
	found := 0
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		switch {
		case c.Differs():
			found++
		case !math.IsNaN(c.Adjusted):
			open = append(open, i)
		}
	}
	level := alpha
	switch r.Correct {
	case holm:
		level /= float64(max(1, len(open)))
	case bh:
		level *= float64(found+1) / float64(found+max(1, len(open)))
	}
	slices.SortStableFunc(open, func(i, j int) int { return cmp.Compare(r.Comparisons[i].Test.P, r.Comparisons[j].Test.P) })
	for rank, i := range open {
		r.Comparisons[i].plan(level, rank < maxSimulatedMatches)
	}
	for i := range r.Comparisons {
		if c := &r.Comparisons[i]; math.IsNaN(c.Adjusted) {
			c.More = -1
		}
	}
}
