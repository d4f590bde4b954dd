package evolve

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"parley/world"
)

// proofParams is an evolution that is large enough to show whether it works. Nothing stops it early.
const proofParams = `"population_size": 10, "elite_size": 2, "target_fitness": 0, "convergence_patience": 0, "fitness_plateau_generations": 0,
	"diversity_threshold": 0, "fitness": {"by": "accuracy"}, "finalists": 3, "baselines": {"seeds": 8}`

// runEach plays n evolutions in parallel, each with its own model, problems and seed.
func runEach(t *testing.T, n, train int, model, params string) []*testEvolution {
	t.Helper()
	all := make([]*testEvolution, n)
	var wg sync.WaitGroup
	for i := range all {
		at := uint64(i) + firstSeed(t)
		all[i] = &testEvolution{t: t, seed: at, model: fmt.Sprintf("%s-%d", model, at)}
		problems := fmt.Sprintf(`"problems": {"seed": %d, "train": %d, "validation": 20, "test": 40}`, at+1, train)
		wg.Go(func() { all[i].run(joinParams(proofParams, params, problems)) })
	}
	wg.Wait()
	return all
}

// skipUnlessFull skips a test in short runs, such as those under the race detector, where it takes minutes.
func skipUnlessFull(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
}

// winners returns the accuracy of the winners on the test problems.
func winners(all []*testEvolution) []float64 {
	var xs []float64
	for _, l := range all {
		xs = append(xs, l.verdict.Test[0].Accuracy.Value)
	}
	return xs
}

// raced counts the calls of evolution, without validation and test.
func raced(all []*testEvolution) int {
	n := 0
	for _, l := range all {
		for _, g := range l.verdict.Generations {
			n += g.Calls
		}
	}
	return n
}

// TestEvolutionGains checks that evolution finds prompts that solve more test problems than those of a random search with
// as many calls, and than the best baseline. Run it with -v to see the numbers. With PARLEY_SWEEP, which .ci/run kills sets, there are
// more evolutions.
func TestEvolutionGains(t *testing.T) {
	t.Parallel()
	skipUnlessFull(t)
	const calls = 3600 // of each, the final test included
	n := 8
	if os.Getenv("PARLEY_SWEEP") != "" {
		n = 20
	}
	fair := fmt.Sprintf(`"max_generations": 1000, "max_calls": %d`, calls)
	evolved := runEach(t, n, 40, "solver", fair)
	random := runEach(t, n, 40, "solver", fair+`, "preset": "random_search"`)
	var best []float64
	for _, l := range evolved {
		highest := 0.0
		for _, x := range l.verdict.Test[1:] {
			highest = max(highest, x.Accuracy.Value)
		}
		best = append(best, highest)
	}
	for name, other := range map[string][]float64{"random search": winners(random), "the best baseline": best} {
		d, test := world.Paired(winners(evolved), other, 0.95, 1)
		t.Logf("evolution solves %v more than %s, over %d evolutions: %v", d, name, n, test)
		if !(d.Low > 0) || !(test.P < 0.05) {
			t.Errorf("evolution does not beat %s: %v, %v", name, d, test)
		}
	}
	a, b := raced(evolved), raced(random)
	t.Logf("calls: evolution %d, random search %d", a, b)
	if float64(b) < 0.97*float64(a) {
		t.Errorf("random search had fewer calls (%d) than evolution (%d): the comparison is not fair", b, a)
	}
}

// TestFlat checks that no gain is reported if there is nothing to gain. At 5%, about one claim in twenty is false by
// chance; over all evolutions, the winners are no better than no prompt.
func TestFlat(t *testing.T) {
	t.Parallel()
	skipUnlessFull(t)
	all := runEach(t, 12, 30, "flat", `"max_generations": 4`)
	claims := 0
	var none []float64
	for _, l := range all {
		v := l.verdict
		if v.Gain != nil && v.Gain.Value > 0 && v.P != nil && *v.P < 0.05 {
			claims++
		}
		for _, x := range v.Test {
			if x.Name == "no prompt" {
				none = append(none, x.Accuracy.Value)
			}
		}
	}
	d, test := world.Paired(winners(all), none, 0.95, 1)
	t.Logf("on a flat landscape %d of %d evolutions claim a gain; winners solve %v more than no prompt: %v", claims, len(all), d, test)
	if claims > 1 || !d.Holds(0) {
		t.Errorf("a gain where there is none: %d claims, %v", claims, d)
	}
}

// TestRacing checks that races find equally good winners, within noise, with at most 60% of the calls. With PARLEY_SWEEP there are more.
func TestRacing(t *testing.T) {
	t.Parallel()
	skipUnlessFull(t)
	n := 4
	if os.Getenv("PARLEY_SWEEP") != "" {
		n = 8
	}
	racing := runEach(t, n, 80, "solver", `"max_generations": 5`)
	whole := runEach(t, n, 80, "solver", `"max_generations": 5, "race": {"minibatch": 0}`)
	share := float64(raced(racing)) / float64(raced(whole))
	d, test := world.Paired(winners(racing), winners(whole), 0.95, 1)
	t.Logf("racing takes %.0f%% of the calls; its winners solve %v more: %v", 100*share, d, test)
	if share > 0.6 || !d.Holds(0) && d.Value < 0 {
		t.Errorf("racing takes %.0f%% of the calls, and its winners solve %v more", 100*share, d)
	}
}

// firstSeed returns the first seed of these tests. They do not use the seeds from 0 on, with which the defaults were chosen.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv("PARLEY_EVOLVE_SEED"), "401"), 10, 32)
	if err != nil {
		t.Fatal("PARLEY_EVOLVE_SEED:", err)
	}
	return n
}
