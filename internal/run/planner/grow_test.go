package planner_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/run/planner"
	"parley/world"
	"parley/world/worldtest"
)

// byPlay is an outcome that depends on what is played and not on the episode's number.
func byPlay(_ int, s world.Spec) world.Outcome {
	seed := uint64(s.Deal)
	for _, c := range fmt.Sprint(string(s.Params), s.Lineup) {
		seed = seed*31 + uint64(c)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	if r.IntN(10) == 0 {
		return world.Outcome{Failed: "bad luck"}
	}
	return world.Outcome{Scores: []world.Score{{Name: "points", Value: r.NormFloat64()}}}
}

// asSet is what was played, in any order.
func asSet(stages [][]world.Played) map[string]int {
	set := map[string]int{}
	for _, stage := range stages {
		for _, p := range stage {
			set[fmt.Sprint(string(p.Spec.Params), p.Spec.Lineup, p.Spec.Deal, p.Spec.Cell)]++
		}
	}
	return set
}

func specsOf(stages [][]world.Played) (out []world.Specs) {
	for _, stage := range stages {
		var specs []world.Spec
		for _, p := range stage {
			specs = append(specs, p.Spec)
		}
		out = append(out, world.List(specs...))
	}
	return out
}

// experiment draws a plan and one that is larger: more repetitions, agents and variants, or a
// smaller width and a larger max.
func experiment(t *rapid.T) (small, large maker) {
	agents, variants := []string{"a", "b", "c", "d"}, []planner.Variant{
		{Name: "n=2", Params: json.RawMessage(`{"n":2}`)}, {Name: "n=5", Params: json.RawMessage(`{"n":5}`)}, {Name: "n=9", Params: json.RawMessage(`{"n":9}`)},
	}
	of := func(a, v, repeat int) planner.Matrix {
		vs := slices.Clone(variants[:v])
		slices.Reverse(vs)
		if v == 1 {
			vs[0].Name = "" // it does not vary
		}
		return planner.Matrix{Kind: "k", Seats: []string{"first", "second"}, Lineups: pairs(agents[:a]...), Variants: vs, Repetitions: repeat}
	}
	a, v, n := rapid.IntRange(1, 3).Draw(t, "agents"), rapid.IntRange(1, 2).Draw(t, "variants"), rapid.IntRange(1, 3).Draw(t, "repeat")
	first := of(a, v, n)
	second := of(a+rapid.IntRange(0, 1).Draw(t, "more agents"), v+rapid.IntRange(0, 1).Draw(t, "more variants"), n+rapid.IntRange(0, 2).Draw(t, "more"))
	if rapid.Bool().Draw(t, "list") {
		return first.Plan, second.Plan
	}
	u := planner.Until{Score: "points", Width: rapid.Float64Range(0.2, 1).Draw(t, "width"), Min: rapid.IntRange(2, 9).Draw(t, "min"), Step: rapid.IntRange(1, 9).Draw(t, "step")}
	u.Max = u.Min + rapid.IntRange(0, 20).Draw(t, "max")
	bigger := u
	bigger.Width, bigger.Max = u.Width*rapid.Float64Range(0.3, 1).Draw(t, "narrower"), u.Max+rapid.IntRange(0, 30).Draw(t, "longer")
	cellsOf := func(u planner.Until, m planner.Matrix) maker {
		u.Cells = m.Cells()
		return u.Plan
	}
	return cellsOf(u, first), cellsOf(bigger, second)
}

// TestGrownIsPlayedAtOnce: a plan that grows plays, in all, what the larger plan plays at once;
// what was recorded keeps its place; and it continues the same way from every moment.
func TestGrownIsPlayedAtOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		small, large := experiment(t)
		recorded := specsOf(follow(t, small, byPlay))
		atOnce := follow(t, large, byPlay)
		grown := func(stages []world.Specs) maker {
			return func() (world.Stages, error) {
				p, err := large()
				if err != nil {
					return nil, err
				}
				return planner.Grow(world.Kind{}, stages, p)
			}
		}
		got := follow(t, grown(recorded), byPlay)
		if want := asSet(atOnce); !maps.Equal(asSet(got), want) {
			t.Fatalf("grown:\n%v\nat once:\n%v", asSet(got), want)
		}
		for i, stage := range recorded {
			for j, was := range stage.All() {
				if is := got[i][j].Spec; string(is.Params) != string(was.Params) || is.Deal != was.Deal || !maps.Equal(is.Lineup, was.Lineup) {
					t.Fatalf("stage %d, episode %d: %+v became %+v", i, j, was, is)
				}
			}
		}
		cut := rapid.IntRange(len(recorded), len(got)).Draw(t, "cut")
		if again := follow(t, grown(specsOf(got[:cut])), byPlay); !reflect.DeepEqual(again, got) {
			t.Fatalf("cut after stage %d it continues with %d stages, not %d", cut, len(again), len(got))
		}
	})
}

// TestGrowRefuses names what is recorded and not in the plan.
func TestGrowRefuses(t *testing.T) {
	t.Parallel()
	spec := world.Spec{Kind: "k", Params: json.RawMessage(`{"n":1}`), Lineup: map[string]string{"a": "x"}, Cell: "n=1"}
	other := spec
	other.Params = json.RawMessage(`{"n":2}`)
	until, err := planner.Until{Cells: []world.Spec{spec}, Score: "s", Width: 1, Min: 2, Max: 3}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		plan world.Stages
		want string
	}{
		"fewer repetitions": {world.Repeat(spec, 3), "episode 3 (deal 3, cell n=1) and 1 more are recorded"},
		"other params":      {world.Repeat(other, 9), "episode 0 (deal 0, cell n=1) and 4 more"},
		"a smaller max":     {until, "episode 3 (deal 3, cell n=1) and 1 more"},
		"of its own":        {planner.Beside(until, until), planner.ErrCannotGrow.Error()},
		"fewer copies":      {world.Join(world.Repeat(spec, 4), world.Repeat(other, 4)), "episode 4 (deal 4, cell n=1) is recorded"},
	} {
		_, err := planner.Grow(world.Kind{}, []world.Specs{world.Repeat(spec, 5)}, c.plan)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if g, err := planner.Grow(world.Define(outsider{}), []world.Specs{world.Repeat(spec, 5)}, world.Repeat(other, 7)); err != nil || g.New != 2 || g.Recorded != 5 {
		t.Errorf("params outside of play: %+v, %v", g, err)
	}
}

// outsider is a kind whose param n does not change its outcomes.
type outsider struct{ worldtest.Simple[sizes] }

type sizes struct {
	N int `json:"n"`
}

func (outsider) Actor(*sizes, string) (world.Actor, error) { return nil, nil }
func (outsider) Outside() []string                         { return []string{"n"} }
