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
