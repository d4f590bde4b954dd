package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/run/control"
	"parley/journal"
	"parley/llm"
	"parley/worlds"
)

const steeredPlan = `kind: secrets
seed: 5
episodes: 60
providers:
  openai: {dialect: go, limits: {concurrency: 8}}
agents:
  small: {model: openai/gpt-4o-mini, max_tokens: 120}
  large: {model: openai/gpt-4o, max_tokens: 120}
lineup: {first: small, second: large}
params: {messages: 2}
limits: {concurrency: 100, live: 20}
`

// slowModel answers as the simulated provider does, after a second, and counts what it is sent. It refuses every
// seventh call once.
type slowModel struct {
	llm.Model
	mu       sync.Mutex
	sent     int
	refuse   bool
	inFlight map[*llm.Request]bool
}

func newSlowModel(t *testing.T) *slowModel {
	t.Helper()
	m, err := sim.New(sim.Config{StandIns: sim.StandIns(worlds.Standard()...)})
	if err != nil {
		t.Fatal(err)
	}
	return &slowModel{Model: m, inFlight: map[*llm.Request]bool{}}
}

func (m *slowModel) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	m.mu.Lock()
	m.sent++
	refused := m.refuse && m.sent%7 == 0
	m.inFlight[req] = true
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.inFlight, req)
	}()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		e := *llm.ContextError(ctx)
		e.Uncertain = true
		return nil, &e
	}
	if refused {
		return nil, &llm.Error{Kind: llm.KindRateLimited, Message: "slow down", RetryAfter: 3 * time.Second}
	}
	return m.Model.Ask(ctx, req)
}

// state returns how many calls were sent, and those in flight.
func (m *slowModel) state() (sent int, inFlight []*llm.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for req := range m.inFlight {
		inFlight = append(inFlight, req)
	}
	return m.sent, inFlight
}

// steeredRun is a run that a test steers while it is played.
type steeredRun struct {
	*testing.T
	*control.Steering
	model *slowModel
	app   *App
	j     *journal.Memory
}

// do steers the run.
func (r *steeredRun) do(verb journal.SteerVerb, sets ...string) {
	r.Helper()
	if _, err := r.Do(verb, "a test", sets); err != nil {
		r.Errorf("%s %v: %v", verb, sets, err)
	}
}

// lowest returns a setting: the budget, or the lowest that is accepted. It checks that a lower one is refused.
func (r *steeredRun) lowest(dollars float64) string {
	r.Helper()
	synctest.Wait()
	spent, reserved := r.app.Budget().Spent()
	least := spent.Plus(reserved)
	if _, err := r.Do(journal.SteerSet, "a test", []string{fmt.Sprintf("budget=%.9f", (least - 1).Dollars())}); err == nil || !strings.Contains(err.Error(), "cannot be lower than") {
		r.Errorf("less than what is spent and reserved: %v", err)
	}
	return fmt.Sprintf("budget=%.9f", max(dollars, least.Dollars()))
}

// playSteered plays the plan into j, and calls f meanwhile.
func playSteered(t *testing.T, j *journal.Memory, model *slowModel, f func(*steeredRun), sets ...string) *Summary {
	t.Helper()
	opened := make(chan *Opened, 1)
	p := Play{Kinds: worlds.Standard(), Plan: parsed(t, steeredPlan, sets...), Journal: j, Config: Config{Models: map[string]llm.Model{"openai": model}}, Events: whenOpened(func(o *Opened) { opened <- o })}
	var wg sync.WaitGroup
	wg.Go(func() {
		o := <-opened
		if o.Steering != nil && f != nil {
			f(&steeredRun{t, o.Steering, model, o.App, j})
		}
	})
	defer wg.Wait()
	return played(t, p)
}

