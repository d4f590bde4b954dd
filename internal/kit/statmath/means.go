package statmath

import (
	"math"
	"slices"
)

// Estimate is an estimate of a mean from observations.
type Estimate struct {
	N        int      `json:"n"` // 0 if an observation was not finite: then nothing is known
	Mean     float64  `json:"mean"`
	SD       float64  `json:"sd"` // of the observations, with n-1; 0 for fewer than two
	Interval Interval `json:"interval"`
	Method   string   `json:"method"` // how the interval was computed, such as "t" or "wilson"
}

// Quantity returns the estimate as a Quantity.
func (e Estimate) Quantity() Quantity {
	if e.N == 0 {
		return Unknown(0, e.Method)
	}
	return Quantity{Value: e.Mean, Interval: e.Interval, N: e.N, Method: e.Method}
}

// Mean returns the mean of xs with Student's t interval. With fewer than two
// observations the interval is unbounded.
func Mean(xs []float64, confidence float64) Estimate {
	t := tallied(xs)
	e := Estimate{Interval: unbounded(), Method: "t"}
	if !t.sound() {
		return e
	}
	e.N, e.Mean = t.n, t.mean
	if t.n > 1 {
		e.SD = math.Sqrt(t.variance())
		e.Interval = student(e.Mean, e.SD/math.Sqrt(float64(t.n)), float64(t.n-1), confidence)
	}
	return e
}

// EstimateMean returns the mean of xs with the interval that fits: Wilson's where every
// observation is 0 or 1, Student's otherwise.
func EstimateMean(xs []float64, confidence float64) Estimate {
	e := Mean(xs, confidence)
	if ones, other := countOnes(xs); len(xs) > 0 && !other {
		e.Mean = float64(ones) / float64(len(xs))
		e.Interval = Wilson(ones, len(xs), confidence)
		e.Method = "wilson"
	}
	return e
}

// countOnes returns how many xs are 1, and whether there are others than 0 and 1.
func countOnes(xs []float64) (ones int, other bool) {
	for _, x := range xs {
		switch x {
		case 0:
		case 1:
			ones++
		default:
			other = true
		}
	}
	return ones, other
}

// student returns the t interval of a mean with a standard error.
func student(mean, se, df, confidence float64) Interval {
	half := float64(tQuantile(df, confidence) * se)
	if math.IsNaN(half) { // no spread, and an infinite quantile
		half = math.Inf(1)
	}
	return Interval{Low: mean - half, High: mean + half}
}

// PairedDifference returns the mean of a[i]-b[i], which are from the same deal, with
// Student's t interval. The result is unknown if the lengths differ.
func PairedDifference(a, b []float64, confidence float64) Quantity {
	if len(a) != len(b) {
		return Unknown(min(len(a), len(b)), "t, paired")
	}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = a[i] - b[i]
	}
	e := Mean(differences, confidence)
	q := e.Quantity()
	q.Method = "t, paired"
	if unlessRounding(e.SD*e.SD, slices.Concat(a, b)...) == 0 {
		q.Interval = unbounded() // equal differences do not show how much others would vary
	}
	return q
}

// MeanDifference returns the mean of a less the mean of b, which are independent of
// each other, with Welch's interval. N is the size of the smaller one.
func MeanDifference(a, b []float64, confidence float64) Quantity {
	w := compareMeans(a, b)
	q := Quantity{Value: w.difference, Interval: unbounded(), N: w.n, Method: "welch"}
	if w.df > 0 && unlessRounding(w.se*w.se, slices.Concat(a, b)...) > 0 {
		q.Interval = student(w.difference, w.se, w.df, confidence)
	}
	return q
}

// Welch tests whether the means of a and b, which are independent of each other,
// differ. Their spreads need not be equal.
func Welch(a, b []float64) Test {
	w := compareMeans(a, b)
	if !(w.df > 0) || w.se == 0 {
		return Test{P: math.NaN(), N: w.n, Method: "welch"}
	}
	return Test{P: tTails(w.difference/w.se, w.df), N: w.n, Method: "welch"}
}

// welch is a difference of means. If df is 0, its spread is unknown.
type welch struct {
	difference, se, df float64
	n                  int
}

func compareMeans(a, b []float64) welch {
	x, y := tallied(a), tallied(b)
	w := welch{difference: math.NaN(), n: min(len(a), len(b))}
	if w.n == 0 || !x.sound() || !y.sound() {
		return w
	}
	if d := x.mean - y.mean; isFinite(d) {
		w.difference = d
	}
	if w.n < 2 || math.IsNaN(w.difference) {
		return w
	}
	vx, vy := x.variance()/float64(x.n), y.variance()/float64(y.n)
	w.se = math.Sqrt(vx + vy)
	w.df = float64(x.n + y.n - 2)
	if w.se > 0 {
		// Divide first: squares of small variances would underflow to 0.
		sx, sy := vx/(vx+vy), vy/(vx+vy)
		w.df = 1 / (sx*sx/float64(x.n-1) + sy*sy/float64(y.n-1))
	}
	return w
}

