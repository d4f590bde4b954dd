package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/internal/kit/statmath"
	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
)

// factorialEpisode is an agent with a prompt and a family, its deal and its points.
type factorialEpisode struct {
	prompt, family string
	deal           int
	points         float64
	play           byte // episodes with the same number, other than 0, are copies
}

func runFactorial(t *testing.T, episodes []factorialEpisode) *results.Run {
	t.Helper()
	begun := &journal.Begun{Version: 1, Run: "r", Kind: "k", Seed: 1}
	names := map[string]bool{}
	var specs []world.Spec
	var ends []journal.Entry
	for i, e := range episodes {
		name := e.prompt + "-" + e.family
		if !names[name] {
			names[name] = true
			begun.Agents = append(begun.Agents, world.Agent{Name: name, Model: "lab/" + e.family, Tags: map[string]string{"prompt": e.prompt, "family": e.family}})
		}
		specs = append(specs, world.Spec{Kind: "k", Params: json.RawMessage(`{}`), Lineup: map[string]string{"x": name}, Deal: e.deal})
		ends = append(ends, &journal.Ended{Episode: i, Play: journal.Digest{e.play}, Outcome: world.Outcome{Scores: []world.Score{{Seat: "x", Name: "points", Value: e.points}}}})
	}
	j := &journal.Memory{}
	if err := j.Append(t.Context(), append([]journal.Entry{begun, &journal.Opened{}, &journal.Staged{Specs: world.List(specs...)}}, ends...)...); err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func analyze(t *testing.T, r *results.Run, by ...string) *FactorialResult {
	t.Helper()
	f, err := results.FactorsOf([]*results.Run{r}, []string{"x"}, by)
	if err != nil {
		t.Fatal(err)
	}
	return AnalyzeFactors([]*results.Run{r}, f, nil, "holm")
}

// find returns the effect of a factor between levels.
func find(t *testing.T, r *FactorialResult, factor, levels string) Effect {
	t.Helper()
	for _, e := range r.Effects {
		if e.Factor == factor && e.Levels == levels {
			return e
		}
	}
	t.Fatalf("no effect of %s, %s in %+v", factor, levels, r.Effects)
	return Effect{}
}

// TestByHand computes 2×2 cells with two deals by hand. Terse less long is 2, 4 with gpt and 1, 1 with llama, so
// 1.5 and 2.5 by deal: the main effect is 2, its standard error 0.5. The interaction is 1 and 3.
func TestByHand(t *testing.T) {
	t.Parallel()
	points := map[string][2]float64{"terse gpt": {5, 8}, "long gpt": {3, 4}, "terse llama": {2, 2}, "long llama": {1, 1}}
	var all []factorialEpisode
	for cell, xs := range points {
		prompt, family, _ := strings.Cut(cell, " ")
		for deal, x := range xs {
			all = append(all, factorialEpisode{prompt, family, deal, x, 0})
		}
	}
	r := analyze(t, runFactorial(t, all), "prompt", "family")
	const quantile = 12.7062047362 // Student's with 1 degree of freedom
	for _, c := range []struct {
		factor, levels string
		value, se      float64
	}{
		{"prompt", "long − terse", -2, 0.5},
		{"family", "gpt − llama", 3.5, 1},
		{"prompt × family", "(long − terse) with gpt − with llama", -2, 1},
	} {
		e := find(t, r, c.factor, c.levels)
		if q := e.Difference; math.Abs(q.Value-c.value) > 1e-9 || math.Abs(q.Half()-quantile*c.se) > 1e-6 || q.N != 2 {
			t.Errorf("%s: %+v, want %v ± %v", c.factor, q, c.value, quantile*c.se)
		}
	}
	if len(r.Effects) != 3 {
		t.Errorf("%+v", r.Effects)
	}
}

// TestUnbalanced checks that cells have the same weight however many episodes they have. A mean over episodes would
// attribute the effect of the family to the prompt.
func TestUnbalanced(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var all []factorialEpisode
	for deal := range 30 {
		luck := r.NormFloat64()
		for _, c := range []struct {
			prompt, family string
			n              int
			mean           float64
		}{{"terse", "gpt", 4, 10}, {"long", "gpt", 1, 10}, {"terse", "llama", 1, 0}, {"long", "llama", 4, 0}} {
			for range c.n {
				all = append(all, factorialEpisode{c.prompt, c.family, deal, c.mean + luck + 0.5*r.NormFloat64(), 0})
			}
		}
	}
	res := analyze(t, runFactorial(t, all), "prompt", "family")
	if e := find(t, res, "prompt", "long − terse"); !e.Difference.Holds(0) || e.Difference.Half() > 0.5 || e.Adjusted < 0.05 || e.Difference.N != 30 {
		t.Errorf("%+v", e)
	}
	if e := find(t, res, "family", "gpt − llama"); !e.Difference.Holds(10) || e.Adjusted > 0.001 {
		t.Errorf("%+v", e)
	}
	if e := find(t, analyze(t, runFactorial(t, all), "prompt"), "prompt", "long − terse"); e.Difference.High > -4 {
		t.Errorf("by the prompt alone, want the effect of the family: %+v", e)
	}
}

// TestEmptyCells checks that an effect that needs an empty cell names it, and that the others are estimated.
func TestEmptyCells(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 3))
	var all []factorialEpisode
	for deal := range 6 {
		for _, c := range [][2]string{{"terse", "gpt"}, {"long", "gpt"}, {"terse", "llama"}, {"long", "llama"}, {"terse", "qwen"}} {
			all = append(all, factorialEpisode{c[0], c[1], deal, r.NormFloat64(), 0})
		}
	}
	res := analyze(t, runFactorial(t, all), "prompt", "family")
	if e := find(t, res, "prompt", "long − terse"); e.Difference.Known() || strings.Join(e.Missing, ";") != "prompt=long, family=qwen" {
		t.Errorf("%+v", e)
	}
	if e := find(t, res, "family", "gpt − llama"); !e.Difference.Known() || len(e.Missing) > 0 || math.IsNaN(e.Adjusted) {
		t.Errorf("%+v", e)
	}
	if e := find(t, res, "prompt × family", "(long − terse) with gpt − with llama"); !e.Test.Known() {
		t.Errorf("%+v", e)
	}
	if e := find(t, res, "prompt × family", "(long − terse) with gpt − with qwen"); e.Test.Known() || len(e.Missing) != 1 {
		t.Errorf("%+v", e)
	}
}

