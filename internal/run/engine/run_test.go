package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/settings"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// astray is a plan that fails after its first stage.
type astray struct {
	stages
	err error
}

func (a *astray) Next(last []world.Played) world.Specs {
	if len(last) > 0 {
		a.err = errAstray
		return world.Specs{}
	}
	return a.stages.Next(last)
}

func (a *astray) Err() error { return a.err }

var errAstray = errors.New("there is no such score")

// TestPlanThatGoesAstray: the run fails with the plan's error, what was played is kept, and
// resuming it costs nothing and returns the same error.
func TestPlanThatGoesAstray(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	for process, asks := range []bool{true, false} {
		c := config(&models{width: 3}, j, 3)
		c.Plan = &astray{stages: stages{3}}
		res, err := Run(t.Context(), c)
		if !errors.Is(err, errAstray) || res.State != journal.Failed || res.Reason != (journal.Reason{Kind: journal.ByError, Detail: errAstray.Error()}) || res.Ended != 3 || (res.Made.Calls > 0) != asks {
			t.Errorf("process %d: %+v, %v", process, res, err)
		}
	}
}

// TestTooManyEpisodes: a stage that is longer than a run can be is refused before anything is played.
func TestTooManyEpisodes(t *testing.T) {
	t.Parallel()
	c := config(&models{width: 3}, &journal.Memory{}, 3)
	c.Plan = world.Join(world.Repeat(world.Spec{}, world.MaxEpisodes), world.List(world.Spec{}))
	if res, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "more than 2147483647 episodes") || res.State != journal.Failed || res.Episodes != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestNotFoundStops: if a model does not exist, the run stops before the calls of other agents are
// wasted, and continues once that is fixed.
func TestNotFoundStops(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, 0, 5)
	synctest.Test(t, func(t *testing.T) {
		j := &journal.Memory{}
		gone := &models{width: 3, pause: time.Second, fail: func(*llm.Request) error {
			return &llm.Error{Kind: llm.KindBadRequest, Status: 404, Message: "no such model"}
		}}
		res, err := Run(t.Context(), config(gone, j, 5))
		if err != nil || res.State != journal.Stopped || res.Ended > 0 || res.Reason.Kind != journal.ByCall || !strings.Contains(res.Reason.Detail, "no such model") {
			t.Fatalf("%+v, %v", res, err)
		}
		res, err = Run(t.Context(), config(&models{width: 3, pause: time.Second}, j, 5))
		if err != nil || res.Digest != want.Digest {
			t.Errorf("%+v, %v; want %+v", res, err, want)
		}
	})
}

// TestCallsOfAProviderThatIsAway: calls that wait for an unreachable provider leave room for those
// of others, but not for more to the same provider.
func TestCallsOfAProviderThatIsAway(t *testing.T) {
	t.Parallel()
	away := ""
	r := newScheduler(bounds{settings: &settings.Settings{Limits: settings.Limits{Concurrency: 2}}, unreachable: func(name string) bool { return name == away }}, nil, []world.Agent{{Model: "gone/a"}, {Model: "well/a"}}, &stopper{})
	for _, l := range r.providers {
		l.asks.Push(&call{}, 1)
	}
	gone, well := r.providers["gone"], r.providers["well"]
	gone.sent[0], gone.sent[1], r.flying = &call{}, &call{}, 2
	if r.maySend(gone) || r.maySend(well) {
		t.Error("more than two calls are in flight")
	}
	away = "gone"
	if r.maySend(gone) || !r.maySend(well) {
		t.Error("a provider that is away keeps another waiting, or takes more calls")
	}
	well.sent[0], well.sent[1], r.flying = &call{}, &call{}, 4
	if r.maySend(well) {
		t.Error("more than two calls are in flight at a provider that can be reached")
	}
}

// TestAbortedCallsAreOwed: calls that an abort cuts off may be billed. The next process counts what was exposed as risked,
// unless nothing was sent.
func TestAbortedCallsAreOwed(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, 0, 5)
	for sent, risked := range map[bool]llm.Money{true: 700, false: 0} {
		synctest.Test(t, func(t *testing.T) {
			j := &journal.Memory{}
			ctx, abort := context.WithCancel(t.Context())
			m := &models{width: 3, fail: func(*llm.Request) error {
				abort()
				return &llm.Error{Kind: llm.KindCanceled, Uncertain: sent}
			}}
			c := config(&exposing{m, j}, j, 5)
			if _, err := Run(ctx, c); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			res, err := Run(t.Context(), config(&models{width: 3}, j, 5))
			if err != nil || res.Digest != want.Digest {
				t.Fatalf("%+v, %v; want %+v", res, err, want)
			}
			head, err := j.Head(t.Context())
			if err != nil || head.Risked != risked || head.Owed != 0 {
				t.Errorf("sent %v: risked %v and owed %v, want %v and 0; %v", sent, head.Risked, head.Owed, risked, err)
			}
		})
	}
}

// exposing announces what its calls may cost, as a budget does.
type exposing struct {
	*models
	j *journal.Memory
}

