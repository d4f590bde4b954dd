package stats

import "math"

// Clusters folds observations that come several from an episode and so are not
// independent: what is asked is the mean over all observations, and how sure it is
// depends on how many episodes there are. The zero value is empty. It keeps two numbers
// an episode.
type Clusters struct {
	sizes []float64
	means []float64
	n     float64 // observations
	mean  float64 // over all observations
	other bool    // something was neither 0 nor 1
}

// Add takes in what one episode gave. An episode that gave nothing does not count.
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

// N returns how many episodes there were.
func (c *Clusters) N() int { return len(c.sizes) }

// Observations returns how many observations there were in all.
func (c *Clusters) Observations() int { return int(c.n) }

// Mean returns the mean over all observations, with an interval that holds up with few
// episodes too: the variance between clusters is corrected for bias (CR2) and the
// degrees of freedom are those of Bell and McCaffrey. With episodes of one size it is
// Student's interval of their means. Where all clusters have the same mean it is unknown: they do
// not tell how much others would vary. N is the number of episodes.
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

// Between returns the mean of observations from low to high. Its interval is Wilson's between
// these, for as many independent zeros and ones as would vary as much, so it never leaves the
// bounds. Where all observations are the same, each cluster counts for one.
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
	if n := c.worth(p, wide, confidence); n > 0 {
		i := WilsonShare(p, n, confidence)
		q.Interval = Interval{Low: low + i.Low*wide, High: low + i.High*wide}
	}
	return q
}

// worth is how many independent zeros and ones with share p would be as sure of their mean as
// these observations are of theirs, on a scale of width wide. The correction by quantiles is for
// how little is known of the variance itself.
func (c *Clusters) worth(p, wide, confidence float64) float64 {
	variance, df := c.spread()
	if p == 0 || p == 1 || variance == 0 {
		return float64(len(c.sizes)) // nothing tells how much the observations of a cluster vary
	}
	z, t := normalQuantile(confidence), tQuantile(df, confidence)
	if math.IsInf(t, 1) {
		return 0
	}
	worth := p * (1 - p) / (variance / wide / wide) * (z / t) * (z / t)
	if !c.other {
		return min(c.n, worth) // of zeros and ones, never more than there are
	}
	return worth
}

// spread returns the variance of the mean and its degrees of freedom; none with fewer
// than two clusters. In a model of nothing but a mean, CR2 divides the square of a
// cluster's residual sum by 1 less the cluster's share of the observations.
func (c *Clusters) spread() (variance, df float64) {
	if len(c.sizes) < 2 {
		return 0, 0
	}
	var squares, lever, lever2 float64 // shares of observations, plain and divided by 1 less themselves
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
	return unless(variance, c.means...), 1 / (squares + lever*lever - lever2)
}

// unless returns a variance, or 0 where it is nothing but rounding of what it is the variance of.
func unless(variance float64, of ...float64) float64 {
	most := 0.0
	for _, x := range of {
		most = max(most, math.Abs(x))
	}
	if math.Sqrt(variance) <= 1e-12*most {
		return 0
	}
	return variance
}
