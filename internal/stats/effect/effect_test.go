package effect

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/stats"
)

func normals(r *rand.Rand, n int, mean, sd float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = mean + sd*r.NormFloat64()
	}
	return xs
}

func successes(r *rand.Rand, n int, p float64) (k int) {
	for range n {
		if r.Float64() < p {
			k++
		}
	}
	return k
}

// together are n pairs of values that are correlated by 0.6.
func together(r *rand.Rand, n int) (x, y []float64) {
	x, y = normals(r, n, 0, 1), normals(r, n, 0, 0.8)
	for i := range x {
		y[i] += 0.6 * x[i]
	}
	return x, y
}

// TestCoverage draws samples whose truth is known: intervals of 95% are to hold it in 93
// to 97% of them.
func TestCoverage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		truth float64
		of    func(r *rand.Rand) stats.Quantity
	}{
		{"cohen", 0.8, func(r *rand.Rand) stats.Quantity { return Cohen(normals(r, 12, 1.6, 2), normals(r, 15, 0, 2), 0.95) }},
		{"hedges", 0.8, func(r *rand.Rand) stats.Quantity {
			return Hedges(normals(r, 30, 1.6, 2), normals(r, 40, 0, 2), 0.95)
		}},
		{"paired", 0.5, func(r *rand.Rand) stats.Quantity { return Paired(normals(r, 12, 1, 2), 0.95) }},
		// Of two normal variables one standard deviation apart, one is above by erf(1/2).
		{"cliff", math.Erf(0.5), func(r *rand.Rand) stats.Quantity { return Cliff(normals(r, 30, 1, 1), normals(r, 40, 0, 1), 0.95) }},
		{"odds ratio", 0.6 / 0.4 * 0.7 / 0.3, func(r *rand.Rand) stats.Quantity {
			return OddsRatio(successes(r, 60, 0.6), 60, successes(r, 80, 0.3), 80, 0.95)
		}},
		{"cohen's h", arcsine(0.6) - arcsine(0.3), func(r *rand.Rand) stats.Quantity {
			return CohenH(successes(r, 60, 0.6), 60, successes(r, 80, 0.3), 80, 0.95)
		}},
		{"pearson", 0.6, func(r *rand.Rand) stats.Quantity { x, y := together(r, 20); return Pearson(x, y, 0.95) }},
		// Of two normal variables, the order is correlated by 6/π asin(r/2).
		{"spearman", 6 / math.Pi * math.Asin(0.3), func(r *rand.Rand) stats.Quantity { x, y := together(r, 50); return Spearman(x, y, 0.95) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const trials = 1200
			r := rand.New(rand.NewPCG(5, 0))
			held := 0.0
			for range trials {
				if c.of(r).Holds(c.truth) {
					held++
				}
			}
			if held /= trials; held < 0.93 || held > 0.97 {
				t.Errorf("95%% intervals hold the truth in %.1f%%", 100*held)
			}
		})
	}
}

// Effects of a known kind come out as such.
func TestCliffWithoutOverlap(t *testing.T) {
	t.Parallel()
	q := Cliff([]float64{4, 5, 6, 7, 8}, []float64{1, 2, 3, 3, 3, 3}, 0.95)
	if q.Value != 1 || q.High != 1 || q.Low > 0.5 || q.Low < -0.5 {
		t.Errorf("all above: %v", q)
	}
	if back := Cliff([]float64{1, 2}, []float64{3, 4}, 0.95); back.Value != -1 || back.Low != -1 {
		t.Errorf("all below: %v", back)
	}
	if q := Cliff([]float64{1, 2, 3}, []float64{1, 2, 3}, 0.95); q.Value != 0 || !q.Holds(0) {
		t.Errorf("the same: %v", q)
	}
}

func TestOddsRatioWithZeros(t *testing.T) {
	t.Parallel()
	q := OddsRatio(0, 10, 5, 10, 0.95)
	if want := (0.5 / 10.5) / (5.5 / 5.5); math.Abs(q.Value-want) > 1e-12 || q.Method != "woolf, halves added" || !(q.Low < want && want < q.High) {
		t.Errorf("%v, want %v", q, want)
	}
	for _, q := range []stats.Quantity{OddsRatio(0, 10, 0, 5, 0.95), OddsRatio(10, 10, 5, 5, 0.95), OddsRatio(1, 0, 1, 2, 0.95), OddsRatio(3, 2, 1, 2, 0.95)} {
		if q.Known() {
			t.Errorf("nothing to tell apart: %v", q)
		}
	}
}

// TestAnything holds for whatever comes in: no panic, no NaN for an end, ends in order,
// JSON that can be written.
func TestAnything(t *testing.T) {
	t.Parallel()
	value := rapid.OneOf(
		rapid.Float64(),
		rapid.SampledFrom([]float64{0, 1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324}),
		rapid.Float64Range(-3, 3),
	)
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(value, 0, 8).Draw(t, "xs")
		ys := rapid.SliceOfN(value, 0, 8).Draw(t, "ys")
		c := rapid.OneOf(rapid.Just(0.95), value).Draw(t, "confidence")
		k, n := len(xs)-1, len(ys)-1
		for i, q := range []stats.Quantity{
			Cohen(xs, ys, c), Hedges(xs, ys, c), Paired(xs, c), Cliff(xs, ys, c), Pearson(xs, ys, c), Spearman(xs, ys, c),
			CohenH(k, n, n, k, c), OddsRatio(k, n, n, k, c),
		} {
			if math.IsNaN(q.Low) || math.IsNaN(q.High) || q.Low > q.High || math.IsInf(q.Value, 0) {
				t.Fatalf("answer %d: %v (%v to %v)", i, q, q.Low, q.High)
			}
			if _, err := json.Marshal(q); err != nil {
				t.Fatalf("answer %d: %v: %v", i, q, err)
			}
		}
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		for i, p := range []float64{MeansPower(a, n, c), PairedPower(a, n, c), SharesPower(a, b, n, c)} {
			if !math.IsNaN(p) && !(p >= 0 && p <= 1) {
				t.Fatalf("power %d: %v", i, p)
			}
		}
		for i, f := range []func(_, _, _ float64) (int, bool){MeansNeeded, PairedNeeded, MeanNeeded, ShareNeeded} {
			if n, ok := f(a, b, c); ok != (n > 0) {
				t.Fatalf("needed %d: %d, %v", i, n, ok)
			}
		}
	})
}

func TestNothingIsMadeUp(t *testing.T) {
	t.Parallel()
	for i, q := range []stats.Quantity{
		Cohen(nil, nil, 0.95), Cohen([]float64{1}, []float64{2}, 0.95), Cohen([]float64{1, 1}, []float64{2, 2}, 0.95),
		Hedges([]float64{1, 2}, []float64{math.NaN(), 2}, 0.95), Hedges([]float64{1, 2}, []float64{4}, 0.95),
		Paired(nil, 0.95), Paired([]float64{1}, 0.95), Paired([]float64{2, 2, 2}, 0.95),
		Cliff(nil, []float64{1}, 0.95), Cliff([]float64{math.NaN()}, []float64{1}, 0.95),
		Pearson([]float64{1, 2}, []float64{1}, 0.95), Pearson([]float64{1, 1, 1}, []float64{1, 2, 3}, 0.95),
		Spearman([]float64{1, math.NaN(), 3}, []float64{1, 2, 3}, 0.95),
	} {
		if q.Known() {
			t.Errorf("%d: %v", i, q)
		}
	}
}
