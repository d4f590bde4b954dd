package statmath

import (
	"math"
	"math/rand/v2"
	"testing"
)

// often returns how often a trial succeeds.
func often(trials int, seed uint64, trial func(r *rand.Rand) bool) float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	yes := 0
	for range trials {
		if trial(r) {
			yes++
		}
	}
	return float64(yes) / float64(trials)
}

func drawn(n int, one func() float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = one()
	}
	return xs
}

func successes(r *rand.Rand, n int, p float64) int {
	k := 0
	for range n {
		if r.Float64() < p {
			k++
		}
	}
	return k
}

// normals returns n normal observations with a mean and a standard deviation.
func normals(r *rand.Rand, n int, mean, sd float64) []float64 {
	return drawn(n, func() float64 { return mean + sd*r.NormFloat64() })
}

// episodes returns clusters whose members depend on each other. Their true mean is 0.
func episodes(r *rand.Rand, n, maxSize int) (c Clusters, all []float64) {
	for range n {
		xs := normals(r, 1+r.IntN(maxSize), 0.7*r.NormFloat64(), 1)
		c.Add(xs...)
		all = append(all, xs...)
	}
	return c, all
}

// wins returns clusters of five games each, with a mean share of 0.2 that differs between episodes.
func wins(r *rand.Rand, n int) (c Clusters) {
	for range n {
		p := 0.05
		if r.Float64() < 0.5 {
			p = 0.35
		}
		c.Add(drawn(5, func() float64 { return float64(successes(r, 1, p)) })...)
	}
	return c
}

func pairs(r *rand.Rand, n int, p float64, alike float64) (t Pairs) {
	for range n {
		a := r.Float64() < p
		b := r.Float64() < p
		if r.Float64() < alike {
			b = a
		}
		switch {
		case a && b:
			t.Both++
		case a:
			t.OnlyA++
		case b:
			t.OnlyB++
		default:
			t.Neither++
		}
	}
	return t
}

// TestCoverage draws samples with a known truth: 95% intervals must hold it in 93
// to 97% of them, at sizes where theory says they should.
func TestCoverage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		trials int
		holds  func(r *rand.Rand) bool
	}{
		{"share", 3000, func(r *rand.Rand) bool {
			p := 0.05 + 0.9*r.Float64()
			return Share(successes(r, 60, p), 60, 0.95).Holds(p)
		}},
		{"difference of shares", 3000, func(r *rand.Rand) bool {
			p, q := 0.05+0.9*r.Float64(), 0.05+0.9*r.Float64()
			return ShareDifference(successes(r, 40, p), 40, successes(r, 70, q), 70, 0.95).Holds(p - q)
		}},
		{"difference of shares in pairs", 3000, func(r *rand.Rand) bool {
			return PairedShareDifference(pairs(r, 80, 0.4, 0.3), 0.95).Holds(0)
		}},
		{"mean of eight", 3000, func(r *rand.Rand) bool {
			return Mean(normals(r, 8, 3, 2), 0.95).Interval.Holds(3)
		}},
		{"difference of means", 3000, func(r *rand.Rand) bool {
			return MeanDifference(normals(r, 10, 1, 3), normals(r, 25, 0, 1), 0.95).Holds(1)
		}},
		{"difference in pairs", 3000, func(r *rand.Rand) bool {
			b := normals(r, 12, 0, 5)
			a := drawn(12, func() float64 { return r.NormFloat64() })
			for i := range a {
				a[i] += b[i] + 1
			}
			return PairedDifference(a, b, 0.95).Holds(1)
		}},
		{"cohen's d", 1200, func(r *rand.Rand) bool {
			d, _ := standardized(normals(r, 12, 1.6, 2), normals(r, 15, 0, 2), 0.95)
			return d.Holds(0.8)
		}},
		{"hedges' g", 1200, func(r *rand.Rand) bool {
			return Hedges(normals(r, 30, 1.6, 2), normals(r, 40, 0, 2), 0.95).Holds(0.8)
		}},
		{"paired effect", 1200, func(r *rand.Rand) bool { return PairedEffect(normals(r, 12, 1, 2), 0.95).Holds(0.5) }},
		{"cohen's h", 1200, func(r *rand.Rand) bool {
			return CohenH(successes(r, 60, 0.6), 60, successes(r, 80, 0.3), 80, 0.95).Holds(arcsine(0.6) - arcsine(0.3))
		}},
		{"mean of ten episodes", 3000, func(r *rand.Rand) bool {
			c, _ := episodes(r, 10, 8)
			return c.Mean(0.95).Holds(0)
		}},
		{"share of thirty episodes", 3000, func(r *rand.Rand) bool {
			c := wins(r, 30)
			return c.Between(0, 1, 0.95).Holds(0.2)
		}},
		{"bounded and skewed, sixteen", 3000, func(r *rand.Rand) bool {
			var c Clusters
			for range 16 {
				c.Add(34 * math.Pow(r.Float64(), 4))
			}
			return c.Between(0, 34, 0.95).Holds(34.0 / 5)
		}},
		{"bounded, eight", 3000, func(r *rand.Rand) bool {
			var c Clusters
			for range 8 {
				c.Add(3 + 2*r.Float64())
			}
			return c.Between(0, 5, 0.95).Holds(4)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if held := often(c.trials, 7, c.holds); held < 0.93 || held > 0.97 {
				t.Errorf("95%% intervals hold the truth in %.1f%%", 100*held)
			} else {
				t.Logf("%.1f%%", 100*held)
			}
		})
	}
}

