package statmath

import (
	"math"
	"slices"
)

// Clusters estimates the mean of observations of which several come from one episode, so
// that they are not independent. Its confidence depends on the number of episodes. The
// zero value is empty. It keeps two numbers for each episode.
type Clusters struct {
	sizes []float64
	means []float64
	n     float64 // observations
	mean  float64 // over all observations
	other bool    // something was neither 0 nor 1
}

// Add adds the observations of one episode. An episode without observations does not count.
func (c *Clusters) Add(xs ...float64) {
	if len(xs) == 0 {
		return
	}
	t := tallied(xs)
	size := float64(t.n)
	c.sizes = append(c.sizes, size)
	c.means = append(c.means, t.mean)
	c.n += size
	c.mean += (t.mean - c.mean) * (size / c.n)
	c.other = c.other || t.other
}

// Grow makes room for n episodes.
func (c *Clusters) Grow(n int) {
	c.sizes, c.means = slices.Grow(c.sizes, n), slices.Grow(c.means, n)
}

// N returns the number of episodes.
func (c *Clusters) N() int { return len(c.sizes) }

// Mean returns the mean over all observations, with an interval that is valid for few
// episodes too: the variance between clusters is corrected for bias (CR2) and the
// degrees of freedom are those of Bell and McCaffrey. For episodes of equal size it is
// Student's interval of their means. If all clusters have the same mean, the interval is unknown: they do
// not show how much others would vary. N is the number of episodes.
func (c *Clusters) Mean(confidence float64) Quantity {
	method := "cluster t"
	if float64(len(c.sizes)) == c.n {
		method = "t"
	}
	if len(c.sizes) == 0 || !isFinite(c.mean) {
		return Unknown(len(c.sizes), method)
	}
	q := Quantity{Value: c.mean, Interval: everything(), N: len(c.sizes), Method: method}
	if variance, df := c.spread(); df > 0 && variance > 0 && isFinite(variance) {
		q.Interval = student(c.mean, math.Sqrt(variance), df, confidence)
	}
	return q
}

// Between returns the mean of observations that lie between low and high. The interval is Wilson's, scaled to these
// bounds, for the number of independent zeros and ones that would vary as much. It never leaves the
// bounds. If all observations are equal, each cluster counts as one.
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