// TestPauseBeforePlay: a run that is paused before play begins sends no call until it is resumed.
func TestPauseBeforePlay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model, j := newSlowModel(t), &journal.Memory{}
		opened := make(chan *Opened, 1)
		p := Play{Kinds: worlds.Standard(), Plan: parsed(t, steeredPlan), Journal: j, Config: Config{Models: map[string]llm.Model{"openai": model}}, Events: whenOpened(func(o *Opened) {
			if _, err := o.Steering.Do(journal.SteerPause, "a test", nil); err != nil {
				t.Error(err)
			}
			opened <- o
		})}
		var wg sync.WaitGroup
		wg.Go(func() {
			o := <-opened
			time.Sleep(time.Hour)
			if sent, _ := model.state(); sent > 0 || o.Steering.State().Paused == nil {
				t.Errorf("%d calls were sent", sent)
			}
			(&steeredRun{t, o.Steering, model, o.App, j}).do(journal.SteerResume)
		})
		defer wg.Wait()
		if sum := played(t, p); sum.Episodes.Complete != 60 {
			t.Errorf("%+v", sum.Episodes)
		}
	})
}

// TestPauseSendsNothing: while a run is paused, no call is sent, and those in flight are recorded. However long it
// takes, no call fails for it, and none is sent twice.
func TestPauseSendsNothing(t *testing.T) {
	t.Parallel()
	for _, pace := range []string{"free", "wave"} {
		t.Run(pace, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				quiet := newSlowModel(t)
				want := playSteered(t, &journal.Memory{}, quiet, nil, "pace="+pace)
				for _, refuse := range []bool{false, true} {
					model := newSlowModel(t)
					model.refuse = refuse
					sum := playSteered(t, &journal.Memory{}, model, func(r *steeredRun) {
						time.Sleep(4500 * time.Millisecond)
						r.do(journal.SteerPause)
						r.do(journal.SteerPause) // again changes nothing
						sent, inFlight := model.state()
						time.Sleep(30 * time.Hour)
						later, still := model.state()
						head, _ := r.j.Head(t.Context()) // Memory never fails
						if later != sent || len(still) > 0 || !refuse && (len(inFlight) == 0 || head.Calls != sent) {
							t.Errorf("%d calls sent before the pause, %d in flight, %d recorded; %d sent later", sent, len(inFlight), head.Calls, later)
						}
						r.do(journal.SteerResume)
						time.Sleep(2 * time.Second)
						if now, _ := model.state(); now == sent {
							t.Error("nothing is sent after the pause")
						}
					}, "pace="+pace)
					if sum.Digest != want.Digest || sum.Calls.Failed > 0 || *sum.Cost != *want.Cost {
						t.Errorf("%s, %d failed, %v; want %s, %v", sum.Digest, sum.Calls.Failed, *sum.Cost, want.Digest, *want.Cost)
					}
					if a, b := model.sent, quiet.sent; !refuse && a != b {
						t.Errorf("%d calls were sent, and %d without a pause", a, b)
					}
				}
			})
		})
	}
}

// TestDrainBySteering: episodes that have begun are played to their end, and no more begin.
func TestDrainBySteering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := playSteered(t, &journal.Memory{}, newSlowModel(t), nil)
		j := &journal.Memory{}
		sum := playSteered(t, j, newSlowModel(t), func(r *steeredRun) {
			time.Sleep(2500 * time.Millisecond)
			r.do(journal.SteerDrain)
		})
		head, _ := j.Head(t.Context()) // Memory never fails
		if sum.State != journal.Stopped || sum.Reason != (journal.Reason{Kind: journal.ByUser, Detail: "drained by a test"}) || len(head.Playing) > 0 || head.Ended.Len() == 0 || head.Ended.Len() == 60 {
			t.Errorf("%s, %v; %d play, %d ended", sum.State, sum.Reason, len(head.Playing), head.Ended.Len())
		}
		if len(head.Steered) != 1 || head.Steered[0].Verb != journal.SteerDrain {
			t.Errorf("recorded: %+v", head.Steered)
		}
		if sum := playSteered(t, j, newSlowModel(t), nil); sum.State != journal.Complete || sum.Digest != want.Digest {
			t.Errorf("resumed: %s, %s; want %s", sum.State, sum.Digest, want.Digest)
		}
	})
}

