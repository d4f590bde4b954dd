package statmath

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestContrastByHand has four deals in every cell of a 2×2 design. The contrasts of the deals are
// 1, 3, 2 and 6 for the main effect (sums of two differences, halved: 0.5, 1.5, 1, 3), whose mean
// is 1.5 and whose standard deviation is 1.0801; Student's quantile for 3 degrees is 3.1824.
func TestContrastByHand(t *testing.T) {
	t.Parallel()
	cells := [4][4]float64{{5, 7, 6, 9}, {4, 6, 5, 8}, {4, 5, 5, 5}, {4, 5, 4, 6}}
	d := &Design{}
	for c, row := range cells {
		for deal, x := range row {
			d.Add(c, 100+deal, x)
		}
	}
	q, test := d.Contrast([]float64{0.5, 0.5, -0.5, -0.5}, 0.95)
	half := 3.182446305 * 1.080123450 / 2
	same(t, "value", q.Value, 1.5, 1e-12)
	same(t, "low", q.Low, 1.5-half, 1e-8)
	same(t, "high", q.High, 1.5+half, 1e-8)
	same(t, "p", test.P, tTails(1.5/(1.080123450/2), 3), 1e-8)
	if q.N != 4 || test.N != 4 {
		t.Errorf("%+v %+v", q, test)
	}
	// The interaction: 1, 1, 1, 1 less 0, 0, 1, -1.
	q, _ = d.Contrast([]float64{1, -1, -1, 1}, 0.95)
	same(t, "interaction", q.Value, 1, 1e-12)
	same(t, "half", q.Half(), 3.182446305*math.Sqrt(2.0/3)/2, 1e-8)
}

// TestContrastIsTheMeanOfClusters checks that a single cell has the interval of Clusters.
func TestContrastIsTheMeanOfClusters(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 1))
	for range 50 {
		c, d := Clusters{}, &Design{}
		for id := range 3 + r.IntN(9) {
			xs := normals(r, 1+r.IntN(6), r.NormFloat64(), 1)
			c.Add(xs...)
			for _, x := range xs {
				d.Add(0, id, x)
			}
		}
		want := c.Mean(0.95)
		got, _ := d.Contrast([]float64{1}, 0.95)
		same(t, "low", got.Low, want.Low, 1e-9)
		same(t, "high", got.High, want.High, 1e-9)
	}
}

// TestContrastIsCR2 compares the closed form with the definition, computed with matrices, for an
// unbalanced design whose clusters are in one cell, in some or in all.
func TestContrastIsCR2(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		type row struct {
			cell, cluster int
			y             float64
		}
		var rows []row
		d := &Design{}
		for g := range 6 {
			for c := range 3 {
				for range r.IntN(4) + map[bool]int{true: 1}[g < 2] {
					rows = append(rows, row{c, g, r.NormFloat64() + float64(g)})
					d.Add(c, g, rows[len(rows)-1].y)
				}
			}
		}
		weights := []float64{1, -0.5, -0.5}
		n, mean := make([]float64, 3), make([]float64, 3)
		for _, o := range rows {
			n[o.cell]++
			mean[o.cell] += o.y
		}
		hat := func(i, j int) float64 {
			if rows[i].cell != rows[j].cell {
				return 0
			}
			return 1 / n[rows[i].cell]
		}
		// a is A X (X'X)^-1 L. The inverse root of I-H, applied to a vector that is constant within each
		// cell of a cluster, is the limit of its series.
		var variance float64
		p := make([][]float64, 6)
		for g := range 6 {
			a := make([]float64, len(rows))
			for i, o := range rows {
				if o.cluster == g {
					a[i] = weights[o.cell] / n[o.cell]
				}
			}
			term, factor := append([]float64{}, a...), 1.0
			for k := 1; k < 4000; k++ { // (1-x)^(-1/2)
				next := make([]float64, len(rows))
				for i := range rows {
					for j := range rows {
						if rows[i].cluster == g && rows[j].cluster == g {
							next[i] += hat(i, j) * term[j]
						}
					}
				}
				term = next
				factor *= (float64(k) - 0.5) / float64(k)
				for i := range a {
					a[i] += factor * term[i]
				}
			}
			sum := 0.0
			p[g] = append([]float64{}, a...)
			for i, o := range rows {
				sum += a[i] * (o.y - mean[o.cell]/n[o.cell])
				for j := range rows {
					p[g][i] -= hat(i, j) * a[j]
				}
			}
			variance += sum * sum
		}
		var trace, squares float64
		for g := range p {
			for h := range p {
				dot := 0.0
				for i := range rows {
					dot += p[g][i] * p[h][i]
				}
				squares += dot * dot
				if g == h {
					trace += dot
				}
			}
		}
		gotVariance, df := d.spread([]int{0, 1, 2}, weights)
		same(t, "variance", gotVariance, variance, 1e-6)
		same(t, "degrees of freedom", df, trace*trace/squares, 1e-6)
	}
}

