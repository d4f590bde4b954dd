// Package effect says how large a difference is, in units that can be compared between
// scores, and how many episodes it takes to see one.
//
// Which function to use:
//
//   - Two groups of scores: Hedges, or Cliff where only the order of scores means
//     something or a few are extreme. Pairs on the same deals: Paired.
//   - Two shares: CohenH; OddsRatio where readers expect one.
//   - Two scores of the same episodes: Pearson, or Spearman for their order.
//   - "How many more episodes would tell?": MeansNeeded, PairedNeeded and SharesNeeded for
//     a difference; MeanNeeded and ShareNeeded for an interval that is narrow enough.
//   - "What could these episodes have told?": MeansPower, PairedPower and SharesPower.
//
// What it promises is what package stats does: pure functions, no panics, and a quantity
// that is not known is said to be so.
//
// It is not for deciding whether there is a difference: the tests are in package stats.
package effect

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/stats"
)

// Cohen returns Cohen's d: by how many standard deviations the mean of a is above that
// of b, with the interval of the noncentral t distribution. It is a little too large with
// few observations: Hedges is not.
func Cohen(a, b []float64, confidence float64) stats.Quantity {
	d, _ := standardized(a, b, confidence)
	return d
}

// Hedges returns Hedges' g: Cohen's d corrected for few observations.
func Hedges(a, b []float64, confidence float64) stats.Quantity {
	d, df := standardized(a, b, confidence)
	if !d.Known() || df < 2 { // it is not defined for three observations
		return stats.Unknown(d.N, d.Method)
	}
	j := unbiased(df)
	d.Value, d.Low, d.High = d.Value*j, d.Low*j, d.High*j
	return d
}

// Paired returns by how many standard deviations of the differences their mean is above
// 0, with the interval of the noncentral t distribution. Differences are of pairs on the
// same deals. It is the d that PairedNeeded wants.
func Paired(differences []float64, confidence float64) stats.Quantity {
	e := stats.Mean(differences, confidence)
	if e.N < 2 || e.SD == 0 {
		return stats.Unknown(len(differences), "noncentral t")
	}
	root := math.Sqrt(float64(e.N))
	return noncentral(e.Mean/e.SD, root, float64(e.N-1), e.N, confidence)
}

// standardized returns d and its degrees of freedom.
func standardized(a, b []float64, confidence float64) (d stats.Quantity, df float64) {
	x, y := stats.Mean(a, confidence), stats.Mean(b, confidence)
	n := min(len(a), len(b))
	if min(x.N, y.N) < 1 || x.N+y.N < 3 || x.SD+y.SD == 0 {
		return stats.Unknown(n, "noncentral t"), 1
	}
	nx, ny := float64(x.N), float64(y.N)
	df = nx + ny - 2
	sd := math.Sqrt(x.SD*x.SD*((nx-1)/df) + y.SD*y.SD*((ny-1)/df))
	return noncentral((x.Mean-y.Mean)/sd, math.Sqrt(nx/(nx+ny)*ny), df, n, confidence), df
}

// noncentral returns d, which times root has the noncentral t distribution around its
// true value times root. The interval holds what would have made a smaller and a larger
// one than was seen not too seldom.
func noncentral(d, root, df float64, n int, confidence float64) stats.Quantity {
	q := stats.Unknown(n, "noncentral t")
	if math.IsNaN(d) || math.IsInf(d, 0) {
		return q
	}
	q.Value = d
	if !(confidence > 0 && confidence < 1) {
		return q
	}
	t, tail := d*root, (1-confidence)/2
	q.Low, q.High = noncentrality(t, df, 1-tail)/root, noncentrality(t, df, tail)/root
	return q
}

// noncentrality returns what makes t the quantile p of the noncentral t distribution.
func noncentrality(t, df, p float64) float64 {
	// The larger the noncentrality, the less is below t. It is further from t the less
	// certain the spread is, so look further until it is in between.
	low, high := t-1, t+1
	for step := 2.0; below(t, df, low) < p && step < 1e9; step *= 2 {
		low = t - step
	}
	for step := 2.0; below(t, df, high) > p && step < 1e9; step *= 2 {
		high = t + step
	}
	for high-low > 1e-10*max(1, math.Abs(t)) {
		mid := low + (high-low)/2
		if mid <= low || mid >= high {
			break // nothing is in between
		}
		if below(t, df, mid) > p {
			low = mid
		} else {
			high = mid
		}
	}
	return low + (high-low)/2
}

