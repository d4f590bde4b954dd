package estimate

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/kit/statmath"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds"
)

// estimated loads a plan and estimates it.
func estimated(t *testing.T, kinds []world.Kind, plan string, c Config) *Estimate {
	t.Helper()
	p, err := planfile.Parse("plan.yaml", []byte(plan), kinds, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Plan = p
	e, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestEstimateIsRight estimates a plan from a sample. The totals of the whole plan must be within
// the estimate.
func TestEstimateIsRight(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it computes: there is nothing for the race detector")
	}
	const plan = `kind: secrets
agents: {a: {model: sim/small, max_tokens: 50}, b: {model: lab/x, max_tokens: 60}, c: {bot: keeper}}
providers: {lab: {dialect: openai, base_url: "https://llm.example.com/v1"}}
plan: {matrix: {agents: [a, b, c], repeat: 20}}
`
	part := estimated(t, worlds.Standard(), plan, Config{Episodes: 24})
	whole := estimated(t, worlds.Standard(), plan, Config{Episodes: 120})
	if part.Episodes != (EpisodeCount{Low: 120, High: 120, Cells: 6, Played: 24}) || whole.Episodes.Played != 120 {
		t.Fatalf("%+v, %+v", part.Episodes, whole.Episodes)
	}
	// Each agent sits in 80 of 120 episodes, and says three of six messages: known exactly.
	if got := part.Models[1]; got.Model != "sim/small" || math.Abs(got.Calls.Total.Low-240) > 1e-6 || math.Abs(got.Calls.Total.High-240) > 1e-6 ||
		math.Abs(got.OutputMax.Total.High-240*50) > 1e-6 {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		what        string
		part, whole Amount
	}{
		{"calls", part.Calls, whole.Calls}, {"input", part.Input, whole.Input}, {"output", part.Output, whole.Output}, {"cost", *part.Cost, *whole.Cost},
	} {
		is := c.whole.Episode.Mean * 120
		if is < c.part.Total.Low-1e-9 || is > c.part.Total.High+1e-9 || is <= 0 {
			t.Errorf("%s: %v is not in %v", c.what, is, c.part.Total)
		}
	}
	if part.Batch != nil || part.CostMax != nil {
		t.Errorf("no provider has batches: %+v, at most %+v", part.Batch, part.CostMax)
	}
	if len(part.Unpriced) != 1 || part.Unpriced[0] != "lab/x" || len(part.Unbounded) != 0 {
		t.Errorf("unpriced %v, unbounded %v", part.Unpriced, part.Unbounded)
	}
}

// TestEstimateBatches prices batches where providers have them, and the calls of the others live.
func TestEstimateBatches(t *testing.T) {
	t.Parallel()
	e := estimated(t, worlds.Standard(), "kind: secrets\nagents: {a: {model: openai/gpt-4.1-mini, max_tokens: 50}, b: {model: sim/small, max_tokens: 50}}\nlineup: {first: a, second: b}\nepisodes: 2\n", Config{Episodes: 2})
	batched, live := e.Models[0], e.Models[1]
	if batched.Batch == nil || batched.Batch.Episode.Mean >= batched.Cost.Episode.Mean || live.Batch != nil || live.Cost == nil {
		t.Fatalf("%+v, %+v", batched.Use, live.Use)
	}
	if want := batched.Batch.Episode.Mean + live.Cost.Episode.Mean; math.Abs(e.Batch.Episode.Mean-want) > 1e-12 {
		t.Errorf("%v, want %v", e.Batch.Episode.Mean, want)
	}
}

func TestEstimateBudget(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it computes: there is nothing for the race detector")
	}
	const plan = `kind: secrets
episodes: 50
agents: {a: {model: openai/gpt-5-mini, max_tokens: 100}}
`
	for budget, want := range map[string]string{"budget: 100": "yes", "budget: 0.001": "no"} {
		e := estimated(t, worlds.Standard(), plan+budget+"\n", Config{})
		if e.Budget.Covers != want {
			t.Errorf("%s: covers: %s, want %s; %v", budget, e.Budget.Covers, want, e.Cost.Total)
		}
	}
	for _, budget := range []string{"budget", "episode_budget"} { // a call that is larger than it is never made
		const says = "plan.yaml:3:52: agents.a.max_tokens: max_tokens: 2000 sets aside about $0.00"
		e := estimated(t, worlds.Standard(), strings.Replace(plan, "100", "2000", 1)+budget+": 0.001\n", Config{Episodes: 2})
		if got := strings.Join(e.Warnings, "\n"); !strings.Contains(got, says) || !strings.Contains(got, "more than the "+budget+" of $0.001") {
			t.Errorf("%s: warnings %s", budget, got)
		}
	}
	e := estimated(t, worlds.Standard(), strings.Replace(plan, ", max_tokens: 100", "", 1)+"budget: 0.2\n", Config{})
	if e.Budget.Covers != "no" || e.Budget.Call <= e.Budget.Limit || !strings.Contains(strings.Join(e.Warnings, "\n"), "the run would stop there") {
		t.Errorf("an answer without a limit fits no small budget: %+v %v", e.Budget, e.Warnings)
	}
	e = estimated(t, worlds.Standard(), strings.ReplaceAll(plan, "openai/gpt-5-mini", "openai/gtp-5-mini")+"budget: 100\n", Config{})
	if e.Budget.Covers != "unknown" || e.Cost != nil {
		t.Errorf("%+v %v", e.Budget, e.Warnings)
	}
	e = estimated(t, worlds.Standard(), strings.ReplaceAll(plan, "openai/gpt-5-mini", "openai/gtp-5-mini"), Config{})
	if !strings.Contains(strings.Join(e.Warnings, "\n"), "did you mean openai/gpt-5-mini?") {
		t.Errorf("%v", e.Warnings)
	}
	e = estimated(t, worlds.Standard(), strings.ReplaceAll(plan, "openai/gpt-5-mini", "openai/o1-mini"), Config{})
	if !strings.Contains(strings.Join(e.Warnings, "\n"), "openai/o1-mini is retired") {
		t.Errorf("%v", e.Warnings)
	}
}