// TestContrastCoverage simulates experiments with known effects: 95% intervals must
// hold them in 93 to 97% of the experiments.
func TestContrastCoverage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		levels, clusters int
		missing          float64 // share of missing observations
	}{
		{"2×2, balanced", 2, 8, 0},
		{"2×3, balanced", 3, 12, 0},
		{"2×2, unbalanced", 2, 25, 0.3},
		{"2×3, unbalanced", 3, 25, 0.3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			main, cross := make([]float64, 2*c.levels), make([]float64, 2*c.levels)
			for b := range c.levels {
				main[b], main[c.levels+b] = 1/float64(c.levels), -1/float64(c.levels)
			}
			cross[0], cross[1], cross[c.levels], cross[c.levels+1] = 1, -1, -1, 1
			for what, weights := range map[string][]float64{"main effect": main, "interaction": cross} {
				truth := 0.0
				held := often(2500, 11, func(r *rand.Rand) bool {
					d := &Design{}
					truth = 0
					for cell, w := range weights {
						truth += w * float64(cell*cell)
					}
					for deal := range c.clusters {
						luck := 2 * r.NormFloat64()
						slope := 0.5 * r.NormFloat64() // deals differ in the effect too
						for cell := range weights {
							if r.Float64() < c.missing {
								continue
							}
							for range 1 + r.IntN(1+int(3*c.missing)) {
								d.Add(cell, deal, float64(cell*cell)+luck+slope*float64(cell%2)+r.NormFloat64())
							}
						}
					}
					q, _ := d.Contrast(weights, 0.95)
					return q.Holds(truth)
				})
				if held < 0.93 || held > 0.97 {
					t.Errorf("%s: %.3f", what, held)
				}
			}
		})
	}
}

// TestContrastWithoutEnough checks that too little data gives an unknown result.
func TestContrastWithoutEnough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		add   func(d *Design)
		known bool
	}{
		{"nothing", func(*Design) {}, false},
		{"an empty cell", func(d *Design) { d.Add(0, 1, 1); d.Add(0, 2, 2) }, false},
		{"one cluster", func(d *Design) { d.Add(0, 1, 1); d.Add(1, 1, 2); d.Add(1, 1, 3) }, true},
		{"one cluster in a cell", func(d *Design) { d.Add(0, 1, 1); d.Add(0, 2, 3); d.Add(1, 1, 2) }, true},
		{"no spread", func(d *Design) { d.Add(0, 1, 1); d.Add(0, 2, 1); d.Add(1, 1, 0); d.Add(1, 2, 0) }, true},
		{"not finite", func(d *Design) { d.Add(0, 1, math.Inf(1)); d.Add(0, 2, 1); d.Add(1, 1, 0); d.Add(1, 2, 0) }, false},
		{"too large", func(d *Design) { d.Add(0, 1, 1e308); d.Add(0, 2, 1e308); d.Add(1, 1, -1e308); d.Add(1, 2, 0) }, false},
	} {
		d := &Design{}
		c.add(d)
		q, test := d.Contrast([]float64{1, -1}, 0.95)
		if q.Known() != c.known || test.Known() || !math.IsInf(q.Half(), 1) {
			t.Errorf("%s: %+v %+v", c.name, q, test)
		}
	}
}

// TestContrastTwoWay checks that clusters nested in those of the other kind change nothing, and that
// copies across deals count once.
func TestContrastTwoWay(t *testing.T) {
	t.Parallel()
	type row struct {
		cell, deal, play int
		x                float64
	}
	fold := func(rows []row) (a, b, both *Design) {
		a, b, both = &Design{}, &Design{}, &Design{}
		for _, o := range rows {
			a.Add(o.cell, o.deal, o.x)
			b.Add(o.cell, o.play, o.x)
			both.Add(o.cell, 1000*o.deal+o.play, o.x)
		}
		return a, b, both
	}
	r := rand.New(rand.NewPCG(5, 5))
	var unique, once, copied []row
	for deal := range 12 {
		luck := 3 * r.NormFloat64()
		for cell := range 2 {
			o := row{cell, deal, len(unique), luck + float64(cell) + r.NormFloat64()}
			unique = append(unique, o)
			once = append(once, row{cell, deal, deal, o.x})
			for again := range 3 { // the same play under three deals
				copied = append(copied, row{cell, 100*again + deal, deal, o.x})
			}
		}
	}
	weights := []float64{-1, 1}
	a, b, both := fold(unique)
	want, _ := a.Contrast(weights, 0.95)
	if got, _ := ContrastTwoWay(a, b, both, weights, 0.95); got != want {
		t.Errorf("separate plays: %v, want %v", got, want)
	}
	a, b, both = fold(copied)
	got, test := ContrastTwoWay(a, b, both, weights, 0.95)
	same(t, "low", got.Low, want.Low, 1e-9)
	same(t, "high", got.High, want.High, 1e-9)
	if got.N != 12 || test.N != 12 {
		t.Errorf("copies: %v", got)
	}
	a, b, both = fold(once)
	if got, _ := ContrastTwoWay(a, b, both, weights, 0.95); got != want {
		t.Errorf("one play a deal: %v, want %v", got, want)
	}
}