// TestStateWaitsForNothing: whoever watches a run may ask how it is steered, also while a change is being recorded.
func TestStateWaitsForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var steered *control.Steering
		var wg sync.WaitGroup
		sum := played(t, Play{
			Kinds: worlds.Standard(), Plan: parsed(t, steeredPlan), Journal: &journal.Memory{}, Config: Config{Models: map[string]llm.Model{"openai": newSlowModel(t)}},
			Events: func(e Event) {
				if e.Opened != nil {
					steered = e.Opened.Steering
					wg.Go(func() {
						for range 8 {
							time.Sleep(time.Second) // when calls end
							for _, verb := range []journal.SteerVerb{journal.SteerPause, journal.SteerResume} {
								if _, err := steered.Do(verb, "a test", nil); err != nil {
									t.Error(err)
								}
							}
						}
					})
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					steered.State()
				}()
				<-done
			},
		})
		wg.Wait()
		if sum.State != journal.Complete {
			t.Error(sum.State)
		}
	})
}

// TestUntil: no episode begins from a number on until that is raised, and the outcomes are the same.
func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := playSteered(t, &journal.Memory{}, newSlowModel(t), nil)
		j, bounds := &journal.Memory{}, []int{1, 7, 60}
		var wg sync.WaitGroup
		sum := played(t, Play{
			Kinds: worlds.Standard(), Plan: parsed(t, steeredPlan), Journal: j, Config: Config{Models: map[string]llm.Model{"openai": newSlowModel(t)}},
			Events: whenOpened(func(o *Opened) {
				o.Steering.Until(bounds[0]) // before play begins
				wg.Go(func() {
					for _, n := range bounds {
						o.Steering.Until(n)
						time.Sleep(time.Hour)
						head, _ := j.Head(t.Context()) // Memory never fails
						if head.Ended.Len() != n || len(head.Playing) > 0 {
							t.Errorf("until %d: %d ended, %d play", n, head.Ended.Len(), len(head.Playing))
						}
					}
				})
			}),
		})
		wg.Wait()
		if sum.State != journal.Complete || sum.Digest != want.Digest {
			t.Errorf("%s, %s; want %s", sum.State, sum.Digest, want.Digest)
		}
	})
}

// TestSetBudgetUnderLoad introduces, raises and lowers the budget while calls are in flight and others wait with money set
// aside: nothing is spent beyond it but by calls that were in flight, and every cent is recorded.
func TestSetBudgetUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		whole := playSteered(t, &journal.Memory{}, newSlowModel(t), nil)
		budget := func(share float64) string { return fmt.Sprintf("budget=%.9f", share*whole.Cost.Dollars()) }
		for _, c := range []struct {
			name  string
			first float64   // of what the whole run costs, as the others; 0: none
			then  []float64 // 0: the lowest that is accepted
			ends  journal.State
		}{
			{"raised", .7, []float64{3}, journal.Complete},
			{"lowered a little while it is paused", 1000, []float64{.5}, journal.Stopped},
			{"lowered while it is paused", 1000, []float64{0}, journal.Stopped},
			{"lowered and raised", 3, []float64{.5, 3, .6, 4}, journal.Complete},
			{"introduced", 0, []float64{3}, journal.Complete},
			{"introduced, too low", 0, []float64{.5}, journal.Stopped},
			{"introduced, all is spent", 0, []float64{0}, journal.Stopped},
			{"introduced, lowered and raised", 0, []float64{2, .6, 3}, journal.Complete},
		} {
			j, model := &journal.Memory{}, newSlowModel(t)
			var sets []string
			if c.first > 0 {
				sets = []string{budget(c.first)}
			}
			limit, spent, atRisk, sent := llm.Money(0), llm.Money(0), llm.Money(0), 0
			sum := playSteered(t, j, model, func(r *steeredRun) {
				for _, share := range c.then {
					time.Sleep(3500 * time.Millisecond)
					if strings.Contains(c.name, "paused") {
						r.do(journal.SteerPause)
						time.Sleep(2 * time.Second)
						defer r.do(journal.SteerResume)
					}
					r.do(journal.SteerSet, r.lowest(share*whole.Cost.Dollars()))
					n, inFlight := model.state()
					sent, limit = n, r.State().Budget
					spent, _ = r.app.Budget().Spent()
					atRisk = spent
					for _, req := range inFlight {
						worst, err := r.app.Worst(req)
						if err != nil {
							t.Error(err)
						}
						atRisk += worst
					}
				}
			}, sets...)
			head, _ := j.Head(t.Context()) // Memory never fails
			set := slices.DeleteFunc(slices.Clone(head.Steered), func(s journal.Steered) bool { return s.Verb != journal.SteerSet })
			if sum.Budget != limit {
				t.Errorf("%s: the summary has the budget %v, want %v", c.name, sum.Budget, limit)
			}
			if sum.State != c.ends || head.Spent != *sum.Cost || *sum.Cost > max(limit, atRisk) || len(set) != len(c.then) {
				t.Errorf("%s: %v spent, %v recorded, of %v or at most %v; steered %+v; %s", c.name, *sum.Cost, head.Spent, limit, atRisk, head.Steered, sum.State)
			}
			if now, _ := model.state(); spent >= limit && now != sent {
				t.Errorf("%s: %d calls were sent after that", c.name, now-sent)
			}
			if sum.State == journal.Complete && sum.Digest != whole.Digest {
				t.Errorf("%s: another digest", c.name)
			}
			if sum.State == journal.Stopped && sum.Reason.Kind != journal.ByBudget {
				t.Errorf("%s: %v", c.name, sum.Reason)
			}
			kept := parsed(t, string(head.Begun.Plan))
			again := playSteered(t, j, newSlowModel(t), nil, budget(5))
			if kept.Budget != limit || again.State != journal.Complete || again.Digest != whole.Digest || *again.Cost != *whole.Cost {
				t.Errorf("%s, resumed: %s, %v; want %v", c.name, again.State, *again.Cost, *whole.Cost)
			}
		}
	})
}

