package report

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
)

// original returns a run whose episodes differ widely.
func original(t *testing.T, r *rand.Rand, episodes int) (*results.Run, []float64) {
	t.Helper()
	var all []episode
	worth := make([]float64, episodes)
	for d := range worth {
		worth[d] = 5 * r.NormFloat64()
		all = append(all, episode{"some cell", d, "a", "b", worth[d] + 0.3*r.NormFloat64(), 0})
	}
	return run(t, 1, all), worth
}

// branch returns a fork of an episode, repeated so often, better than it by gain.
func branch(t *testing.T, r *rand.Rand, id string, of, repeats int, worth, gain float64) *results.Run {
	t.Helper()
	var all []episode
	for range repeats {
		all = append(all, episode{"", of, "a", "b", worth + gain + 0.3*r.NormFloat64(), 0})
	}
	f := run(t, 1, all)
	f.Head.Begun.Run = id
	f.Head.Begun.Fork = &journal.Origin{Run: "r", Episode: of, Turn: 4}
	return f
}

// left returns the comparison of the left seat, the only one that varies.
func left(t *testing.T, runs []*results.Run, names []string, c CompareConfig) Comparison {
	t.Helper()
	res, err := Compare(runs, names, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Comparisons {
		if c.Of == "left" || c.Of == "" {
			return c
		}
	}
	t.Fatalf("%+v", res)
	return Comparison{}
}

// TestSiblings checks that branches of one episode differ by what was changed, and that every repeat counts.
func TestSiblings(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	as, other := branch(t, r, "f", 3, 20, 7, 0), branch(t, r, "g", 3, 25, 7, 0.5)
	c := left(t, []*results.Run{as, other}, []string{"as", "other"}, CompareConfig{})
	if c.Paired || c.Unit != "repeat" || c.N != 20 || !c.Differs() || !c.Difference.Holds(-0.5) || !strings.Contains(c.Note, "one and the same episode") {
		t.Errorf("%+v", c)
	}
	// Branches of different episodes have nothing in common, and each is one past.
	far := branch(t, r, "h", 5, 25, 2, 0)
	if c := left(t, []*results.Run{as, far}, []string{"as", "far"}, CompareConfig{}); c.Differs() || c.N != 1 || !strings.Contains(c.Note, "do not continue the same") {
		t.Errorf("%+v", c)
	}
}

// TestSiblingsWithoutADifference checks that false findings are no more frequent than chance allows.
func TestSiblingsWithoutADifference(t *testing.T) {
	t.Parallel()
	draws(t)
	r := rand.New(rand.NewPCG(2, 2))
	wrong := 0
	for range 200 {
		c := left(t, []*results.Run{branch(t, r, "f", 3, 10, 7, 0), branch(t, r, "g", 3, 10, 7, 0)}, []string{"f", "g"}, CompareConfig{Scores: []string{"points"}, Correct: none})
		if c.Differs() {
			wrong++
		}
	}
	if wrong < 1 || wrong > 24 { // 10 are expected; chance goes beyond this once in ten thousand times
		t.Errorf("%d of 200 have a false finding", wrong)
	}
}

// TestEpisodeAmongItsBranches compares a run with a fork of it: only the forked episode
// counts.
func TestEpisodeAmongItsBranches(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	was, worth := original(t, r, 10)
	c := left(t, []*results.Run{was, branch(t, r, "f", 3, 40, worth[3], 5)}, []string{"was", "fork"}, CompareConfig{})
	if c.Paired || c.N != 1 || c.Unit != "repeat" || !c.Differs() || c.Test.Method != "shuffles" || c.MeanA.N != 1 || !strings.Contains(c.Note, "has a single episode") {
		t.Errorf("%+v", c)
	}
	if same := left(t, []*results.Run{was, branch(t, r, "f", 3, 40, worth[3], 0)}, []string{"was", "fork"}, CompareConfig{}); same.Differs() {
		t.Errorf("%+v", same)
	}
	// A fork of a fork is compared with the repeat that it continues.
	first := branch(t, r, "f", 3, 40, worth[3], 0)
	second := branch(t, r, "g", 3, 40, worth[3], 0)
	second.Head.Begun.Fork = &journal.Origin{Run: "f", Episode: 7}
	if c := left(t, []*results.Run{first, second}, []string{"f", "g"}, CompareConfig{}); c.MeanA.N != 1 || c.MeanB.N != 40 {
		t.Errorf("%+v", c)
	}
	// And with the first run, if the fork between them is there.
	res, err := Compare([]*results.Run{was, first, second}, []string{"was", "f", "g"}, CompareConfig{})
	if err != nil || len(res.Comparisons) != 6 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, c := range res.Comparisons {
		if c.Of == "left" && c.A == "was" && (c.B != "f" && c.B != "g" || c.MeanA.N != 1 || c.MeanB.N != 40) {
			t.Errorf("%+v", c)
		}
	}
}

// TestForkedEpisodes checks that forks of several episodes, changed in the same way, are one group, paired
// with what they continue. That shows a gain far smaller than the differences between episodes.
func TestForkedEpisodes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	was, worth := original(t, r, 15)
	runs, names := []*results.Run{was}, []string{"was"}
	for e := range 12 {
		runs, names = append(runs, branch(t, r, fmt.Sprint("f", e), e, 3, worth[e], 0.6)), append(names, fmt.Sprint("fork ", e))
	}
	c := left(t, runs, names, CompareConfig{})
	if c.B != "fork 0 and 11 more" || !c.Paired || c.Unit != "forked episode" || c.N != 12 || !c.Differs() || !c.Difference.Holds(-0.6) {
		t.Errorf("%+v", c)
	}
	// Another change is another group, and both are paired by what they continue.
	for e := range 12 {
		f := branch(t, r, fmt.Sprint("g", e), e, 3, worth[e], 0)
		f.Head.Begun.Agents = append(f.Head.Begun.Agents, world.Agent{Name: "new"})
		runs, names = append(runs, f), append(names, fmt.Sprint("other ", e))
	}
	res, err := Compare(runs, names, CompareConfig{})
	if err != nil || len(res.Groups) != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, c := range res.Comparisons {
		if c.Of == "left" && (!c.Paired || c.N != 12 || c.Differs() != (c.A != "was" || c.B != "other 0 and 11 more")) {
			t.Errorf("%+v", c)
		}
	}
}

