package genome

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestPick: every method picks as many as asked for, of those there are, by chance alone.
func TestPick(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := make([]Candidate, rapid.IntRange(0, 12).Draw(t, "all"))
		for i := range all {
			all[i].Fitness = rapid.Float64Range(-1, 1).Draw(t, "fitness")
			all[i].ByProblem = rapid.SliceOfN(rapid.Float64Range(0, 1), 0, 4).Draw(t, "by problem")
		}
		n := rapid.IntRange(-1, 30).Draw(t, "n")
		o := SelectionOptions{Size: rapid.IntRange(0, 20).Draw(t, "size"), Pressure: rapid.Float64Range(0, 3).Draw(t, "pressure"), Share: rapid.Float64Range(0, 1).Draw(t, "share")}
		method := rapid.SampledFrom(methods()).Draw(t, "method")
		seed := rapid.Uint64().Draw(t, "seed")
		picked := Select(method, all, n, o, rand.New(rand.NewPCG(seed, 0)))
		want := max(0, n)
		if len(all) == 0 {
			want = 0
		}
		if len(picked) != want {
			t.Fatalf("%s picks %d of %d, want %d", method, len(picked), len(all), want)
		}
		again := Select(method, all, n, o, rand.New(rand.NewPCG(seed, 0)))
		for i, p := range picked {
			if p < 0 || p >= len(all) || again[i] != p {
				t.Fatalf("%s picks %v, then %v", method, picked, again)
			}
		}
	})
}

// counts is how often each of some fitnesses is picked in ten thousand.
func counts(method string, o SelectionOptions, fitness ...float64) []int {
	all := make([]Candidate, len(fitness))
	for i, f := range fitness {
		all[i].Fitness = f
	}
	got := make([]int, len(all))
	for _, p := range Select(method, all, 10_000, o, rand.New(rand.NewPCG(7, 7))) {
		got[p]++
	}
	return got
}

// TestBetterIsPickedMore: with every method that uses fitness, the fitter is picked
// more often; random does not use it.
func TestBetterIsPickedMore(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"tournament", "roulette", "rank", "universal"} {
		got := counts(method, SelectionOptions{}, 0.1, 0.9, 0.5, 0.7)
		if got[1] <= got[3] || got[3] <= got[2] || got[2] < got[0] {
			t.Errorf("%s: %v", method, got)
		}
	}
	for i, n := range counts("random", SelectionOptions{}, 0.1, 0.9, 0.5, 0.7) {
		if n < 2300 || n > 2700 {
			t.Errorf("random picks %d %d times of 10000", i, n)
		}
	}
	if got := counts("truncation", SelectionOptions{Share: 0.5}, 0.1, 0.9, 0.5, 0.7); got[0] != 0 || got[2] != 0 || got[1] < 4700 || got[3] < 4700 {
		t.Errorf("truncation: %v", got)
	}
}

// TestPressure: a larger tournament and a higher pressure favour the best.
func TestPressure(t *testing.T) {
	t.Parallel()
	if small, large := counts("tournament", SelectionOptions{Size: 1}, 1, 2, 3, 4)[3], counts("tournament", SelectionOptions{Size: 4}, 1, 2, 3, 4)[3]; small > 2700 || large != 10_000 {
		t.Errorf("a tournament of one picks the best %d times, one of all %d times", small, large)
	}
	if low, high := counts("rank", SelectionOptions{Pressure: 1}, 1, 2, 3, 4)[3], counts("rank", SelectionOptions{Pressure: 2}, 1, 2, 3, 4)[3]; low > 2700 || high < 4500 {
		t.Errorf("rank picks the best %d times without pressure, %d times with", low, high)
	}
}

// TestUniversal: nobody is picked further from its share than one time.
func TestUniversal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Float64Range(0.01, 1), 1, 10).Draw(t, "weights")
		n := rapid.IntRange(1, 50).Draw(t, "n")
		sum := 0.0
		for _, w := range weights {
			sum += w
		}
		got := make([]float64, len(weights))
		for _, p := range universal(weights, n, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))) {
			got[p]++
		}
		for i, w := range weights {
			if share := w / sum * float64(n); got[i] < share-1.0001 || got[i] > share+1.0001 {
				t.Fatalf("%d has a share of %v and is picked %v times", i, share, got[i])
			}
		}
	})
}

// TestPareto: specialists are kept beside the best on average, and who is beaten
// everywhere is not.
func TestPareto(t *testing.T) {
	t.Parallel()
	all := []Candidate{
		{Fitness: 0.75, ByProblem: []float64{1, 1, 1, 0}},
		{Fitness: 0.25, ByProblem: []float64{0, 0, 0, 1}},
		{Fitness: 0.5, ByProblem: []float64{1, 1, 0, 0}},
	}
	got := make([]int, 3)
	for _, p := range Select("pareto", all, 10_000, SelectionOptions{}, rand.New(rand.NewPCG(1, 1))) {
		got[p]++
	}
	if got[2] != 0 || got[1] < 2300 || got[1] > 2700 || got[0] < 7300 {
		t.Errorf("%v", got)
	}
}

// methods lists the ways to select.
func methods() []string {
	return []string{"tournament", "roulette", "rank", "universal", "truncation", "pareto", "random"}
}

func TestEqualOnes(t *testing.T) {
	t.Parallel()
	for _, method := range methods() {
		for i, n := range counts(method, SelectionOptions{Share: 1}, 0.5, 0.5, 0.5, 0.5) {
			if n < 2200 || n > 2800 {
				t.Errorf("%s picks %d of four equal ones %d times of 10000", method, i, n)
			}
		}
	}
}
