package statmath

import (
	"math"
	"sort"
)

// Hedges returns Hedges' g: by how many standard deviations the mean of a is above that of b, corrected for small
// samples. The interval is that of the noncentral t distribution.
func Hedges(a, b []float64, confidence float64) Quantity {
	d, df := standardized(a, b, confidence)
	if !d.Known() || df < 2 { // not defined for three observations
		return Unknown(d.N, d.Method)
	}
	j := hedgesFactor(df)
	d.Value, d.Low, d.High = d.Value*j, d.Low*j, d.High*j
	return d
}

// PairedEffect returns by how many standard deviations of the differences their mean is above 0, with the interval of
// the noncentral t distribution. The differences are between two sides on the same deals. PairedNeeded takes this d.
func PairedEffect(differences []float64, confidence float64) Quantity {
	e := Mean(differences, confidence)
	if e.N < 2 || e.SD == 0 {
		return Unknown(len(differences), "noncentral t")
	}
	root := math.Sqrt(float64(e.N))
	return noncentral(e.Mean/e.SD, root, float64(e.N-1), e.N, confidence)
}

// CohenH returns Cohen's h: how far the share k1 of n1 is above k2 of n2, on a scale where equal steps are equally
// hard to detect anywhere between 0 and 1.
func CohenH(k1, n1, k2, n2 int, confidence float64) Quantity {
	q := Unknown(max(0, min(n1, n2)), "arcsine")
	if !validShare(k1, n1) || !validShare(k2, n2) {
		return q
	}
	q.Value = arcsine(float64(k1)/float64(n1)) - arcsine(float64(k2)/float64(n2))
	half := normalQuantile(confidence) * math.Sqrt(1/float64(n1)+1/float64(n2))
	q.Low, q.High = max(-math.Pi, q.Value-half), min(math.Pi, q.Value+half)
	return q
}

func arcsine(p float64) float64 { return 2 * math.Asin(math.Sqrt(p)) }

func validShare(k, n int) bool { return n > 0 && k >= 0 && k <= n }

// standardized returns Cohen's d and its degrees of freedom.
func standardized(a, b []float64, confidence float64) (d Quantity, df float64) {
	x, y := Mean(a, confidence), Mean(b, confidence)
	n := min(len(a), len(b))
	if min(x.N, y.N) < 1 || x.N+y.N < 3 || x.SD+y.SD == 0 {
		return Unknown(n, "noncentral t"), 1
	}
	nx, ny := float64(x.N), float64(y.N)
	df = nx + ny - 2
	sd := math.Sqrt(x.SD*x.SD*((nx-1)/df) + y.SD*y.SD*((ny-1)/df))
	return noncentral((x.Mean-y.Mean)/sd, math.Sqrt(nx/(nx+ny)*ny), df, n, confidence), df
}