// TestInOneFork compares agents that meet in the branches of one episode.
func TestInOneFork(t *testing.T) {
	t.Parallel()
	f := branch(t, rand.New(rand.NewPCG(5, 5)), "f", 3, 30, 0, 0.4)
	c := left(t, []*results.Run{f}, []string{"f"}, CompareConfig{By: ByAgent})
	if !c.Paired && c.Unit != "repeat" || c.N != 30 || !c.Differs() {
		t.Errorf("%+v", c)
	}
	f.Head.Begun.Fork.Run = "f" // a file that claims to be forked from itself
	left(t, []*results.Run{f, f}, []string{"f", "g"}, CompareConfig{})
}

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	r := run(t, 1, duels(rand.New(rand.NewPCG(1, 1)), 5, 0))
	for want, c := range map[string]CompareConfig{
		`unknown score "pionts"; did you mean points? There are: points`:            {Scores: []string{"points", "pionts"}},
		`unknown score "x". There are: points`:                                      {Scores: []string{"x"}},
		`unknown cell "a furst"; did you mean a first? There are: a first; b first`: {By: byCell, Against: "a furst"},
		`unknown agent "somebody else altogether". There are: a; b`:                 {Against: "somebody else altogether"},
	} {
		if _, err := Compare([]*results.Run{r}, []string{"x"}, c); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

// TestBounds checks that no interval goes beyond the declared bounds of a score.
func TestBounds(t *testing.T) {
	t.Parallel()
	r := run(t, 1, []episode{{"", 0, "a", "b", 9, 1}, {"", 1, "a", "b", 10, 0}, {"", 2, "a", "b", 7, 3}})
	free := one(t, []*results.Run{r}, []string{"x"}, CompareConfig{})
	r.Bounds = map[string]world.Bounds{"points": {Low: 0, High: 10}}
	held := one(t, []*results.Run{r}, []string{"x"}, CompareConfig{})
	if free.MeanA.High <= 10 || held.MeanA.High > 10 || held.MeanB.Low < 0 || held.Difference.High != 10 || held.Difference.Low != free.Difference.Low || held.Test != free.Test {
		t.Errorf("%+v\n%+v", free, held)
	}
}
