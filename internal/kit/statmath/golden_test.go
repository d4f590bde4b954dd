package statmath

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// golden reads one part of testdata/golden.json, which testdata/golden.py computes with
// SciPy and statsmodels.
func golden[T any](t *testing.T, part string) T {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	var v T
	if err := json.Unmarshal(all[part], &v); err != nil {
		t.Fatalf("%s: %v", part, err)
	}
	return v
}

// same compares with a relative tolerance.
func same(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(1, math.Abs(want))) {
		t.Errorf("%s: %.12g, want %.12g", what, got, want)
	}
}

func TestGoldenShares(t *testing.T) {
	t.Parallel()
	type shares []struct {
		K, N, K1, N1, K2, N2     int
		Confidence, Low, High, P float64
		Both, Neither            int
		OnlyA                    int `json:"only_a"`
		OnlyB                    int `json:"only_b"`
	}
	for _, c := range golden[shares](t, "wilson") {
		q := Share(c.K, c.N, c.Confidence)
		same(t, "wilson low", q.Low, c.Low, 1e-12)
		same(t, "wilson high", q.High, c.High, 1e-12)
	}
	for _, c := range golden[shares](t, "newcombe") {
		q := ShareDifference(c.K1, c.N1, c.K2, c.N2, c.Confidence)
		same(t, "newcombe low", q.Low, c.Low, 1e-12)
		same(t, "newcombe high", q.High, c.High, 1e-12)
	}
	for _, c := range golden[shares](t, "newcombe_paired") {
		p := Pairs{c.Both, c.OnlyA, c.OnlyB, c.Neither}
		q := PairedShareDifference(p, 0.95)
		same(t, "newcombe paired low", q.Low, c.Low, 1e-12)
		same(t, "newcombe paired high", q.High, c.High, 1e-12)
		same(t, "mcnemar", McNemar(p).P, c.P, 1e-12)
	}
	for _, c := range golden[shares](t, "fisher") {
		same(t, "fisher", Fisher(c.K1, c.N1, c.K2, c.N2).P, c.P, 1e-9)
	}
}

func TestGoldenMeans(t *testing.T) {
	t.Parallel()
	type samples []struct {
		A, B, Differences  []float64
		Low, High, P, Flip float64
	}
	for _, c := range golden[samples](t, "two_samples") {
		q := MeanDifference(c.A, c.B, 0.95)
		same(t, "welch low", q.Low, c.Low, 1e-7)
		same(t, "welch high", q.High, c.High, 1e-7)
		same(t, "welch", Welch(c.A, c.B).P, c.P, 1e-7)
	}
	for _, c := range golden[samples](t, "paired") {
		q := PairedDifference(c.Differences, make([]float64, len(c.Differences)), 0.95)
		same(t, "paired low", q.Low, c.Low, 1e-9)
		same(t, "paired high", q.High, c.High, 1e-9)
		flipped := Permutation{}.SignFlip(c.Differences)
		same(t, flipped.Method, flipped.P, c.Flip, 1e-12)
	}
}

// TestAmong counts by hand.
func TestAmong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x      float64
		others []float64
		want   float64
	}{
		{9, []float64{1, 2, 3, 2, 1}, 1.0 / 6},
		{2, []float64{1, 2, 3, 2, 1}, 1},            // the mean is 11/6: none is nearer
		{0, []float64{1, 1, 2, 1, 1}, 2.0 / 6},      // 0 and 2 are equally far from 1
		{1, []float64{5}, 1},                        // both are equally far
		{1e9 + 2, []float64{1e9, 1e9 + 1}, 2.0 / 3}, // so is 1e9
	} {
		if p := Among(c.x, c.others); !near(p.P, c.want, 1e-12) || p.N != 1 {
			t.Errorf("%v among %v: %v, want %v", c.x, c.others, p, c.want)
		}
	}
}