// tally sums up observations, in their order: the same observations in the same order give the same digits.
type tally struct {
	n        int
	mean, m2 float64 // m2 is the sum of squared distances from the mean
}

// tallied uses Welford's method, which stays precise for any size of the mean.
func tallied(xs []float64) tally {
	t := tally{n: len(xs)}
	for i, x := range xs {
		d := x - t.mean
		t.mean += d / float64(i+1)
		t.m2 += float64(d * (x - t.mean))
	}
	return t
}

// sound reports whether all observations were finite, and small enough to be squared.
func (t tally) sound() bool { return isFinite(t.mean) && isFinite(t.m2) }

func (t tally) variance() float64 {
	if t.n < 2 {
		return 0
	}
	return max(0, t.m2) / float64(t.n-1)
}

// Clusters estimates the mean of observations that come in clusters, such as the episodes of one deal, and
// are independent only between clusters. Its confidence depends on the number of clusters. The
// zero value is empty. It keeps two numbers for each cluster.
type Clusters struct {
	sizes []float64
	means []float64
	n     float64 // observations
	mean  float64 // over all observations
	other bool    // something was neither 0 nor 1
}

// Add adds the observations of one cluster. A cluster without observations does not count.
func (c *Clusters) Add(xs ...float64) {
	if len(xs) == 0 {
		return
	}
	t := tallied(xs)
	_, other := countOnes(xs)
	size := float64(t.n)
	c.sizes = append(c.sizes, size)
	c.means = append(c.means, t.mean)
	c.n += size
	c.mean += (t.mean - c.mean) * (size / c.n)
	c.other = c.other || other
}

// Grow makes room for n clusters.
func (c *Clusters) Grow(n int) {
	c.sizes, c.means = slices.Grow(c.sizes, n), slices.Grow(c.means, n)
}

// N returns the number of clusters.
func (c *Clusters) N() int { return len(c.sizes) }

// Mean returns the mean over all observations, with an interval that is valid for few
// clusters too: the variance between clusters is corrected for bias (CR2) and the
// degrees of freedom are those of Bell and McCaffrey. For clusters of equal size it is
// Student's interval of their means. If all clusters have the same mean, the interval is unknown: they do
// not show how much others would vary. N is the number of clusters.
func (c *Clusters) Mean(confidence float64) Quantity {
	method := "cluster t"
	if float64(len(c.sizes)) == c.n {
		method = "t"
	}
	if len(c.sizes) == 0 || !isFinite(c.mean) {
		return Unknown(len(c.sizes), method)
	}
	q := Quantity{Value: c.mean, Interval: unbounded(), N: len(c.sizes), Method: method}
	if variance, df := c.spread(); df > 0 && variance > 0 && isFinite(variance) {
		q.Interval = student(c.mean, math.Sqrt(variance), df, confidence)
	}
	return q
}

// Between returns the mean of observations that lie between low and high. The interval is Wilson's, scaled to these
// bounds, for the number of independent zeros and ones that would vary as much. It never leaves the
// bounds. If all clusters have the same mean, each counts as one.
func (c *Clusters) Between(low, high, confidence float64) Quantity {
	method := "cluster wilson"
	if float64(len(c.sizes)) == c.n {
		method = "scaled wilson"
	}
	wide := high - low
	if len(c.sizes) == 0 || !isFinite(c.mean) || !(wide > 0) || !isFinite(wide) {
		return Unknown(len(c.sizes), method)
	}
	p := (c.mean - low) / wide
	if !(p >= 0 && p <= 1) {
		return Unknown(len(c.sizes), method)
	}
	q := Quantity{Value: c.mean, Interval: Interval{Low: low, High: high}, N: len(c.sizes), Method: method}
	if n := c.effectiveSize(p, wide, confidence); n > 0 {
		i := wilsonShare(p, n, confidence)
		q.Interval = Interval{Low: low + i.Low*wide, High: low + i.High*wide}
	}
	return q
}

// effectiveSize returns how many independent zeros and ones with share p would estimate their mean as precisely as
// these observations do, on a scale of width wide. The ratio of quantiles accounts for the uncertainty of the
// variance itself.
func (c *Clusters) effectiveSize(p, wide, confidence float64) float64 {
	variance, df := c.spread()
	if p == 0 || p == 1 || variance == 0 {
		return float64(len(c.sizes)) // how much the observations of a cluster vary is unknown
	}
	z, t := normalQuantile(confidence), tQuantile(df, confidence)
	if math.IsInf(t, 1) {
		return 0
	}
	size := p * (1 - p) / (variance / wide / wide) * (z / t) * (z / t)
	if !c.other {
		return min(c.n, size) // zeros and ones: never more than there are
	}
	return size
}

