package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/internal/kit/statmath"
	"parley/internal/run/results"
)

// pairsOf returns n pairs whose differences are normal, with exactly this mean and a standard deviation of 1.
func pairsOf(n int, mean float64) pairing {
	r := rand.New(rand.NewPCG(11, 11))
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = r.NormFloat64()
	}
	e := statmath.Mean(xs, confidence)
	for i := range xs {
		xs[i] = mean + (xs[i]-e.Mean)/e.SD
	}
	return pairing{paired: true, a: xs, b: make([]float64, n)}
}

func sharesOf(k1, k2, n int, paired bool) pairing {
	p := pairing{paired: paired, a: make([]float64, n), b: make([]float64, n)}
	for i := range n {
		p.a[i], p.b[n-1-i] = float64(min(1, max(0, k1-i))), float64(min(1, max(0, k2-i)))
	}
	return p
}

// TestLeast checks the number of units below which an exact test cannot show anything, because it has a smallest P:
// 2/2^n for signs of n pairs and for McNemar's test, 2/C(2n, n) for Fisher's of n against n.
func TestLeast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		p      pairing
		shares bool
		level  float64
		want   int
	}{
		{"signs", pairsOf(4, 1), false, 0.05, 6},
		{"signs, Holm over 24", pairsOf(4, 1), false, 0.05 / 24, 10},
		{"mcnemar, Holm over 24", sharesOf(4, 0, 4, true), true, 0.05 / 24, 10},
		{"fisher", sharesOf(3, 0, 3, false), true, 0.05, 4},
		{"fisher, Holm over 24", sharesOf(3, 0, 3, false), true, 0.05 / 24, 7},
		{"welch", pairing{a: []float64{1, 2}, b: []float64{3, 4}}, false, 0.05 / 24, 2},
	} {
		if got := newDesign(c.p, c.shares, c.level).least(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestNeededIsAnalytic checks that the simulation agrees with the formulas of the t test and of
// shares; signs and exact tests need a little more.
func TestNeededIsAnalytic(t *testing.T) {
	t.Parallel()
	paired := func(d, level float64) int { n, _ := statmath.PairedNeeded(d, level, power); return n }
	shares := func(p, q, level float64) int { n, _ := statmath.SharesNeeded(p, q, level, power); return n }
	two := pairing{a: pairsOf(60, 0.7).a, b: pairsOf(60, 0).a}
	means, _ := statmath.MeansNeeded(0.7, 0.05, power)
	for _, c := range []struct {
		name   string
		p      pairing
		shares bool
		level  float64
		want   int
	}{
		{"pairs", pairsOf(60, 0.5), false, 0.05, paired(0.5, 0.05)},
		{"pairs, Holm over 24", pairsOf(60, 0.5), false, 0.05 / 24, paired(0.5, 0.05/24)},
		{"a small difference", pairsOf(60, 0.25), false, 0.05, paired(0.25, 0.05)},
		{"two groups", two, false, 0.05, means},
		{"shares", sharesOf(35, 20, 50, false), true, 0.05, shares(0.7, 0.4, 0.05)},
	} {
		n, ok := newDesign(c.p, c.shares, c.level).needed(2, 0, 6000)
		if !ok || math.Abs(float64(n-c.want)) > 2+0.2*float64(c.want) {
			t.Errorf("%s: %d, %v; want about %d", c.name, n, ok, c.want)
		}
		if again, _ := newDesign(c.p, c.shares, c.level).needed(2, 0, 6000); again != n {
			t.Errorf("%s: %d, then %d", c.name, n, again)
		}
	}
	if n, ok := newDesign(pairsOf(20, 0.02), false, 0.05).needed(2, 0, 500); ok {
		t.Errorf("%d is enough, want none", n)
	}
}

// TestNeededIsEnough checks that the number of deals needed finds the difference in about four of five runs, with
// ten comparisons and the correction for them.
func TestNeededIsEnough(t *testing.T) {
	t.Parallel()
	draws(t)
	r := rand.New(rand.NewPCG(5, 5))
	names := strings.Split("abcde", "")
	noisy := func(n int) (out []episode) { // only a is better than the others, by 0.8
		for d := range n {
			for _, name := range names {
				gain := 0.0
				if name == "a" {
					gain = 0.8
				}
				out = append(out, episode{name, d, name, "z", gain + r.NormFloat64()/math.Sqrt2, 0})
			}
		}
		return out
	}
	const level = 0.05 / 10 // ten pairs of five
	n, ok := newDesign(pairsOf(60, 0.8), false, level).needed(2, 0, 1000)
	if !ok {
		t.Fatal(n)
	}
	found, all := 0, 0
	for range 40 {
		res, err := Runs([]*results.Run{run(t, 1, noisy(n))}, []string{"x"}, Config{By: byCell, Scores: []string{"points"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range res.Comparisons {
			if c.Of == "left" && c.A == "a" {
				all++
				if c.Test.P < level {
					found++
				}
			}
		}
	}
	// They share the luck of a, so 160 count as about 40.
	if share := float64(found) / float64(all); share < 0.6 || share > 0.96 {
		t.Errorf("%d deals find %.2f, want 0.8", n, share)
	}
}

// TestNotOneMoreDeal checks 24 comparisons of eight deals whose differences all have one sign. One more deal is not
// enough: Holm requires P below 0.05/24, which takes ten.
func TestNotOneMoreDeal(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	var all []episode
	for d := range 8 {
		for cell := range 25 {
			value := 1 + r.Float64()
			if cell == 0 {
				value = 0
			}
			all = append(all, episode{fmt.Sprint("c", cell), d, "a", "z", value, math.NaN()})
		}
	}
	res, err := Runs([]*results.Run{run(t, 1, all)}, []string{"x"}, Config{By: byCell, Against: "c0"})
	if err != nil || len(res.Comparisons) != 24 {
		t.Fatal(len(res.Comparisons), err)
	}
	for _, c := range res.Comparisons {
		if c.Differs() || c.Least != 10 || c.More < 2 || c.More > 4 {
			t.Fatalf("least %d, more %d: %+v", c.Least, c.More, c)
		}
	}
	if text := fmt.Sprint(res.Document("").Sections[0].Blocks); !strings.Contains(text, "no difference can be shown with fewer than 10 deals") || strings.Contains(text, "about 1 more deal") {
		t.Error(text)
	}
}
