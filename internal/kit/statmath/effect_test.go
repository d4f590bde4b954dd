package statmath

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// The first two are the examples of R's power.t.test and power.prop.test: 22.02110 and 76.7
// in each group, rounded up to 23 and 77; and a power of 0.8689528.
// The last two are from Cohen, Statistical Power Analysis for the Behavioral Sciences
// (1988), table 2.4.1: 64 in each group for d=0.5, and 26 for d=0.8, at power 0.80.
func TestNeededPublished(t *testing.T) {
	t.Parallel()
	if p := meansPower(1, 20, 0.05); math.Abs(p-0.8689528) > 1e-6 {
		t.Errorf("power %v, want 0.8689528", p)
	}
	for _, c := range []struct {
		name string
		want int
		f    func() (int, bool)
	}{
		{"power.t.test", 23, func() (int, bool) { return MeansNeeded(1, 0.05, 0.90) }},
		{"power.prop.test", 77, func() (int, bool) { return SharesNeeded(0.50, 0.75, 0.05, 0.90) }},
		{"medium", 64, func() (int, bool) { return MeansNeeded(0.5, 0.05, 0.80) }},
		{"large", 26, func() (int, bool) { return MeansNeeded(0.8, 0.05, 0.80) }},
	} {
		if n, ok := c.f(); n != c.want || !ok {
			t.Errorf("%s: %d, %v; want %d", c.name, n, ok, c.want)
		}
	}
}

// TestNeededIsEnough checks that the number needed reaches the power, and one less does not.
func TestNeededIsEnough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Float64Range(0.02, 3).Draw(t, "d")
		power := rapid.Float64Range(0.5, 0.99).Draw(t, "power")
		p, q := rapid.Float64Range(0, 1).Draw(t, "p"), rapid.Float64Range(0, 1).Draw(t, "q")
		for _, c := range []struct {
			name  string
			n     func() (int, bool)
			power func(n int) float64
			least int
		}{
			{"means", func() (int, bool) { return MeansNeeded(d, 0.05, power) }, func(n int) float64 { return meansPower(d, n, 0.05) }, 2},
			{"paired", func() (int, bool) { return PairedNeeded(d, 0.05, power) }, func(n int) float64 { return pairedPower(d, n, 0.05) }, 2},
			{"shares", func() (int, bool) { return SharesNeeded(p, q, 0.05, power) }, func(n int) float64 { return sharesPower(p, q, n, 0.05) }, 1},
		} {
			n, ok := c.n()
			if !ok {
				if c.name == "shares" && math.Abs(p-q) < 1e-3 {
					continue
				}
				t.Fatalf("%s: no number is enough", c.name)
			}
			if c.power(n) < power-1e-9 {
				t.Fatalf("%s: %d have a power of %v, want %v", c.name, n, c.power(n), power)
			}
			if n > c.least && c.power(n-1) >= power+1e-9 {
				t.Fatalf("%s: %d have a power of %v already, want %v", c.name, n-1, c.power(n-1), power)
			}
		}
	})
}

// TestPowerIsReal checks that tests detect the difference as often as the power says.
func TestPowerIsReal(t *testing.T) {
	t.Parallel()
	const trials = 1500
	n, _ := MeansNeeded(0.7, 0.05, 0.8)
	pairs, _ := PairedNeeded(0.7, 0.05, 0.8)
	r := rand.New(rand.NewPCG(9, 0))
	found, foundPairs, foundShares := 0.0, 0.0, 0.0
	for range trials {
		if Welch(normals(r, n, 0.7, 1), normals(r, n, 0, 1)).P <= 0.05 {
			found++
		}
		if !Mean(normals(r, pairs, 0.7, 1), 0.95).Interval.Holds(0) {
			foundPairs++
		}
		if !ShareDifference(successes(r, 90, 0.5), 90, successes(r, 90, 0.3), 90, 0.95).Holds(0) {
			foundShares++
		}
	}
	for _, c := range []struct {
		name        string
		found, want float64
	}{
		{"means", found, meansPower(0.7, n, 0.05)},
		{"paired", foundPairs, pairedPower(0.7, pairs, 0.05)},
		{"shares", foundShares, sharesPower(0.5, 0.3, 90, 0.05)},
	} {
		if math.Abs(c.found/trials-c.want) > 0.03 {
			t.Errorf("%s: found in %.3f, want %.3f", c.name, c.found/trials, c.want)
		}
	}
}

func TestNeverEnough(t *testing.T) {
	t.Parallel()
	for i, f := range []func() (int, bool){
		func() (int, bool) { return MeansNeeded(0, 0.05, 0.8) },
		func() (int, bool) { return MeansNeeded(1e-9, 0.05, 0.8) },
		func() (int, bool) { return MeansNeeded(math.NaN(), 0.05, 0.8) },
		func() (int, bool) { return PairedNeeded(0.5, 0, 0.8) },
		func() (int, bool) { return PairedNeeded(0.5, 0.05, 1) },
		func() (int, bool) { return SharesNeeded(0.3, 0.3, 0.05, 0.8) },
		func() (int, bool) { return SharesNeeded(0.3, 1.3, 0.05, 0.8) },
	} {
		if n, ok := f(); ok {
			t.Errorf("%d: %d is enough, want none", i, n)
		}
	}
}