func (e *exposing) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) int {
	if err := e.j.Append(context.WithoutCancel(ctx), &journal.Exposed{Worst: 700}); err != nil {
		panic(err)
	}
	return e.models.Each(ctx, reqs, done)
}

// TestStopper: the first ending counts, a complete run calls no drains, and wait waits for drains.
func TestStopper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			first ending
			want  int64
		}{{ending{state: journal.Complete}, 0}, {failedWith(errCut), 1}, {ending{state: journal.Stopped}, 1}} {
			var drained atomic.Int64
			s := &stopper{drains: []func(){func() { time.Sleep(time.Second); drained.Add(1) }}}
			s.stop(c.first)
			s.stop(ending{state: journal.Stopped, reason: journal.Reason{Kind: journal.ByUser}})
			s.fail(errAstray)
			got, err := s.wait(), c.first.err
			if err == nil {
				err = errAstray
			}
			if got.state != c.first.state || got.reason != c.first.reason || !errors.Is(got.err, err) || drained.Load() != c.want {
				t.Errorf("%+v: %+v, %d drained", c.first, got, drained.Load())
			}
		}
	})
}

// TestWhenDone: end waits for a function that has begun, and none begins after it.
func TestWhenDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begun, never := false, false
		late := whenDone(ctx, func() { never = true })
		late()
		end := whenDone(ctx, func() { time.Sleep(time.Second); begun = true })
		cancel()
		synctest.Wait()
		end()
		if !begun || never {
			t.Errorf("begun %v, never %v", begun, never)
		}
	})
}

// slowDrain takes its time to drain.
type slowDrain struct {
	models
	drained bool
}

func (s *slowDrain) Drain() {
	time.Sleep(time.Second)
	s.models.Drain()
	s.drained = true
}

// TestRunWaitsForDrain: every drain is over when Run returns.
func TestRunWaitsForDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &slowDrain{models: models{width: 3, fail: func(*llm.Request) error { return &llm.Error{Kind: llm.KindAuth} }}}
		if res, err := Run(t.Context(), config(m, &journal.Memory{}, 3)); err != nil || res.State != journal.Stopped || !m.drained {
			t.Errorf("drained %v: %+v, %v", m.drained, res, err)
		}
	})
}

// sessions notes the sessions of requests, and which were released.
type sessions struct {
	mu       sync.Mutex
	asked    map[string]bool
	released []string // with w for whole
	late     []string // asked in after their release
}

func (s *sessions) watch(req *llm.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.released, req.Session+"w") {
		s.late = append(s.late, req.Session)
	}
	s.asked[req.Session] = true
	return nil
}

func (s *sessions) release(session string, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole {
		session += "w"
	}
	s.released = append(s.released, session)
}

// TestSessions: the requests of an episode carry its session, which is released once, when the
// episode ended.
func TestSessions(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, 3, 5)
	s := &sessions{asked: map[string]bool{}}
	c := config(&models{width: 9, faults: 3, fail: s.watch}, &journal.Memory{}, 5)
	c.Begun.Run = "run"
	c.Released = s.release
	got, err := Run(t.Context(), c)
	if err != nil || got.Digest != want.Digest {
		t.Errorf("sessions changed the outcome: %+v, %v", got, err)
	}
	slices.Sort(s.released)
	if r := fmt.Sprint(s.released); r != "[run-0-0w run-1-0w run-2-0w run-3-0w run-4-0w]" || len(s.asked) != 5 || !s.asked["run-3-0"] || s.late != nil {
		t.Errorf("released %s, asked in %v, late %v", r, s.asked, s.late)
	}
}

// TestSessionsAcrossProcesses: an episode that is resumed keeps its session. One that begins again,
// since its kind is external, releases the old one, whether the process was aborted or killed.
func TestSessionsAcrossProcesses(t *testing.T) {
	t.Parallel()
	for _, outside := range []bool{false, true} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("external %v, killed %v", outside, killed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := &journal.Memory{}
					s := &sessions{asked: map[string]bool{}}
					sit := func(after time.Duration) Result {
						ctx, cancel := context.WithTimeoutCause(t.Context(), after, errors.New("enough"))
						defer cancel()
						c := config(&models{width: 9, pause: time.Second, fail: s.watch}, j, 5)
						c.Begun.Run, c.Released = "run", s.release
						if outside {
							c.Kind = world.Define(external{crowd()})
						}
						r, err := Run(ctx, c)
						if err != nil {
							t.Fatal(err)
						}
						return r
					}
					if r := sit(1200 * time.Millisecond); r.State != journal.Stopped || r.Ended == 5 {
						t.Fatalf("%+v", r)
					}
					if killed {
						s.released = nil // nobody was left to say so
					}
					if r := sit(time.Hour); r.State != journal.Complete {
						t.Fatalf("%+v", r)
					}
					second := slices.ContainsFunc(s.released, func(x string) bool { return strings.HasSuffix(x, "-1w") })
					givenUp := slices.ContainsFunc(s.released, func(x string) bool { return strings.HasSuffix(x, "-0") })
					if second != outside || givenUp != outside || s.late != nil {
						t.Errorf("released %v, late %v", s.released, s.late)
					}
				})
			})
		}
	}
}