// noncentral returns d with its interval. d times root has the noncentral t distribution around its true value times root.
func noncentral(d, root, df float64, n int, confidence float64) Quantity {
	q := Unknown(n, "noncentral t")
	if !isFinite(d) {
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

// noncentrality returns the noncentrality that makes t the quantile p of the noncentral t distribution.
func noncentrality(t, df, p float64) float64 {
	// The larger the noncentrality, the less is below t. First find two that enclose the answer, then bisect.
	low, high := t-1, t+1
	for step := 2.0; noncentralBelow(t, df, low) < p && step < 1e9; step *= 2 {
		low = t - step
	}
	for step := 2.0; noncentralBelow(t, df, high) > p && step < 1e9; step *= 2 {
		high = t + step
	}
	for high-low > 1e-10*max(1, math.Abs(t)) {
		mid := low + (high-low)/2
		if mid <= low || mid >= high {
			break // no float64 lies between them
		}
		if noncentralBelow(t, df, mid) > p {
			low = mid
		} else {
			high = mid
		}
	}
	return low + (high-low)/2
}

// noncentralBelow returns the share of the noncentral t distribution below t.
func noncentralBelow(t, df, noncentrality float64) float64 {
	switch {
	case math.Abs(noncentrality) >= 37:
		// The series underflows. Formula 26.7.10 of Abramowitz and Stegun is accurate there.
		return normalCDF((t*(1-1/(4*df)) - noncentrality) / math.Sqrt(1+t*t/(2*df)))
	case t < 0:
		return 1 - noncentralT(-t, df, -noncentrality)
	default:
		return noncentralT(t, df, noncentrality)
	}
}

// hedgesFactor returns the exact factor of Hedges' correction.
func hedgesFactor(df float64) float64 {
	a, _ := math.Lgamma(df / 2)
	b, _ := math.Lgamma((df - 1) / 2)
	return math.Exp(a-b) / math.Sqrt(df/2)
}

// maxNeeded is the largest number of episodes that the search considers.
const maxNeeded = 1_000_000_000

// meansPower returns how often a t test at level alpha detects a difference of d standard
// deviations between two groups of n episodes each. It returns NaN if that is unknown.
func meansPower(d float64, n int, alpha float64) float64 {
	return tPower(d*math.Sqrt(float64(n)/2), 2*float64(n)-2, alpha)
}

// pairedPower returns how often a t test at level alpha detects a mean difference of d
// standard deviations of the differences, from n pairs. It returns NaN if that is unknown.
func pairedPower(d float64, n int, alpha float64) float64 {
	return tPower(d*math.Sqrt(float64(n)), float64(n)-1, alpha)
}

// sharesPower returns how often a test at level alpha detects that shares of p1 and p2
// differ, from n episodes in each of two groups. It returns NaN if that is unknown.
func sharesPower(p1, p2 float64, n int, alpha float64) float64 {
	if !(p1 >= 0 && p1 <= 1 && p2 >= 0 && p2 <= 1 && alpha > 0 && alpha < 1) || n < 1 {
		return math.NaN()
	}
	middle := (p1 + p2) / 2
	equal := math.Sqrt(2 * middle * (1 - middle))
	apart := math.Sqrt(p1*(1-p1) + p2*(1-p2))
	far := math.Abs(p1-p2) * math.Sqrt(float64(n))
	z := normalQuantile(1-alpha) * equal
	switch {
	case equal == 0: // both shares are 0, or both are 1
		return alpha
	case apart == 0: // one share is 0, the other 1
		if far > z {
			return 1
		}
		return 0
	}
	return normalCDF((far-z)/apart) + normalCDF((-far-z)/apart)
}

// tPower returns how often a noncentral t variable is beyond the critical values of level alpha.
func tPower(noncentrality, df, alpha float64) float64 {
	if !(alpha > 0 && alpha < 1 && df >= 1) || math.IsNaN(noncentrality) || math.IsInf(noncentrality, 0) {
		return math.NaN()
	}
	nc := math.Abs(noncentrality)
	edge := tQuantile(df, 1-alpha)
	return min(1, max(0, 1-noncentralBelow(edge, df, nc)+noncentralBelow(-edge, df, nc)))
}

// MeansNeeded returns how many episodes each of two groups needs for meansPower to reach
// power. It is not ok if no number up to maxNeeded is enough.
func MeansNeeded(d, alpha, power float64) (n int, ok bool) {
	return needed(2, d != 0, power, func(n int) float64 { return meansPower(d, n, alpha) })
}

// PairedNeeded returns how many pairs are needed for pairedPower to reach power.
func PairedNeeded(d, alpha, power float64) (n int, ok bool) {
	return needed(2, d != 0, power, func(n int) float64 { return pairedPower(d, n, alpha) })
}

// SharesNeeded returns how many episodes each of two groups needs for sharesPower to
// reach power.
func SharesNeeded(p1, p2, alpha, power float64) (n int, ok bool) {
	return needed(1, p1 != p2, power, func(n int) float64 { return sharesPower(p1, p2, n, alpha) })
}

// needed returns the smallest n of at least first for which reached(n) is at least want. reached grows with n.
func needed(first int, possible bool, want float64, reached func(n int) float64) (int, bool) {
	if !possible || !(want < 1) || math.IsNaN(reached(first)) {
		return 0, false
	}
	top := first
	for reached(top) < want {
		if top *= 2; top > maxNeeded {
			return 0, false
		}
	}
	low := max(first, top/2)
	return low + sort.Search(top-low, func(i int) bool { return reached(low+i) >= want }), true
}