// TestPlanChangesWhatWasSet: a run that is resumed with a plan says what this changes of what was set.
func TestPlanChangesWhatWasSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journal.Memory{}
		playSteered(t, j, newSlowModel(t), func(r *steeredRun) {
			time.Sleep(time.Second)
			r.do(journal.SteerSet, "budget=90", "concurrency=3")
			r.do(journal.SteerStop)
		}, "budget=100")
		for _, c := range []struct {
			sets []string
			want string
		}{
			{[]string{"budget=90", "limits.concurrency=3"}, ""},
			{[]string{"budget=100"}, "budget $90.00 → $100.00, concurrency 3 → 100"},
		} {
			var texts []string
			played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, steeredPlan, c.sets...), Journal: j, Config: Config{Models: map[string]llm.Model{"openai": newSlowModel(t)}}, Events: func(e Event) {
				if n := e.Ask.Notice; n != nil {
					texts = append(texts, n.Text)
				}
			}})
			if text := strings.Join(texts, "\n"); strings.Contains(text, "parley ctl had set") != (c.want != "") || !strings.Contains(text, c.want) {
				t.Errorf("%v: %q, want %q", c.sets, text, c.want)
			}
		}
	})
}

// TestSetConcurrency: the number of calls in flight follows the setting, which later processes have too.
func TestSetConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := playSteered(t, &journal.Memory{}, newSlowModel(t), nil)
		j, model := &journal.Memory{}, newSlowModel(t)
		sum := playSteered(t, j, model, func(r *steeredRun) {
			for _, n := range []int{3, 7, 1, 20} {
				time.Sleep(time.Second)
				r.do(journal.SteerSet, fmt.Sprintf("concurrency=%d", n))
				time.Sleep(2500 * time.Millisecond)
				synctest.Wait()
				if _, inFlight := model.state(); len(inFlight) != min(n, 8) {
					t.Errorf("%d calls in flight, want %d", len(inFlight), min(n, 8))
				}
			}
			for _, bad := range []string{"concurrency=0", "concurrency=x", "budget=0", "budget=x", "seed=3", "concurrency"} {
				if _, err := r.Do(journal.SteerSet, "a test", []string{bad}); err == nil {
					t.Errorf("%s is accepted", bad)
				}
			}
		})
		head, _ := j.Head(t.Context()) // Memory never fails
		plan := parsed(t, string(head.Begun.Plan))
		if sum.Digest != want.Digest || plan.Limits.Concurrency != 20 || len(head.Steered) != 4 {
			t.Errorf("%s, want %s; recorded %d, %+v", sum.Digest, want.Digest, plan.Limits.Concurrency, head.Steered)
		}
	})
}