// TestFactorialCopies checks that word-for-word copies under other deals add no evidence.
func TestFactorialCopies(t *testing.T) {
	t.Parallel()
	var once, often []factorialEpisode
	r := rand.New(rand.NewPCG(1, 4))
	for deal := range 5 {
		for i, prompt := range []string{"terse", "long"} {
			e := factorialEpisode{prompt, "gpt", deal, r.NormFloat64() + float64(i), byte(1 + 2*deal + i)}
			once = append(once, e)
			for again := range 10 {
				e.deal = 100*again + deal
				often = append(often, e)
			}
		}
	}
	a := find(t, analyze(t, runFactorial(t, once), "prompt"), "prompt", "long − terse").Difference
	b := find(t, analyze(t, runFactorial(t, often), "prompt"), "prompt", "long − terse").Difference
	if b.N != 5 || math.Abs(a.Value-b.Value) > 1e-9 || math.Abs(a.Half()-b.Half()) > 1e-9 {
		t.Errorf("%v once, %v copied", a, b)
	}
}

// TestFactorialCoverage simulates 2×3 designs with common deals, from episodes to effects: 95% intervals
// hold the truth in 93 to 97% of them, and without an effect, P after Holm's correction is below 0.05 in
// at most 5%.
func TestFactorialCoverage(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 9))
	const experiments = 1500
	held, wrong, all := 0, 0, 0
	for range experiments {
		d := &factorialDesign{score: "points", factors: []string{"a", "b"}}
		for deal := range 9 {
			luck := 2 * r.NormFloat64()
			for cell := range 6 {
				levels := results.Levels{fmt.Sprint(cell / 3), fmt.Sprint(cell % 3)}
				d.add(cellScore{levels: levels, episode: 6*deal + cell + 1, unit: world.Unit{Deal: deal + 1}, sum: luck + r.NormFloat64(), n: 1})
			}
		}
		d.sort()
		res := &FactorialResult{Factors: d.factors, Correct: "holm"}
		res.add(d)
		ps := make([]float64, len(res.Effects))
		for i, e := range res.Effects {
			ps[i] = e.Test.P
			all++
			if e.Difference.Holds(0) {
				held++
			}
		}
		for _, p := range statmath.Adjust("holm", ps) {
			if p < 0.05 {
				wrong++
				break
			}
		}
	}
	if share := float64(held) / float64(all); share < 0.93 || share > 0.97 {
		t.Errorf("%.3f of intervals hold the truth", share)
	}
	if share := float64(wrong) / experiments; share > 0.06 {
		t.Errorf("%.3f of experiments have a false finding", share)
	}
}

// TestTooMany checks the limits of combinations and effects.
func TestTooMany(t *testing.T) {
	t.Parallel()
	var all []factorialEpisode
	for i := range 70 {
		all = append(all, factorialEpisode{fmt.Sprint("p", i), fmt.Sprint("f", i), 0, 1, 0})
	}
	if r := analyze(t, runFactorial(t, all), "prompt", "family"); len(r.Effects) != 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "4900 combinations") {
		t.Errorf("%d effects, %q", len(r.Effects), r.Notes)
	}
	if r := analyze(t, runFactorial(t, all[:22]), "prompt", "family"); len(r.Effects) != maxEffects || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "53423 of 53823 effects are left out") {
		t.Errorf("%d effects, %q", len(r.Effects), r.Notes)
	}
	if r := analyze(t, runFactorial(t, all), "prompt"); len(r.Effects) != maxEffects || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "2015 of 2415 effects are left out") {
		t.Errorf("%d effects, %q", len(r.Effects), r.Notes)
	}
}

func TestCompareLevels(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"2", "10"}, {"10", "a"}, {"a", "b"}, {"-1", "0.5"}, {"1", "1.0"}} {
		if compareLevels(c[0], c[1]) >= 0 || compareLevels(c[1], c[0]) <= 0 || compareLevels(c[0], c[0]) != 0 {
			t.Errorf("%v", c)
		}
	}
}