// TestEstimateUntil: the estimate goes from the fewest to the most episodes.
func TestEstimateUntil(t *testing.T) {
	t.Parallel()
	e := estimated(t, worlds.Standard(), `kind: secrets
agents: {a: sim/small}
plan: {until: {score: points, seat: first, width: 0.1, min: 20, max: 100, step: 40}}
`, Config{Latency: time.Second})
	if e.Episodes.Low != 20 || e.Episodes.High != 100 || e.Calls.Total != (statmath.Interval{Low: 120, High: 600}) {
		t.Errorf("%+v, calls %v", e.Episodes, e.Calls.Total)
	}
	// Six turns in a row, in one stage or in three.
	if s := e.Time.Seconds; s.Low != 6 || s.High < 18 || s.High > 30 || e.Time.Bound != "turns in a row" {
		t.Errorf("%+v", e.Time)
	}
}

// TestEstimateTime estimates a plan of 600 calls with one limit at a time.
func TestEstimateTime(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it computes: there is nothing for the race detector")
	}
	for limit, want := range map[string]struct {
		bound     string
		low, high float64
	}{
		"rpm: 100":       {"rpm of lab", 360, 390},
		"concurrency: 4": {"concurrency of lab", 750, 780},
		"tpm: 60":        {"tpm of lab", 600 * 1000, 600*1000 + 30}, // max_tokens is charged
		"rpm: 100000":    {"turns in a row", 30, 60},
	} {
		e := estimated(t, worlds.Standard(), `kind: secrets
episodes: 100
agents: {a: {model: lab/x, max_tokens: 1000}}
providers: {lab: {dialect: openai, base_url: "http://127.0.0.1:1/v1", limits: {`+limit+`}}}
`, Config{})
		if s := e.Time.Seconds; e.Time.Bound != want.bound || math.Abs(s.Low-want.low) > 0.5 || s.High < want.low || s.High > want.high+0.5 || len(e.Time.Assumes) > 0 {
			t.Errorf("%s: %+v, want %+v", limit, e.Time, want)
		}
	}
}

