package effect

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"parley/internal/stats"
)

// golden reads one part of testdata/golden.json, which testdata/golden.py makes with
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

func same(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(1, math.Abs(want))) {
		t.Errorf("%s: %.12g, want %.12g", what, got, want)
	}
}

func sameAll(t *testing.T, what string, q stats.Quantity, value, low, high float64) {
	t.Helper()
	same(t, what, q.Value, value, 1e-9)
	same(t, what+" low", q.Low, low, 1e-6)
	same(t, what+" high", q.High, high, 1e-6)
}

func TestGoldenDifferences(t *testing.T) {
	t.Parallel()
	type cases []struct {
		A, B            []float64
		D, G, Low, High float64
		GLow            float64 `json:"g_low"`
		GHigh           float64 `json:"g_high"`
	}
	for _, c := range golden[cases](t, "standardized") {
		sameAll(t, "cohen", Cohen(c.A, c.B, 0.95), c.D, c.Low, c.High)
		sameAll(t, "hedges", Hedges(c.A, c.B, 0.95), c.G, c.GLow, c.GHigh)
		sameAll(t, "cohen, other side", Cohen(c.B, c.A, 0.95), -c.D, -c.High, -c.Low)
	}
	for _, c := range golden[cases](t, "paired") {
		sameAll(t, "paired", Paired(c.A, 0.95), c.D, c.Low, c.High)
	}
	for _, c := range golden[cases](t, "cliff") {
		sameAll(t, "cliff", Cliff(c.A, c.B, 0.95), c.D, c.Low, c.High)
		sameAll(t, "cliff, other side", Cliff(c.B, c.A, 0.95), -c.D, -c.High, -c.Low)
	}
}

func TestGoldenShares(t *testing.T) {
	t.Parallel()
	type cases []struct {
		K1, N1, K2, N2     int
		Odds, Low, High, H float64
	}
	for _, c := range golden[cases](t, "shares") {
		sameAll(t, "odds ratio", OddsRatio(c.K1, c.N1, c.K2, c.N2, 0.95), c.Odds, c.Low, c.High)
		same(t, "h", CohenH(c.K1, c.N1, c.K2, c.N2, 0.95).Value, c.H, 1e-12)
	}
}

func TestGoldenCorrelations(t *testing.T) {
	t.Parallel()
	type cases []struct {
		X, Y              []float64
		R, Low, High, Rho float64
	}
	for _, c := range golden[cases](t, "correlations") {
		sameAll(t, "pearson", Pearson(c.X, c.Y, 0.95), c.R, c.Low, c.High)
		same(t, "spearman", Spearman(c.X, c.Y, 0.95).Value, c.Rho, 1e-12)
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
		same(t, "means", MeansPower(c.D, c.N, c.Alpha), c.Power, 1e-7)
	}
	for _, c := range all["paired"] {
		same(t, "paired", PairedPower(c.D, c.N, c.Alpha), c.Power, 1e-7)
	}
	for _, c := range all["shares"] {
		same(t, "shares", SharesPower(c.P1, c.P2, c.N, c.Alpha), c.Power, 1e-7)
	}
}
