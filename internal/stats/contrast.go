package stats

import (
	"math"
	"slices"
)

// Design folds observations of the cells of an experiment, such as those of two prompts with
// two models. Observations of one cluster are not independent of each other, also where they
// are of different cells: deals that every cell was given. The zero value is empty.
type Design struct {
	cells    []designCell
	clusters map[int]int // id to index
}

// designCell is what was seen in one cell.
type designCell struct {
	n, sum float64
	at     map[int]int // index of a cluster to a place in parts
	parts  []designPart
}

// designPart is what one cluster gave in one cell.
type designPart struct {
	cluster int // index
	n, sum  float64
}

// Add takes in an observation of a cell, from 0 on.
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

// Empty says whether a cell has no observations.
func (d *Design) Empty(cell int) bool { return cell >= len(d.cells) || d.cells[cell].n == 0 }

// Contrast returns the sum of the means of cells, each times its weight, and tests whether it
// is 0. It is the estimate of a linear model with a mean for each cell. The variance is
// cluster-robust and corrected for bias (CR2), and the degrees of freedom are Satterthwaite's
// as in Bell and McCaffrey (2002); see Pustejovsky and Tipton (2018). Where every cluster has
// as many observations in every cell, it is Student's interval and test of the contrasts of
// clusters. N is the number of clusters. Nothing is known where a cell with a weight is empty,
// and nothing of the spread where it has one cluster only, or where nothing varies.
func (d *Design) Contrast(weights []float64, confidence float64) (Quantity, Test) {
	const method = "cluster t"
	var used []int
	value, seen := 0.0, map[int]bool{}
	single := false
	for cell, w := range weights {
		if w == 0 {
			continue
		}
		if d.Empty(cell) {
			return Unknown(0, method), Test{math.NaN(), 0, method}
		}
		c := &d.cells[cell]
		value += w * (c.sum / c.n)
		single = single || len(c.parts) < 2
		used = append(used, cell)
		for _, p := range c.parts {
			seen[p.cluster] = true
		}
	}
	if !isFinite(value) || len(used) == 0 {
		return Unknown(len(seen), method), Test{math.NaN(), len(seen), method}
	}
	q, test := Quantity{value, everything(), len(seen), method}, Test{math.NaN(), len(seen), method}
	if single {
		return q, test
	}
	variance, df := d.spread(used, weights)
	if !(variance > 0) || !isFinite(variance) || !(df > 0) {
		return q, test
	}
	se := math.Sqrt(variance)
	q.Interval = student(value, se, df, confidence)
	test.P = tTails(value/se, df)
	return q, test
}

// spread returns the variance of a contrast and its degrees of freedom. With a mean for each
// cell, the residuals of a cluster are adjusted cell by cell: divided by the root of 1 less the
// share of the cell that the cluster is. The degrees of freedom are those of the variance as a
// quadratic form, were observations independent and of one variance.
func (d *Design) spread(used []int, weights []float64) (variance, df float64) {
	sums := map[int]float64{} // of adjusted residuals, by cluster
	own := map[int]float64{}  // of squares of their weights, an observation each
	var self float64          // the part of own that the cell means take away
	lever := make([]map[int]float64, len(used))
	for i, cell := range used {
		c := &d.cells[cell]
		mean := c.sum / c.n
		lever[i] = make(map[int]float64, len(c.parts))
		for _, p := range c.parts {
			share := p.n / c.n
			l := weights[cell] * share / math.Sqrt(1-share)
			sums[p.cluster] += l * (p.sum/p.n - mean)
			own[p.cluster] += l * l / p.n
			lever[i][p.cluster] = l / math.Sqrt(c.n)
		}
	}
	// P'P of Bell and McCaffrey is own on its diagonal, less the products of levers.
	var trace, squares float64
	for _, g := range sortedKeys(sums) {
		variance += sums[g] * sums[g]
		taken := 0.0
		for i := range lever {
			taken += lever[i][g] * lever[i][g]
		}
		trace += own[g] - taken
		squares += own[g]*own[g] - 2*own[g]*taken
	}
	for i := range lever {
		for j := range lever {
			cross := 0.0
			for _, p := range d.cells[used[i]].parts {
				cross += lever[i][p.cluster] * lever[j][p.cluster]
			}
			self += cross * cross
		}
	}
	return variance, trace * trace / (squares + self)
}

// sortedKeys lists clusters in the order they came, so that sums have the same digits.
func sortedKeys(m map[int]float64) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