func TestGoldenClusters(t *testing.T) {
	t.Parallel()
	type cases []struct {
		Groups               [][]float64
		Value, Low, High, DF float64
	}
	for _, c := range golden[cases](t, "cr2") {
		var all Clusters
		for _, g := range c.Groups {
			all.Add(g...)
		}
		q := all.Mean(0.95)
		same(t, "cluster mean", q.Value, c.Value, 1e-9)
		same(t, "cluster low", q.Low, c.Low, 1e-9)
		same(t, "cluster high", q.High, c.High, 1e-9)
		_, df := all.spread()
		same(t, "degrees of freedom", df, c.DF, 1e-9)
	}
}

func TestGoldenAdjusted(t *testing.T) {
	t.Parallel()
	type cases []struct{ Ps, Holm, BH []float64 }
	for _, c := range golden[cases](t, "adjusted") {
		holm, bh := Holm(c.Ps), benjaminiHochberg(c.Ps)
		for i := range c.Ps {
			same(t, "holm", holm[i], c.Holm[i], 1e-12)
			same(t, "benjamini-hochberg", bh[i], c.BH[i], 1e-12)
		}
	}
}

func TestGoldenDistributions(t *testing.T) {
	t.Parallel()
	type cases struct {
		T        []struct{ DF, Confidence, Q float64 }
		Tails    []struct{ DF, T, P float64 }
		Binomial []struct {
			K, N   int
			P, CDF float64
		}
	}
	all := golden[cases](t, "distributions")
	for _, c := range all.T {
		same(t, "t quantile", tQuantile(c.DF, c.Confidence), c.Q, 1e-8)
	}
	for _, c := range all.Tails {
		same(t, "t tails", tTails(c.T, c.DF), c.P, 1e-10)
	}
	for _, c := range all.Binomial {
		same(t, "binomial", binomialCDF(c.K, c.N, c.P), c.CDF, 1e-9)
	}
}

func sameAll(t *testing.T, what string, q Quantity, value, low, high float64) {
	t.Helper()
	same(t, what, q.Value, value, 1e-9)
	same(t, what+" low", q.Low, low, 1e-6)
	same(t, what+" high", q.High, high, 1e-6)
}

func TestGoldenEffects(t *testing.T) {
	t.Parallel()
	type cases []struct {
		A, B            []float64
		D, G, Low, High float64
		GLow            float64 `json:"g_low"`
		GHigh           float64 `json:"g_high"`
		K1, N1, K2, N2  int
		H               float64
	}
	for _, c := range golden[cases](t, "standardized") {
		d, _ := standardized(c.A, c.B, 0.95)
		back, _ := standardized(c.B, c.A, 0.95)
		sameAll(t, "cohen", d, c.D, c.Low, c.High)
		sameAll(t, "cohen, other side", back, -c.D, -c.High, -c.Low)
		sameAll(t, "hedges", Hedges(c.A, c.B, 0.95), c.G, c.GLow, c.GHigh)
	}
	for _, c := range golden[cases](t, "paired_effect") {
		sameAll(t, "paired", PairedEffect(c.A, 0.95), c.D, c.Low, c.High)
	}
	for _, c := range golden[cases](t, "cohen_h") {
		same(t, "h", CohenH(c.K1, c.N1, c.K2, c.N2, 0.95).Value, c.H, 1e-12)
	}
}

func TestGoldenPower(t *testing.T) {
	t.Parallel()
	type cases []struct {
		D, P1, P2, Alpha, Power float64
		N                       int
	}
	all := golden[map[string]cases](t, "power")
	for _, c := range all["means"] {
		same(t, "means", meansPower(c.D, c.N, c.Alpha), c.Power, 1e-7)
	}
	for _, c := range all["paired"] {
		same(t, "paired", pairedPower(c.D, c.N, c.Alpha), c.Power, 1e-7)
	}
	for _, c := range all["shares"] {
		same(t, "shares", sharesPower(c.P1, c.P2, c.N, c.Alpha), c.Power, 1e-7)
	}
}