// TestEstimateWaits estimates a plan of 600 calls with a budget: no more calls are in flight than it has room for. A server that is not
// known to stop at max_tokens may answer with all of the context.
func TestEstimateWaits(t *testing.T) {
	t.Parallel()
	prices, err := price.Read(strings.NewReader(`{"as_of": "2026-11-15", "models": {"lab/x": {"input": 0, "output": 10}, "lab/short": {"input": 0, "output": 10, "context": 1000}, "groq/x": {"input": 0, "output": 10}}}`), "prices.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		model, budget string
		room          Room
		low, high     float64
	}{
		"one on trust":  {"lab/x", "1", Room{"lab/x", 1, llm.Dollars(1.28), true}, 30, 3030},
		"two and one":   {"lab/x", "3", Room{"lab/x", 3, llm.Dollars(1.28), true}, 30, 1030},
		"known context": {"lab/short", "3", Room{"lab/short", 300, llm.Dollars(0.01), true}, 30, 40},
		"known server":  {"groq/x", "0.01", Room{"groq/x", 10, llm.Dollars(0.001), false}, 300, 330},
	} {
		c := Config{Prices: prices}
		e := estimated(t, worlds.Standard(), `kind: secrets
episodes: 100
agents: {a: {model: `+want.model+`, max_tokens: 100}}
providers: {lab: {dialect: openai, base_url: "http://10.0.0.1:1/v1", limits: {rpm: 100000}}, groq: {limits: {rpm: 100000}}}
budget: `+want.budget+"\n", c)
		if s := e.Time.Seconds; math.Abs(s.Low-want.low) > 0.5 || math.Abs(s.High-want.high) > 0.5 || len(e.Budget.Rooms) != 1 || e.Budget.Rooms[0] != want.room {
			t.Errorf("%s: %+v, %+v, want %+v", name, e.Time, e.Budget.Rooms, want)
		}
	}
}

// TestEstimateForks counts turns in a row through strands.
func TestEstimateForks(t *testing.T) {
	t.Parallel()
	ask := world.Call{Seat: "one", Label: "x", Ask: llm.Request{Messages: []llm.Message{llm.User("what?")}}}
	kind := testKind(func(t *world.Table) world.Outcome {
		t.One(ask)
		t.Fork(3, func(i int, t *world.Table) {
			for range i { // 0, 1 and 2 turns
				t.One(ask)
			}
			t.Fork(2, func(j int, t *world.Table) {
				for range 2 * j { // and 2 more
					t.One(ask)
				}
			})
		})
		t.Ask(ask, ask) // one turn of two calls
		return world.Outcome{}
	})
	e := estimated(t, []world.Kind{kind}, "kind: test\nagents: {a: sim/small}\n", Config{})
	if e.Time.TurnsMax != 1+2+2+1 || e.Time.Turns != 6 || e.Calls.Total.High != 1+3+6+2 {
		t.Errorf("%+v, %v calls", e.Time, e.Calls.Total)
	}
	if e.Episodes.Played != minSample {
		t.Errorf("%d played: a single episode is too few", e.Episodes.Played)
	}
}

