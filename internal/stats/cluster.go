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
// Student's interval of their means. N is the number of episodes.
func (c *Clusters) Mean(confidence float64) Quantity {
	const method = "cluster t"
	if len(c.sizes) == 0 || !isFinite(c.mean) {
		return Unknown(len(c.sizes), method)
	}
	q := Quantity{c.mean, everything(), len(c.sizes), method}
	if variance, df := c.spread(); df > 0 && isFinite(variance) {
		q.Interval = student(c.mean, math.Sqrt(variance), df, confidence)
	}
	return q
}

// Estimate returns the mean with the interval that fits: where every observation was 0
// or 1 it is Wilson's for as many independent observations as these are worth.
func (c *Clusters) Estimate(confidence float64) Quantity {
	if c.other || len(c.sizes) == 0 {
		return c.Mean(confidence)
	}
	q := Quantity{min(max(c.mean, 0), 1), Interval{0, 1}, len(c.sizes), "cluster wilson"}
	if worth := c.worth(q.Value, confidence); worth > 0 {
		q.Interval = wilson(q.Value, worth, confidence)
	}
	return q
}

// worth is how many independent observations with share p would be as sure as these.
// The correction by quantiles is for how little is known of the variance itself.
func (c *Clusters) worth(p, confidence float64) float64 {
	if p == 0 || p == 1 {
		return float64(len(c.sizes)) // nothing tells how alike an episode's are: take them for one
	}
	variance, df := c.spread()
	if df == 0 {
		return 0
	}
	z, t := normalQuantile(confidence), tQuantile(df, confidence)
	if math.IsInf(t, 1) {
		return 0
	}
	// Never more than there are, which is also what no variance at all comes to.
	return min(c.n, p*(1-p)/variance*(z/t)*(z/t))
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
	return variance, 1 / (squares + lever*lever - lever2)
}