// TestCutSendsAgain: a cut ends the calls in flight at once, also if the run is paused already. Nothing of them is recorded
// until they are sent again, and then what they may have cost is.
func TestCutSendsAgain(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			quiet, model := newSlowModel(t), newSlowModel(t)
			want := playSteered(t, &journal.Memory{}, quiet, nil, "budget=20")
			cut := 0
			j := &journal.Memory{}
			sum := playSteered(t, j, model, func(r *steeredRun) {
				time.Sleep(4500 * time.Millisecond)
				if paused {
					r.do(journal.SteerPause)
				}
				sent, inFlight := model.state()
				cut = len(inFlight)
				if err := r.Cut("a test"); err != nil {
					t.Error(err)
				}
				synctest.Wait() // no time passes
				_, still := model.state()
				head, _ := j.Head(t.Context()) // Memory never fails
				if cut == 0 || len(still) > 0 || head.Calls != sent-cut {
					t.Errorf("%d in flight before the cut, %d after it, %d of %d recorded", cut, len(still), head.Calls, sent)
				}
				if err := r.Quiet(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(30 * time.Hour)
				if later, _ := model.state(); later != sent {
					t.Errorf("%d calls were sent while the run was paused", later-sent)
				}
				r.do(journal.SteerResume)
			}, "budget=20")
			if sum.Digest != want.Digest || sum.Calls.Failed > 0 || *sum.Cost <= *want.Cost || model.sent != quiet.sent+cut {
				t.Errorf("%s, %d failed, %v, %d sent, %d cut off; want %s, more than %v, %d sent", sum.Digest, sum.Calls.Failed, *sum.Cost, model.sent, cut, want.Digest, *want.Cost, quiet.sent)
			}
		})
	}
}

// TestCutThenStopped: what calls that were cut off may have cost is owed after a stop too, and the next process counts it.
func TestCutThenStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, opened := &journal.Memory{}, make(chan *Opened, 1)
		drain, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			o := <-opened
			time.Sleep(4500 * time.Millisecond)
			if err := errors.Join(o.Steering.Cut("a test"), o.Steering.Quiet(t.Context())); err != nil {
				t.Error(err)
			}
			stop()
		}()
		p := Play{Kinds: worlds.Standard(), Plan: parsed(t, steeredPlan, "budget=20"), Journal: j, Config: Config{Models: map[string]llm.Model{"openai": newSlowModel(t)}}, Events: whenOpened(func(o *Opened) { opened <- o })}
		if _, err := p.Run(t.Context(), drain); err != nil {
			t.Fatal(err)
		}
		head, _ := j.Head(t.Context()) // Memory never fails
		if head.Last.Lost == 0 || head.Owed == 0 {
			t.Errorf("%d calls are lost, %v is owed", head.Last.Lost, head.Owed)
		}
	})
}

// steeredWaves is a run over batch APIs that a test steers while it is played.
type steeredWaves struct {
	*testing.T
	*Opened
	server *simhttp.Server
	stop   context.CancelCauseFunc // as a signal does
}

func (r *steeredWaves) do(verb journal.SteerVerb, sets ...string) {
	r.Helper()
	if _, err := r.Steering.Do(verb, "a test", sets); err != nil {
		r.Errorf("%s %v: %v", verb, sets, err)
	}
}