// TestEpisodesAreNotObservations shows why Clusters exists: without it, intervals are
// far too narrow.
func TestEpisodesAreNotObservations(t *testing.T) {
	t.Parallel()
	held := often(2000, 7, func(r *rand.Rand) bool {
		_, all := episodes(r, 10, 8)
		return Mean(all, 0.95).Interval.Holds(0)
	})
	if held > 0.9 {
		t.Errorf("members of episodes treated as independent: %.1f%%", 100*held)
	}
}

// TestFalseAlarms draws samples with no difference: tests at 5% must find one in about
// 5% of them. Exact tests of counts cannot reach every level and may find fewer.
func TestFalseAlarms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		low, high float64
		p         func(r *rand.Rand, shift float64) Test
	}{
		{"sign flips", 0.04, 0.06, func(r *rand.Rand, shift float64) Test {
			return Permutation{}.SignFlip(normals(r, 10, shift, 1))
		}},
		{"sign flips, drawn", 0.04, 0.06, func(r *rand.Rand, shift float64) Test {
			return Permutation{r.Uint64(), 199}.SignFlip(normals(r, 25, shift, 1))
		}},
		{"one among others", 0.04, 0.06, func(r *rand.Rand, shift float64) Test {
			return Among(r.NormFloat64()+5*shift, normals(r, 39, 0, 1))
		}},
		{"welch", 0.04, 0.06, func(r *rand.Rand, shift float64) Test {
			return Welch(normals(r, 10, shift, 3), normals(r, 30, -2*shift, 1))
		}},
		{"mcnemar", 0.005, 0.055, func(r *rand.Rand, shift float64) Test {
			t := pairs(r, 60, 0.5, 0.2)
			t.OnlyA += int(40 * shift)
			return McNemar(t)
		}},
		{"fisher", 0.005, 0.055, func(r *rand.Rand, shift float64) Test {
			return Fisher(successes(r, 40, 0.4+0.4*shift), 40, successes(r, 50, 0.4), 50)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const trials = 2000
			alarms := often(trials, 11, func(r *rand.Rand) bool { return c.p(r, 0).P <= 0.05 })
			if alarms < c.low || alarms > c.high {
				t.Errorf("false alarms at 5%%: %.1f%%", 100*alarms)
			}
			if found := often(trials/10, 11, func(r *rand.Rand) bool { return c.p(r, 1).P <= 0.05 }); found < 0.7 {
				t.Errorf("a large difference is found in only %.1f%%", 100*found)
			}
		})
	}
}

// TestFalseClaims draws twenty tests at a time, of which ten have no true difference.
func TestFalseClaims(t *testing.T) {
	t.Parallel()
	const trials = 2000
	var anyFalse, share, plain float64
	r := rand.New(rand.NewPCG(3, 0))
	for range trials {
		ps := drawn(20, r.Float64)
		for i := range 10 {
			ps[i] = math.Pow(ps[i], 20) // these have a true difference
		}
		claims, wrong := 0.0, 0.0
		for i, p := range benjaminiHochberg(ps) {
			if p <= 0.05 {
				claims++
				wrong += float64(i / 10)
			}
		}
		share += wrong / max(1, claims)
		family, each := 0.0, 0.0
		for i, p := range Holm(ps)[10:] {
			if p <= 0.05 {
				family = 1
			}
			if ps[10+i] <= 0.05 {
				each = 1
			}
		}
		anyFalse += family
		plain += each
	}
	if anyFalse/trials > 0.06 || share/trials > 0.055 || share == 0 || anyFalse == 0 {
		t.Errorf("holm: a false claim in %.1f%%; benjamini-hochberg: %.1f%% of claims false", 100*anyFalse/trials, 100*share/trials)
	}
	if plain/trials < 0.3 {
		t.Errorf("without adjustment: a false claim in %.1f%% only", 100*plain/trials)
	}
}
