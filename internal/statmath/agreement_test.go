package statmath

import (
	"math"
	"testing"
)

// TestKappa compares with statsmodels, and checks the ends of the scale.
func TestKappa(t *testing.T) {
	t.Parallel()
	for _, c := range golden[[]struct {
		Both, Neither    int
		OnlyA            int `json:"only_a"`
		OnlyB            int `json:"only_b"`
		Kappa, Low, High float64
	}](t, "kappa") {
		q := Kappa(Pairs{c.Both, c.OnlyA, c.OnlyB, c.Neither}, 0.95)
		same(t, "kappa", q.Value, c.Kappa, 1e-12)
		same(t, "kappa low", q.Low, max(-1, c.Low), 1e-12)
		same(t, "kappa high", q.High, min(1, c.High), 1e-12)
	}
	for name, c := range map[string]struct {
		of   Pairs
		want float64
	}{
		"nothing":            {Pairs{}, math.NaN()},
		"negative":           {Pairs{Both: -1, Neither: 2}, math.NaN()},
		"one rating":         {Pairs{Both: 9}, math.NaN()},
		"always agree":       {Pairs{Both: 5, Neither: 5}, 1},
		"never agree":        {Pairs{OnlyA: 5, OnlyB: 5}, -1},
		"one always says so": {Pairs{Both: 5, OnlyA: 5}, 0},
	} {
		q := Kappa(c.of, 0.95)
		if math.IsNaN(q.Value) != math.IsNaN(c.want) || !math.IsNaN(c.want) && q.Value != c.want {
			t.Errorf("%s: %v, want %v", name, q.Value, c.want)
		}
		if !(q.Low >= -1 && q.High <= 1 && q.Low < q.High) || q.Known() && !(q.Low <= q.Value && q.Value <= q.High) {
			t.Errorf("%s: %+v", name, q)
		}
	}
}

// TestAlpha compares with NLTK, and checks the ends of the scale.
func TestAlpha(t *testing.T) {
	t.Parallel()
	rated := func(units [][]float64) (all []Rated) {
		for i, u := range units {
			all = append(all, Rated{Cluster: i, Values: u})
		}
		return all
	}
	for _, c := range golden[[]struct {
		Units            [][]float64
		Nominal, Ordinal float64
	}](t, "alpha") {
		for scale, want := range map[Scale]float64{Nominal: c.Nominal, Ordinal: c.Ordinal} {
			q := Alpha(rated(c.Units), scale, 0.95)
			same(t, "alpha", q.Value, want, 1e-12)
			if !(q.Low < q.Value && q.Value < q.High && q.Low >= -1 && q.High <= 1) {
				t.Errorf("interval %+v", q)
			}
		}
	}
	for name, c := range map[string]struct {
		units [][]float64
		want  float64
	}{
		"nothing":       {nil, math.NaN()},
		"one rater":     {[][]float64{{1}, {2}}, math.NaN()},
		"one rating":    {[][]float64{{1, 1}, {1, 1}}, math.NaN()},
		"not a number":  {[][]float64{{1, math.NaN()}, {1, 2}}, math.NaN()},
		"always agree":  {[][]float64{{1, 1}, {2, 2}, {3, 3, 3}}, 1},
		"single things": {[][]float64{{1, 1}, {7}, {2, 2}}, 1},
	} {
		if q := Alpha(rated(c.units), Ordinal, 0.95); q.Value != c.want && !(math.IsNaN(q.Value) && math.IsNaN(c.want)) {
			t.Errorf("%s: %+v, want %v", name, q, c.want)
		}
	}
	one := Alpha([]Rated{{1, []float64{1, 2}}, {1, []float64{2, 2}}, {1, []float64{1, 1}}}, Nominal, 0.95)
	if !one.Known() || one.Low != -1 || one.High != 1 {
		t.Errorf("one cluster shows no interval: %+v", one)
	}
}

// TestSpearman compares with SciPy.
func TestSpearman(t *testing.T) {
	t.Parallel()
	for _, c := range golden[[]struct {
		X, Y []float64
		Rho  float64
	}](t, "spearman") {
		q := Spearman(c.X, c.Y, 0.95)
		same(t, "rho", q.Value, c.Rho, 1e-12)
		if !(q.Low < q.Value && q.Value < q.High) {
			t.Errorf("interval %+v", q)
		}
	}
	same(t, "same order", Spearman([]float64{1, 2, 3, 9}, []float64{2, 4, 5, 6}, 0.95).Value, 1, 1e-12)
	for name, c := range map[string][2][]float64{
		"constant": {{1, 1, 1, 1}, {1, 2, 3, 4}}, "few": {{1, 2}, {1, 2}}, "lengths": {{1, 2, 3, 4}, {1, 2, 3}},
		"not a number": {{1, 2, 3, math.NaN()}, {1, 2, 3, 4}},
	} {
		if q := Spearman(c[0], c[1], 0.95); q.Known() {
			t.Errorf("%s: %+v", name, q)
		}
	}
}