// until waits until something is so.
func (r *steeredWaves) until(what string, is func() bool) {
	r.Helper()
	for !is() {
		select {
		case <-r.Context().Done():
			r.Error("the test ended before " + what)
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// out reports whether a batch is at a provider.
func (r *steeredWaves) out() bool {
	p := r.App.Batches()
	return len(p.Open) > 0 && p.Open[0].ID != ""
}

// pauseOften pauses and resumes the run many times while it is played.
func pauseOften(r *steeredWaves) {
	r.until("the run plays", func() bool { _, err := r.Steering.Do(journal.SteerResume, "a test", nil); return err == nil })
	for i := range 25 {
		for _, verb := range []journal.SteerVerb{journal.SteerPause, journal.SteerResume} {
			if _, err := r.Steering.Do(verb, "a test", nil); err != nil {
				if !strings.Contains(err.Error(), "the run has ended") || i == 0 {
					r.Error(err)
				}
				return
			}
			time.Sleep(time.Duration(i) * time.Millisecond)
		}
	}
}

// TestSteeredBatches steers a run while its batches are at the providers: whatever is done, they are kept and collected,
// every call is asked once, and the outcomes and the cost are those of a run that nobody steers.
func TestSteeredBatches(t *testing.T) {
	t.Parallel()
	small := []string{"episodes=40", "limits.live=20"}
	quietURL, quiet := batchServer(t)
	want := playWaves(t, Play{Kinds: worlds.Standard(), Plan: batchPlan(t, quietURL, small...)})
	latency, err := sim.ParseDelay("30ms")
	if err != nil {
		t.Fatal(err)
	}
	for name, with := range map[string]struct {
		steer func(*steeredWaves)
		ends  journal.State
		fault sim.Fault
	}{
		"paused and resumed": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerPause)
			before := r.server.Stats().Batches.Created
			r.until("it is collected", func() bool { return len(r.App.Batches().Open) == 0 })
			if n := r.server.Stats().Batches.Created; n != before {
				r.Errorf("%d batches were sent while the run was paused", n-before)
			}
			r.do(journal.SteerResume)
		}, journal.Complete, ""},
		"paused and resumed at once, often": {pauseOften, journal.Complete, ""},
		"paused and stopped": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerPause)
			r.do(journal.SteerStop)
			r.stop(errors.New("stopped by a test"))
		}, journal.Stopped, ""},
		"stopped": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerStop)
			r.stop(errors.New("stopped by a test"))
		}, journal.Stopped, ""},
		"drained": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerDrain)
		}, journal.Stopped, ""},
		"drained while it is paused": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerPause)
			r.do(journal.SteerDrain)
			r.until("it is collected", func() bool { return len(r.App.Batches().Open) == 0 })
			r.do(journal.SteerResume)
		}, journal.Stopped, ""},
		"given a budget": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerSet, "budget=5", "concurrency=40")
		}, journal.Complete, ""},
		"paused while lines fail":       {pauseOften, journal.Complete, "line_errored"},
		"paused while lines expire":     {pauseOften, journal.Complete, "line_expired"},
		"paused while batches fail":     {pauseOften, journal.Complete, "batch_fails"},
		"paused while they are refused": {pauseOften, journal.Complete, "batch_429"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := func(c *simhttp.Config) {
				if c.Batch.Latency = latency; with.fault != "" {
					c.Sim.Faults, c.Batch.RetryAfter = sim.Faults{with.fault: 0.2}, time.Nanosecond
				}
			}
			url, server := batchServer(t, slow)
			drain, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			var wg sync.WaitGroup
			p := Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url, small...), File: filepath.Join(t.TempDir(), "run.parley"), Events: whenOpened(func(o *Opened) {
				wg.Go(func() { with.steer(&steeredWaves{t, o, server, stop}) })
			})}
			sum, err := p.Run(t.Context(), drain)
			wg.Wait()
			if err != nil || sum.State != with.ends {
				t.Fatalf("%+v, %v", sum, err)
			}
			p.Events = nil
			if sum.State != journal.Complete {
				sum = playWaves(t, p)
			}
			head := headOf(t, p.File)
			if len(head.Batches) > 0 {
				t.Errorf("batches %v are left open", head.Batches)
			}
			if sum.Digest != want.Digest || with.fault == "" && *sum.Cost != *want.Cost || sum.Calls.Failed > 0 {
				t.Errorf("%s, %v, %d calls failed; want %s, %v", sum.Digest, *sum.Cost, sum.Calls.Failed, want.Digest, *want.Cost)
			}
			asked := func(s *simhttp.Server) int {
				st := s.Stats()
				return int(st.Batches.Requests) + int(st.Endpoints["POST /v1/chat/completions"]) + int(st.Endpoints["POST /v1/messages"])
			}
			if a, b := asked(server), asked(quiet); with.fault == "" && a != b {
				t.Errorf("%d requests were asked, %d were needed; %+v", a, b, server.Stats().Batches)
			}
		})
	}
}
