package evolve

import (
	"strings"
	"testing"

	"parley/world"
)

// TestForecast checks that an evolution stays within its forecast in episodes, calls and stages, and that the example
// episodes can be played.
func TestForecast(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it computes: there is nothing for the race detector")
	}
	for _, params := range []string{
		joinParams(smallParams),
		joinParams(smallParams, `"target_fitness": 0, "convergence_patience": 0, "fitness_plateau_generations": 0, "diversity_threshold": 0`),
		joinParams(smallParams, modelOperators),
		joinParams(smallParams, modelOperators, `"breeder_calls": 5, "solvers": 2`),
		joinParams(smallParams, `"race": {"minibatch": 0}, "problems": {"validation": 0}`),
		joinParams(smallParams, `"max_calls": 200, "max_generations": 50`),
		joinParams(smallParams, `"max_generations": 0`),
		joinParams(smallParams, `"population_size": 15, "islands": {"count": 3, "migration_interval": 1, "migrants": 1}`),
		joinParams(smallParams, `"preset": "random_search"`),
	} {
		const seed = 3
		parts, err := definition{}.Forecast(paramsOf(t, params), world.Spec{Kind: "evolve", Lineup: map[string]string{solverSeat: "a"}}, seed)
		if err != nil {
			t.Fatal(err)
		}
		low, high := (&testEvolution{t: t, seed: seed}).foreseen(parts)
		l := (&testEvolution{t: t, seed: seed}).run(params)
		got := extent{stages: len(l.stages), solved: l.solved}
		for _, stage := range l.stages {
			got.episodes += len(stage)
		}
		if got.episodes < low.episodes || got.episodes > high.episodes || got.solved < low.solved || got.solved > high.solved || got.stages-1 > high.stages {
			t.Errorf("%s: %+v is not within %+v and %+v", params, got, low, high)
		}
	}
}

// TestForecastOfTheLargest: an example is small, however large a trial is, and counts as a whole one.
func TestForecastOfTheLargest(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]float64{
		`{"problems": {"train": 20000, "validation": 0}, "race": {"minibatch": 0}}`:                              20000,
		`{"problems": {"train": 400, "validation": 3000}, "race": {"minibatch": 0}}`:                             400,
		`{"solvers": 20, "samples": 100, "problems": {"train": 50, "validation": 50}, "race": {"minibatch": 0}}`: 100_000,
	} {
		p := paramsOf(t, params)
		lineup := map[string]string{}
		for _, seat := range solverSeats(p.Solvers) {
			lineup[seat] = "a"
		}
		parts, err := definition{}.Forecast(p, world.Spec{Kind: "evolve", Lineup: lineup}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range parts {
			calls := 0.0
			for _, like := range part.Like[:1] {
				of, err := Kind().Read(like.Params)
				if err != nil {
					t.Fatal(err)
				}
				if trial := of.Pointer().(*Params).Episode.Trial; trial != nil {
					calls = float64(len(trial.Problems) * p.Solvers * p.Samples)
				}
			}
			if calls > 2000 {
				t.Errorf("%s: %s: an example makes %v calls", params, part.Name, calls)
			}
			if whole := calls * max(1, part.Times); i == 0 && whole != want {
				t.Errorf("%s: %s: the examples stand for %v calls, want %v", params, part.Name, whole, want)
			}
		}
	}
}

// extent is the size of an evolution.
type extent struct{ episodes, solved, stages int }

// foreseen plays an example of each part and multiplies.
func (l *testEvolution) foreseen(parts []world.Part) (low, high extent) {
	l.t.Helper()
	l.answer = l.sim
	for _, part := range parts {
		if len(part.Like) == 0 || part.Low > part.High {
			l.t.Errorf("%+v", part)
			continue
		}
		l.asked, l.solved = map[promptAndQuestion]int{}, 0
		o := l.episode(part.Like[0], 0)
		if o.Failed != "" || !strings.Contains(part.Like[0].Cell, strings.Fields(part.Name)[0]) && part.Name != "final test" {
			l.t.Errorf("%s: %q in %q", part.Name, o.Failed, part.Like[0].Cell)
		}
		low.episodes += part.Low
		low.solved += part.Low * l.solved
		high.episodes += part.High
		high.solved += part.High * l.solved
		high.stages += part.Stages
	}
	return low, high
}

// TestForecastRefuses checks that wrong params have no forecast, and that a single episode has a forecast of one.
func TestForecastRefuses(t *testing.T) {
	t.Parallel()
	if _, err := (definition{}).Forecast(paramsOf(t, `{"population_size": 1}`), world.Spec{}, 1); err == nil {
		t.Error("no error")
	}
	parts, err := definition{}.Forecast(paramsOf(t, `{`+threeProblems+`}`), world.Spec{Kind: "evolve"}, 1)
	if err != nil || len(parts) != 1 || parts[0].High != 1 {
		t.Errorf("%+v, %v", parts, err)
	}
}
