package statmath

import "math"

// Design collects observations from the cells of an experiment, for example two prompts with
// two models. Observations of one cluster, such as a deal that every cell played, depend on each
// other, also across cells. It keeps a number for each pair of cells. The zero value is empty.
type Design struct {
	cells    []designCell
	clusters map[int]int // id to index
	crossed  []float64   // see products; nil: not computed yet
}

// designCell has the observations of one cell.
type designCell struct {
	n, sum float64
	at     map[int]int // index of a cluster to an index in parts
	parts  []designPart
}

// designPart has the observations of one cluster in one cell.
type designPart struct {
	cluster int // index
	n, sum  float64
}

// Add adds an observation of a cell. Cells are numbered from 0.
func (d *Design) Add(cell, cluster int, x float64) {
	for len(d.cells) <= cell {
		d.cells = append(d.cells, designCell{at: map[int]int{}})
	}
	if d.clusters == nil {
		d.clusters = map[int]int{}
	}
	index, ok := d.clusters[cluster]
	if !ok {
		index = len(d.clusters)
		d.clusters[cluster] = index
	}
	d.crossed = nil
	c := &d.cells[cell]
	i, ok := c.at[index]
	if !ok {
		i = len(c.parts)
		c.at[index] = i
		c.parts = append(c.parts, designPart{cluster: index})
	}
	c.parts[i].n++
	c.parts[i].sum += x
	c.n++
	c.sum += x
}

// Empty reports whether a cell has no observations.
func (d *Design) Empty(cell int) bool { return cell >= len(d.cells) || d.cells[cell].n == 0 }

// Contrast returns the weighted sum of the means of cells, and tests whether it
// is 0. It is the estimate of a linear model with a mean for each cell. The variance is
// cluster-robust and corrected for bias (CR2), and the degrees of freedom are Satterthwaite's
// as in Bell and McCaffrey (2002); see Pustejovsky and Tipton (2018). If every cluster has
// equally many observations in every cell, it is Student's interval and test of the contrasts of
// clusters. N is the number of clusters. The value is unknown if a cell with a weight is empty.
// The interval is unknown if such a cell has a single cluster, or if nothing varies.
func (d *Design) Contrast(weights []float64, confidence float64) (Quantity, Test) {
	return d.estimate(weights).judge(confidence)
}

// ContrastTwoWay is Contrast for observations that depend on each other in two ways. a and b have
// the same observations, each in its own kind of clusters; both has them in the intersections of these
// clusters. The variance is that of a plus that of b less that of both
// (Cameron, Gelbach and Miller 2011), or the larger of the first two if the result is not above
// 0. The degrees of freedom and N are the smaller ones.
func ContrastTwoWay(a, b, both *Design, weights []float64, confidence float64) (Quantity, Test) {
	x, y, z := a.estimate(weights), b.estimate(weights), both.estimate(weights)
	e := x
	if e.variance = x.variance + (y.variance - z.variance); !(e.variance > 0) {
		e.variance = max(x.variance, y.variance)
	}
	if y.clusters < z.clusters { // a cluster of b spans several clusters of a
		e.df, e.clusters = min(x.df, y.df), min(x.clusters, y.clusters)
	}
	e.single = x.single || y.single
	return e.judge(confidence)
}

// contrasted is a contrast with its variance.
type contrasted struct {
	value, variance, df float64
	clusters            int
	single              bool // a cell has a single cluster
}

// judge returns the interval and the test of a contrast.
func (e contrasted) judge(confidence float64) (Quantity, Test) {
	const method = "cluster t"
	q, test := Quantity{Value: e.value, Interval: unbounded(), N: e.clusters, Method: method}, Test{P: math.NaN(), N: e.clusters, Method: method}
	if !q.Known() || e.single || !(e.variance > 0) || !isFinite(e.variance) || !(e.df > 0) {
		return q, test
	}
	se := math.Sqrt(e.variance)
	q.Interval = student(e.value, se, e.df, confidence)
	test.P = tTails(e.value/se, e.df)
	return q, test
}

// estimate computes a contrast. Its value is NaN if a cell is empty.
func (d *Design) estimate(weights []float64) contrasted {
	var used []int
	e, seen := contrasted{}, map[int]bool{}
	for cell, w := range weights {
		if w == 0 {
			continue
		}
		if d.Empty(cell) {
			return contrasted{value: math.NaN()}
		}
		c := &d.cells[cell]
		e.value += w * (c.sum / c.n)
		e.single = e.single || len(c.parts) < 2
		used = append(used, cell)
		for _, p := range c.parts {
			seen[p.cluster] = true
		}
	}
	e.clusters = len(seen)
	if !isFinite(e.value) || len(used) == 0 {
		e.value = math.NaN()
		return e
	}
	if !e.single {
		e.variance, e.df = d.spread(used, weights)
	}
	return e
}

// spread returns the variance of a contrast and its degrees of freedom. The residuals of a cluster
// are adjusted in each cell: divided by the root of 1 minus the cluster's share of the cell. The
// degrees of freedom are those of the variance as a quadratic form, for independent observations
// of equal variance.
func (d *Design) spread(used []int, weights []float64) (variance, df float64) {
	n := len(d.clusters)
	sums := make([]float64, n) // of adjusted residuals, by cluster
	means := make([]float64, 0, n)
	own := make([]float64, n)   // sums of squared weights of the observations, by cluster
	taken := make([]float64, n) // the part of own that the cell means account for
	for _, cell := range used {
		c := &d.cells[cell]
		mean := c.sum / c.n
		for _, p := range c.parts {
			l := weights[cell] * c.lever(p)
			sums[p.cluster] += l * (p.sum/p.n - mean)
			means = append(means, l*p.sum/p.n)
			own[p.cluster] += l * l / p.n
			taken[p.cluster] += l * l / c.n
		}
	}
	// P'P of Bell and McCaffrey is own on its diagonal, less the products of levers.
	var trace, squares float64
	for g := range n {
		variance += sums[g] * sums[g]
		trace += own[g] - taken[g]
		squares += own[g]*own[g] - 2*own[g]*taken[g]
	}
	products := d.products()
	for _, i := range used {
		for _, j := range used {
			cross := weights[i] * weights[j] * products[i*len(d.cells)+j]
			squares += cross * cross
		}
	}
	return unlessRounding(variance, means...), trace * trace / squares
}

// lever returns the weight of a cluster's adjusted residuals in the mean of a cell.
func (c *designCell) lever(p designPart) float64 {
	share := p.n / c.n
	return share / math.Sqrt(1-share)
}

// products returns, for each pair of cells, the sum over clusters of the products of their levers, each
// divided by the root of the cell's size. It is the same for every contrast.
func (d *Design) products() []float64 {
	if d.crossed != nil {
		return d.crossed
	}
	type cellLever struct {
		cell  int
		lever float64
	}
	byCluster := make([][]cellLever, len(d.clusters))
	for cell := range d.cells {
		c := &d.cells[cell]
		for _, p := range c.parts {
			if len(c.parts) > 1 {
				byCluster[p.cluster] = append(byCluster[p.cluster], cellLever{cell, c.lever(p) / math.Sqrt(c.n)})
			}
		}
	}
	d.crossed = make([]float64, len(d.cells)*len(d.cells))
	for _, levers := range byCluster {
		for _, a := range levers {
			for _, b := range levers {
				d.crossed[a.cell*len(d.cells)+b.cell] += a.lever * b.lever
			}
		}
	}
	return d.crossed
}