// TestEstimateOddities plays worlds that fail, act, or ask no model.
func TestEstimateOddities(t *testing.T) {
	t.Parallel()
	const plan = "kind: test\nepisodes: 10\nagents: {a: sim/small}\n"
	for _, c := range []struct {
		name string
		play world.Func
		want string
	}{
		{"a panic", func(*world.Table) world.Outcome { panic("oops") }, "an episode failed on the simulated provider: panic: oops"},
		{"an act", func(t *world.Table) world.Outcome {
			t.One(world.Call{Seat: "one", Act: &world.Act{Name: "step"}})
			return world.Outcome{}
		}, ": 10 acts failed"},
		{"nothing", func(*world.Table) world.Outcome { return world.Outcome{} }, ""},
	} {
		e := estimated(t, []world.Kind{testKind(c.play)}, plan, Config{})
		if !strings.Contains(strings.Join(e.Warnings, "\n"), c.want) || len(e.Models) != 0 || e.Time.Seconds.High != 0 || e.Cost.Total.High != 0 {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
}

// TestEstimatePeople: an estimate counts only what models answer, and says so.
func TestEstimatePeople(t *testing.T) {
	t.Parallel()
	two := simple(func(t *world.Table) world.Outcome {
		t.Ask(world.Call{Seat: "one"}, world.Call{Seat: "two"})
		return world.Outcome{}
	})
	two.Sits = []string{"one", "two"}
	e := estimated(t, []world.Kind{world.Define(two)}, "kind: test\nepisodes: 10\nagents: {a: sim/small, me: human}\nlineup: {one: a, two: me}\n", Config{})
	if got := strings.Join(e.Warnings, "\n"); len(e.Models) != 1 || e.Models[0].Calls.Total.High != 10 || !strings.Contains(got, "the answers of people are not in these numbers") {
		t.Errorf("calls %+v, warnings %s", e.Models, got)
	}
}

func TestEstimateStops(t *testing.T) {
	t.Parallel()
	p, err := planfile.Parse("plan.yaml", []byte("kind: secrets\nepisodes: 10\nagents: {a: sim/small}\n"), worlds.Standard(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if e, err := (Config{Plan: p}).Run(ctx); err == nil {
		t.Errorf("%+v", e)
	}
}

func TestLimitsOf(t *testing.T) {
	t.Parallel()
	p := provider.Provider{Name: "lab", Limits: provider.Limits{RPM: 1}, ModelLimits: map[string]provider.Limits{"gpt-*": {RPM: 2}, "gpt-5*": {RPM: 3}}}
	for model, want := range map[string]string{"lab/x": "lab", "lab/gpt-4": "lab/gpt-*", "lab/gpt-4/tuned": "lab/gpt-*", "lab/gpt-5-mini": "lab/gpt-5*"} {
		if got, _ := limitsOf(p, model); got != want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
}

func testKind(play world.Func) world.Kind { return world.Define(simple(play)) }

func simple(play world.Func) worldtest.Simple[struct{}] {
	return worldtest.Simple[struct{}]{
		Kind: world.About{Name: "test", Version: 1, Doc: "A test."}, Sits: []string{"one"},
		Play: func(_ *struct{}, t *world.Table) world.Outcome { return play(t) },
	}
}

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
		played := playWhole(t, plan)
		n, calls := e.Episodes, e.Calls.Total
		if played.Episodes < n.Low || played.Episodes > n.High || float64(played.Made.Calls) < calls.Low || float64(played.Made.Calls) > calls.High {
			t.Errorf("%q: %d episodes and %d calls are not in %+v and %v", more, played.Episodes, played.Made.Calls, n, calls)
		}
	}
}

// playWhole plays all of a plan on the simulated provider.
func playWhole(t *testing.T, plan *planfile.Plan) engine.Result {
	t.Helper()
	model, err := sim.New(sim.Config{StandIns: sim.StandIns(plan.Kind)})
	if err != nil {
		t.Fatal(err)
	}
	models, err := dispatch.New(dispatch.Config{Open: func(name string) (dispatch.Lane, error) {
		return dispatch.Lane{Provider: provider.Provider{Name: name, Dialect: "sim"}, Model: model}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	asked, err := plan.World()
	if err != nil {
		t.Fatal(err)
	}
	played, err := Actors(nil).play(t.Context(), &engine.Config{Journal: &journal.Memory{}, Plan: asked, Models: models}, "whole", plan)
	if err != nil {
		t.Fatal(err)
	}
	return played
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

func (threefold) Plan(_ *struct{}, cell world.Spec, _ uint64) (world.Stages, error) {
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
	asks := func(table *world.Table) world.Outcome {
		table.One(world.Call{Seat: "a", Label: "x", Ask: llm.Request{Messages: []llm.Message{llm.User("hi")}, MaxTokens: 10}})
		return world.Outcome{}
	}
	like := []world.Spec{{Kind: "test", Params: json.RawMessage("{}"), Lineup: map[string]string{"a": "a"}}}
	kind = world.Define(threefold{simple(asks), []world.Part{{Name: "pieces", Like: like, Times: 2.5, Low: 4, High: 4}}})
	if e := estimated(t, []world.Kind{kind}, plan, Config{}); e.Calls.Total.Low != 10 || e.Calls.Total.High != 10 || e.OutputMax.Total.High != 100 {
		t.Errorf("4 episodes of 2.5 times a call: %+v, %+v", e.Calls, e.OutputMax)
	}
	p.Episodes = 2_000_000_000
	if _, err := (Config{Plan: p}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 1000000 plans of its kind's own") {
		t.Error(err)
	}
}

// TestEstimateEpisodeBudget: a check warns if the budget would stop episodes.
func TestEstimateEpisodeBudget(t *testing.T) {
	t.Parallel()
	for budget, want := range map[string]string{"0.0001": "so episodes would end there", "0.008": "would stop some", "5": ""} {
		plan, err := planfile.Load(t.Context(), filepath.Join("..", "..", "..", "examples", "scenario", "plan.yaml"), worlds.Standard(),
			[]string{"episodes=3", "params.turns=3", "agents.policy.max_tokens=400", "agents.clerk.max_tokens=200", "episode_budget=" + budget}, planfile.Reach{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Config{Plan: plan, Episodes: 2}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(e.Warnings, "\n")
		if !strings.Contains(got, want) || want == "" && strings.Contains(got, "episode_budget") {
			t.Errorf("%s: want %q in\n%s", budget, want, got)
		}
	}
}