// below returns how much of the noncentral t distribution is below t.
func below(t, df, noncentrality float64) float64 {
	if math.Abs(noncentrality) < 37 {
		return distuv.NoncentralT{Nu: df, Mu: noncentrality}.CDF(t)
	}
	// From here on that loses its digits to numbers too small for a float. This is 26.7.10
	// of Abramowitz and Stegun, which is good for large ones.
	return distuv.UnitNormal.CDF((t*(1-1/(4*df)) - noncentrality) / math.Sqrt(1+t*t/(2*df)))
}

// unbiased is Hedges' correction, exactly.
func unbiased(df float64) float64 {
	a, _ := math.Lgamma(df / 2)
	b, _ := math.Lgamma((df - 1) / 2)
	return math.Exp(a-b) / math.Sqrt(df/2)
}

// Cliff returns Cliff's delta: how much more often an observation of a is above one of b
// than below it, from -1 to 1, with the interval of Feng and Cliff.
func Cliff(a, b []float64, confidence float64) stats.Quantity {
	n := min(len(a), len(b))
	if n < 1 || !finite(a) || !finite(b) {
		return stats.Quantity{Value: math.NaN(), Interval: stats.Interval{Low: -1, High: 1}, N: n, Method: "feng-cliff"}
	}
	rows, ties := dominance(a, b)
	columns, _ := dominance(b, a)
	d := mean(rows)
	q := stats.Quantity{Value: d, Interval: stats.Interval{Low: -1, High: 1}, N: n, Method: "feng-cliff"}
	z := normalQuantile(confidence)
	if n < 2 || math.IsInf(z, 1) {
		return q
	}
	if math.Abs(d) == 1 { // no overlap: what a share of n that is 1 comes to
		edge := (float64(n) - z*z) / (float64(n) + z*z)
		q.Interval = stats.Interval{Low: edge, High: 1}
		if d < 0 {
			q.Interval = stats.Interval{Low: -1, High: -edge}
		}
		return q
	}
	s := math.Sqrt(cliffVariance(d, rows, columns, ties))
	// Moved towards 0 and made uneven, since delta cannot leave -1 to 1.
	root := z * s * math.Sqrt((1-d*d)*(1-d*d)+z*z*s*s)
	low, high := (d-d*d*d-root)/(1-d*d+z*z*s*s), (d-d*d*d+root)/(1-d*d+z*z*s*s)
	q.Interval = stats.Interval{Low: max(-1, low), High: min(1, high)}
	return q
}

// cliffVariance is unbiased, and no smaller than it can be.
func cliffVariance(d float64, rows, columns []float64, ties float64) float64 {
	n, m := float64(len(rows)), float64(len(columns))
	var r, c float64
	for _, x := range rows {
		r += (x - d) * (x - d)
	}
	for _, x := range columns {
		c += (x + d) * (x + d) // seen from the other side
	}
	cells := n*m - ties - n*m*d*d
	v := (m*m*r + n*n*c - cells) / (n * m * (n - 1) * (m - 1))
	return max(v, (1-d*d)/(n*m-1))
}

// dominance returns, for each of a, how much more often it is above one of b than below,
// and how many pairs are ties.
func dominance(a, b []float64) (rows []float64, ties float64) {
	sorted := append([]float64(nil), b...)
	sort.Float64s(sorted)
	rows = make([]float64, len(a))
	for i, x := range a {
		less := sort.SearchFloat64s(sorted, x)
		upTo := less + sort.Search(len(sorted)-less, func(k int) bool { return sorted[less+k] > x })
		rows[i] = float64(less-(len(sorted)-upTo)) / float64(len(sorted))
		ties += float64(upTo - less)
	}
	return rows, ties
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

func finite(xs []float64) bool {
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

// normalQuantile returns z such that a normal variable is within ±z with the given
// confidence; a confidence that is none needs everything.
func normalQuantile(confidence float64) float64 {
	if !(confidence > 0 && confidence < 1) {
		return math.Inf(1)
	}
	return math.Sqrt2 * math.Erfinv(confidence)
}
