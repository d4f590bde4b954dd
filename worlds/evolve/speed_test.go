package evolve_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/ask/sim"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/llm"
	"parley/worlds/evolve"
)

// server makes a model as slow as a server, and as limited.
type server struct {
	llm.Model
	delay sim.Delay
	quota *sim.Quota
	asked atomic.Uint64
}

func (s *server) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	start := time.Now()
	if refused := s.quota.Admit(start, sim.Cost{}); refused != nil {
		return nil, &llm.Error{Kind: llm.KindRateLimited, Status: http.StatusTooManyRequests, RetryAfter: refused.After, Rate: s.quota.Rate(start)}
	}
	if !sim.Wait(ctx, s.delay.Draw(s.asked.Add(1))) {
		return nil, llm.ContextError(ctx)
	}
	resp, err := s.Model.Ask(ctx, req)
	if err == nil {
		resp.Metadata.Latency, resp.Rate = time.Since(start), s.quota.Rate(time.Now())
	}
	return resp, err
}

// timed plays a plan through every layer of dispatch to a simulated provider with a latency. It returns what was recorded, and when it
// began. Call it within synctest, where computing takes no time: all time beyond the ideal is then lost by the program itself.
func timed(t *testing.T, plan *planfile.Plan, latency string, theirs sim.Limits, ours provider.Limits) (*journal.Memory, time.Time) {
	t.Helper()
	delay, err := sim.ParseDelay(latency)
	if err != nil {
		t.Fatal(err)
	}
	model, err := sim.New(sim.Config{StandIns: sim.StandIns(evolve.Kind())})
	if err != nil {
		t.Fatal(err)
	}
	slow := &server{Model: model, delay: delay, quota: sim.NewQuota(theirs, sim.OpenAI, time.Now())}
	models, err := dispatch.New(dispatch.Config{Open: func(name string) (dispatch.Lane, error) {
		return dispatch.Lane{Provider: provider.Provider{Name: name, Dialect: "sim", Limits: ours}, Model: slow}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	stages, err := plan.World()
	if err != nil {
		t.Fatal(err)
	}
	began, log := time.Now(), &journal.Memory{}
	res, err := engine.Run(t.Context(), engine.Config{
		Journal: log, Kind: plan.Kind, Plan: stages, Models: models, Settings: &settings.Settings{Limits: settings.Limits{Concurrency: ours.Concurrency}},
		Begun: journal.Begun{Version: journal.Version, Run: "test", Kind: plan.Kind.Name, KindVersion: plan.Kind.Version, Seed: plan.Seed, Agents: plan.Agents, Plan: plan.JSON()},
	})
	if err != nil || res.State != journal.Complete {
		t.Fatal(res, err)
	}
	return log, began
}

// firstGeneration returns when, after the start, each call of the first generation was answered, if a call takes a second.
func firstGeneration(t *testing.T, plan *planfile.Plan, theirs sim.Limits, ours provider.Limits) []time.Duration {
	t.Helper()
	log, began := timed(t, plan, "1s", theirs, ours)
	last := 0 // episode of the generation
	var at []time.Duration
	err := log.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		switch e := e.(type) {
		case *journal.Staged:
			if strings.HasPrefix(e.Specs.At(0).Cell, "generation 0") {
				last = e.First + e.Specs.Len()
			}
		case *journal.Replied:
			if e.Episode < last {
				at = append(at, e.At.Sub(began))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// one returns a plan of one generation of 50 prompts, without a race and with a minimal test.
func one(t *testing.T, train string) *planfile.Plan {
	t.Helper()
	if testing.Short() {
		t.Skip("thousands of calls take long under the race detector")
	}
	return load(t, "evolve.yaml", "params.population_size=50", "params.max_generations=0", "params.race.minibatch=0",
		"params.problems.train="+train, "params.problems.validation=0", "params.problems.test=2", "params.baselines={seeds: 0, texts: []}")
}

// TestGenerationIsFast checks that 50 prompts on 100 problems, which are 5,000 calls of a second, take about 10 seconds
// with 500 in flight.
func TestGenerationIsFast(t *testing.T) {
	t.Parallel()
	plan := one(t, "100")
	synctest.Test(t, func(t *testing.T) {
		at := firstGeneration(t, plan, sim.Limits{}, provider.Limits{Concurrency: 500})
		took := at[len(at)-1]
		t.Logf("%d calls of 1 s, 500 at once: %v", len(at), took)
		if len(at) != 5000 || took > 11*time.Second {
			t.Errorf("%d calls take %v, want 10 s and at most a tenth more", len(at), took)
		}
	})
}

// TestGenerationUsesItsLimit checks that a generation uses 98% of the 3,500 requests a minute that the provider allows,
// after the initial burst.
func TestGenerationUsesItsLimit(t *testing.T) {
	t.Parallel()
	plan := one(t, "250")
	synctest.Test(t, func(t *testing.T) {
		const perMinute = 3500
		at := firstGeneration(t, plan, sim.Limits{RPM: perMinute}, provider.Limits{RPM: perMinute})
		inMinute := 0
		for _, d := range at {
			if d > time.Minute && d <= 2*time.Minute {
				inMinute++
			}
		}
		t.Logf("%d calls take %v; %d in the second minute, of %d", len(at), at[len(at)-1], inMinute, perMinute)
		if len(at) != 12500 || inMinute < perMinute*98/100 || inMinute > perMinute+2 { // one more at each end of the minute
			t.Errorf("%d of %d calls in the second minute", inMinute, perMinute)
		}
	})
}

// TestWaiting shows how much longer a search takes than its calls would if nothing waited for anything: a round of a race waits for its
// slowest call. The first round of children that need no breeder is played while the breeder writes the others.
func TestWaiting(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("thousands of calls take long under the race detector")
	}
	plan := load(t, "evolve-reflect.yaml", "params.max_generations=8", "params.convergence_patience=0", "params.problems.test=2", "params.problems.validation=0", "params.baselines={seeds: 0, texts: []}")
	for _, calls := range []int{4, 16, 64, 256} {
		synctest.Test(t, func(t *testing.T) {
			log, began := timed(t, plan, "lognormal:726ms,0.8", sim.Limits{}, provider.Limits{Concurrency: calls}) // a second on average
			stages, first, together := []string{}, []int{}, 0
			ended, busy := map[int]time.Time{}, map[int]time.Duration{}
			err := log.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
				switch e := e.(type) {
				case *journal.Staged:
					stages, first = append(stages, e.Specs.At(0).Cell), append(first, e.First)
					if last := e.Specs.At(e.Specs.Len() - 1).Cell; stages[len(stages)-1] == "breeding" && strings.HasPrefix(last, "generation") {
						together++
					}
				case *journal.Replied:
					n := len(first) - 1
					ended[n], busy[n] = e.At, busy[n]+e.Response.Metadata.Latency
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var took, all time.Duration
			for n, at := 0, began; n < len(stages) && !strings.HasPrefix(stages[n], "test"); n++ {
				took, all, at = took+ended[n].Sub(at), all+busy[n], ended[n]
			}
			ideal := all / time.Duration(calls)
			t.Logf("%d calls in flight: %d stages take %.0f s, and without any waiting %.0f s: %.2f times as long", calls, len(stages), took.Seconds(), ideal.Seconds(), took.Seconds()/ideal.Seconds())
			if together == 0 || took < ideal {
				t.Errorf("%d stages have breedings and trials; %v for %v of calls", together, took, all)
			}
		})
	}
}
