package estimate

import (
	"math"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds"
)

// evolving is a plan that its kind makes during play.
const evolving = `kind: evolve
agents: {a: {model: sim/small, max_tokens: 100}, b: {model: sim/large, max_tokens: 200}}
lineup: {solver: a, breeder: b}
params:
  population_size: 8
  max_generations: 3
  elite_size: 2
  problems: {train: 20, validation: 4, test: 6}
  race: {minibatch: 5}
  mutation: {reflect: 1, edit: 1}
`

// TestEstimateWhole: if a kind makes its plan during play, the estimate covers all of it, not only
// the first stage.
func TestEstimateWhole(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it plays much, and others play the same")
	}
	for _, more := range []string{"", "  max_calls: 250\n", "  target_fitness: 0\n  diversity_threshold: 0\nepisodes: 3\n"} {
		e := estimated(t, worlds.Standard(), evolving+more, Config{})
		plan, err := planfile.Parse("plan.yaml", []byte(evolving+more), worlds.Standard(), nil)
		if err != nil {
			t.Fatal(err)
		}
		way, _, err := Bench{Plan: plan}.way(t.Context(), "free", 0, 64, false)
		if err != nil {
			t.Fatal(err)
		}
		n, calls := e.Episodes, e.Calls.Total
		if way.Episodes < n.Low || way.Episodes > n.High || float64(way.Calls) < calls.Low || float64(way.Calls) > calls.High {
			t.Errorf("%q: %d episodes and %d calls are not in %+v and %v", more, way.Episodes, way.Calls, n, calls)
		}
	}
}

// TestEstimateParts: parts have names, add up to the whole, and know every model.
func TestEstimateParts(t *testing.T) {
	t.Parallel()
	e := estimated(t, worlds.Standard(), evolving, Config{})
	var names []string
	calls, cost, episodes := 0.0, 0.0, 0
	for _, p := range e.Parts {
		names = append(names, p.Name)
		calls += p.Calls.Total.High
		cost += p.Cost.Episode.Mean * float64(p.Episodes.High)
		episodes += p.Episodes.High
	}
	if got := strings.Join(names, ", "); got != "generation 0, generations 1 to 3, breeding, validation, final test, verdict" {
		t.Error(got)
	}
	if math.Abs(calls-e.Calls.Total.High) > 1e-6 || math.Abs(cost-e.Cost.Episode.Mean*float64(e.Episodes.High)) > 1e-9 || episodes != e.Episodes.High {
		t.Errorf("parts: %v calls, %v, %d episodes; all: %v, %v, %d", calls, cost, episodes, e.Calls.Total, e.Cost.Episode, e.Episodes.High)
	}
	if len(e.Models) != 2 || e.Models[0].Model != "sim/large" || e.Models[0].Calls.Total.High != 18 || e.CostMax == nil {
		t.Errorf("models %+v", e.Models)
	}
	// Generation 0 takes three rounds. Each of the three others takes three rounds and a breeding.
	if s := e.Time.Seconds; e.Parts[1].Stages != 9 || s.High < 5*(3+9+3+2) {
		t.Errorf("%d stages, %+v", e.Parts[1].Stages, e.Time)
	}
}

// threefold plays everything three times, and has a forecast of parts.
type threefold struct {
	worldtest.Simple[struct{}]
	parts []world.Part
}

func (threefold) Plan(_ *struct{}, cell world.Spec, _ uint64) (world.Plan, error) {
	return world.Repeat(cell, 3), nil
}

func (k threefold) Forecast(*struct{}, world.Spec, uint64) ([]world.Part, error) { return k.parts, nil }

// TestEstimateForecast: a part without an example of its episodes is an error, and a kind without a
// forecast is estimated by its first stage.
func TestEstimateForecast(t *testing.T) {
	t.Parallel()
	const plan = "kind: test\nagents: {a: sim/small}\n"
	nothing := func(*world.Table) world.Outcome { return world.Outcome{} }
	if e := estimated(t, []world.Kind{world.Define(threefold{Simple: simple(nothing)})}, plan, Config{}); e.Episodes.High != 3 || len(e.Parts) != 0 {
		t.Errorf("%+v", e.Episodes)
	}
	kind := world.Define(threefold{simple(nothing), []world.Part{{Name: "unlike", High: 3}}})
	p, err := planfile.Parse("plan.yaml", []byte(plan), []world.Kind{kind}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Config{Plan: p}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "forecast: unlike: Like has no example") {
		t.Error(err)
	}
	p.Episodes = 2_000_000_000
	if _, err := (Config{Plan: p}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 1000000 plans of its kind's own") {
		t.Error(err)
	}
}
