package estimate

import (
	"cmp"
	"context"
	"encoding/binary"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Bench plays a plan several ways on the simulated provider and measures how long each
// takes, compared with the shortest possible time.
type Bench struct {
	Plan *planfile.Plan
	// Latency is how long calls take. A call takes the same time in every way of playing.
	Latency sim.Delay
	// Calls limits the calls in flight. Default: 64.
	Calls int
	// OneByOne is how many episodes of the first stage are played one call at a time. To play
	// the whole plan that way, set it to the number of its episodes: that takes the sum of all
	// latencies. Default: 4.
	OneByOne int
	// Actors carries out the acts of episodes. Default: every act fails.
	Actors Actors
}

// BenchResult is the result of a Bench.
type BenchResult struct {
	Episodes    int     `json:"episodes"`
	Calls       int     `json:"calls"`
	Latency     string  `json:"latency"`
	MeanLatency float64 `json:"mean_latency_s"`
	Concurrency int     `json:"concurrency"`
	// Serial is how long all calls take one after the other.
	Serial float64    `json:"serial_s"`
	Ways   []BenchWay `json:"ways"`
	// Same reports whether every way that played all episodes had the same outcomes.
	Same   bool   `json:"same"`
	Digest string `json:"digest"`
}

// BenchWay is one way of playing.
type BenchWay struct {
	Name     string `json:"name"`
	Episodes int    `json:"episodes"`
	Calls    int    `json:"calls"`
	// Wall is how long it took. Ideal is the shortest possible time with these latencies and
	// this limit of calls in flight.
	Wall   float64 `json:"wall_s"`
	Ideal  float64 `json:"ideal_s"`
	Ratio  float64 `json:"ratio"`
	Waves  int     `json:"waves,omitempty"`
	Digest string  `json:"digest"`
}

// Run plays the plan in every way.
func (b Bench) Run(ctx context.Context) (*BenchResult, error) {
	b.Calls, b.OneByOne = cmp.Or(max(0, b.Calls), 64), cmp.Or(max(0, b.OneByOne), 4)
	free, all, err := b.way(ctx, "free pace", 0, b.Calls, false)
	if err != nil {
		return nil, err
	}
	wave, _, err := b.way(ctx, "waves", 0, b.Calls, true)
	if err != nil {
		return nil, err
	}
	n := b.OneByOne
	if n >= free.Episodes {
		n = 0 // all
	}
	few, _, err := b.way(ctx, "one by one", n, 1, false)
	if err != nil {
		return nil, err
	}
	res := &BenchResult{
		Episodes: free.Episodes, Calls: free.Calls, Latency: b.Latency.String(), Concurrency: b.Calls,
		Serial: all.serial().Seconds(), Ways: []BenchWay{*few, *free, *wave},
		Same: free.Digest == wave.Digest && (n > 0 || few.Digest == free.Digest), Digest: free.Digest,
	}
	if free.Calls > 0 {
		res.MeanLatency = res.Serial / float64(free.Calls)
	}
	return res, nil
}

// way plays the plan, or its first episodes, in one way.
func (b Bench) way(ctx context.Context, name string, episodes, calls int, wave bool) (*BenchWay, stages, error) {
	model, err := sim.New(sim.Config{StandIns: sim.StandIns(b.Plan.Kind)})
	if err != nil {
		return nil, nil, err
	}
	models, err := dispatch.New(dispatch.Config{Open: func(name string) (dispatch.Lane, error) {
		p := provider.Provider{Name: name, Dialect: "sim", Limits: provider.Limits{Concurrency: calls}}
		return dispatch.Lane{Provider: p, Model: slow{model, b.Latency}}, nil
	}})
	if err != nil {
		return nil, nil, err
	}
	plan, err := b.Plan.World()
	if err != nil {
		return nil, nil, err
	}
	if episodes > 0 {
		plan = first(plan, episodes)
	}
	memory := &journal.Memory{}
	c := engine.Config{Journal: memory, Plan: plan, Models: models, Calls: calls, Wave: wave}
	res, err := b.Actors.play(ctx, &c, "bench", b.Plan)
	if err != nil {
		return nil, nil, err
	}
	table, err := stagesPlayed(ctx, memory)
	if err != nil {
		return nil, nil, err
	}
	w := &BenchWay{Name: name, Episodes: res.Episodes, Calls: res.Asked, Wall: res.Wall.Seconds(), Digest: res.Digest}
	ideal, waves := table.ideal(calls, wave)
	w.Ideal, w.Waves = ideal.Seconds(), waves
	if w.Ideal > 0 {
		w.Ratio = w.Wall / w.Ideal
	}
	return w, table, nil
}

// first reduces a plan to the first episodes of its first stage.
func first(plan world.Plan, episodes int) world.Plan {
	var specs []world.Spec
	for i, s := range plan.Next(nil).All() {
		if i >= episodes {
			break
		}
		specs = append(specs, s)
	}
	return world.List(specs...)
}

// slow is a model that waits before it answers, the same time for the same request.
type slow struct {
	llm.Model
	latency sim.Delay
}

// Ask waits, then asks. It reports the intended latency, not the measured one.
func (s slow) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	digest := req.Digest()
	wait := s.latency.Draw(binary.BigEndian.Uint64(digest[:]))
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, llm.ContextError(ctx)
	}
	resp, err := s.Model.Ask(ctx, req)
	if resp != nil {
		resp.Metadata.Latency = wait
	}
	return resp, err
}