// spread returns the variance of the mean and its degrees of freedom, or zeros with fewer
// than two clusters. In a model that is only a mean, CR2 divides the square of a
// cluster's residual sum by 1 minus the cluster's share of the observations.
func (c *Clusters) spread() (variance, df float64) {
	if len(c.sizes) < 2 {
		return 0, 0
	}
	var squares, lever, lever2 float64 // sums over clusters: share², share²/(1-share), and the square of that
	for i, size := range c.sizes {
		share := size / c.n
		rest := 1 - share
		sum := share * (c.means[i] - c.mean)
		variance += sum * sum / rest
		squares += share * share
		l := share * share / rest
		lever += l
		lever2 += l * l
	}
	return unlessRounding(variance, c.means...), 1 / (squares + lever*lever - lever2)
}

// unlessRounding returns the variance of xs, or 0 if it is only a rounding error.
func unlessRounding(variance float64, xs ...float64) float64 {
	largest := 0.0
	for _, x := range xs {
		largest = max(largest, math.Abs(x))
	}
	if math.Sqrt(variance) <= 1e-12*largest {
		return 0
	}
	return variance
}

// OtherShare returns the largest share that can have another value, with a confidence, if n independent observations all have the same.
func OtherShare(n int, confidence float64) float64 { return 1 - math.Pow(1-confidence, 1/float64(n)) }

// Stratum is a part of a population, sampled separately.
type Stratum struct {
	Size   float64   // the number of units in the stratum
	Values []float64 // of the sampled units: two or more
}

// Strata is a stratified random sample of a population of known size.
type Strata struct {
	Sampled []Stratum
	// Size is the number of units in the population, including strata that were not sampled.
	Size float64
	// All is the number of strata in the population. If it is more than len(Sampled), these are a random
	// sample of them.
	All int
}

// Total predicts the sum over all units of the population, if each is a new unit of its stratum and not
// a sampled one. The estimate is the sum over strata of size times mean. If only some strata
// were sampled, it is scaled to the size of the population, and its variance has two stages: between
// strata, and within them. See Cochran, Sampling Techniques (1977), chapters 5 and 11.
func (s Strata) Total(confidence float64) Quantity {
	mean, parts := s.spread(true)
	q := Quantity{Value: mean * s.Size, Interval: unbounded(), N: len(s.Sampled), Method: "strata"}
	if s.Size == 0 {
		q.Interval = Interval{}
	} else if variance, df := welch1947(parts); df > 0 {
		q.Interval = student(q.Value, math.Sqrt(variance), df, confidence)
	}
	return q
}

// Mean returns the mean over all units, with its interval. Its SD is that of single units.
func (s Strata) Mean(confidence float64) Estimate {
	mean, parts := s.spread(false)
	e := Estimate{Mean: mean, Interval: unbounded(), Method: "strata"}
	size, squares := 0.0, 0.0
	for _, h := range s.Sampled {
		t := tallied(h.Values)
		e.N += t.n
		size += h.Size
		squares += h.Size * (t.variance() + (t.mean-mean)*(t.mean-mean))
	}
	if size > 0 {
		e.SD = math.Sqrt(squares / size)
	}
	if variance, df := welch1947(parts); df > 0 && s.Size > 0 {
		e.Interval = student(mean, math.Sqrt(variance)/s.Size, df, confidence)
	}
	return e
}

// component is a part of a variance, with its degrees of freedom.
type component struct{ variance, df float64 }

// spread returns the mean over units, and the components of the variance of the total.
func (s Strata) spread(predict bool) (mean float64, parts []component) {
	size, sum := 0.0, 0.0
	for _, h := range s.Sampled {
		size += h.Size
		t := tallied(h.Values)
		sum += h.Size * t.mean
	}
	if !(size > 0) {
		return 0, nil
	}
	mean = sum / size
	scale, between := s.Size/size, 0.0
	for _, h := range s.Sampled {
		if h.Size == 0 {
			continue
		}
		t := tallied(h.Values)
		n := float64(t.n)
		factor := h.Size * h.Size / n
		if predict {
			factor += h.Size
		}
		parts = append(parts, component{scale * factor * t.variance(), n - 1})
		between += math.Pow(h.Size*(t.mean-mean), 2)
	}
	if m, all := float64(len(s.Sampled)), float64(s.All); m < all {
		parts = append(parts, component{scale * scale * m * (1 - m/all) * between / (m - 1), m - 1})
	}
	return mean, parts
}

// welch1947 adds up components. The degrees of freedom of the sum are Welch's second
// approximation (Biometrika 34, 1947). Unlike the first, it does not mistake the noise in
// components of few degrees of freedom for a difference between them. A df of 0 means that the variance is unknown.
func welch1947(parts []component) (variance, df float64) {
	squares := 0.0
	for _, p := range parts {
		if !(p.df > 0) {
			return 0, 0
		}
		variance += p.variance
		squares += p.variance * p.variance / (p.df + 2)
	}
	switch {
	case len(parts) == 0:
		return 0, 0
	case squares == 0: // nothing varies
		return 0, 1
	}
	return variance, variance*variance/squares - 2
}
