package envhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/kit/health"
	"parley/llm"
	"parley/worlds/rollout/rules"
)

func TestLeastLoadedAndLimited(t *testing.T) {
	t.Parallel()
	a, b := newFake("a"), newFake("b")
	withPool(t, poolConfig{PerHost: 2}, []*fake{a, b}, func(t *testing.T, p *envPool) {
		var held []*envLease
		for i := range 4 {
			held = append(held, lease(t, p, i))
		}
		if a.count() != 2 || b.count() != 2 {
			t.Errorf("%d and %d", a.count(), b.count())
		}
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for _, n := range []int{9, 7, 8} {
			wg.Go(func() {
				l := lease(t, p, n)
				mu.Lock()
				order = append(order, n)
				mu.Unlock()
				l.Release(t.Context())
			})
			synctest.Wait()
		}
		if len(order) != 0 {
			t.Errorf("%v served without room", order)
		}
		held[0].Release(t.Context())
		held[0].Release(t.Context()) // the second has no effect
		wg.Wait()
		if !slices.Equal(order, []int{7, 8, 9}) {
			t.Errorf("served in order %v", order)
		}
	})
}

func TestStartup(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	a.slow = time.Second
	withPool(t, poolConfig{Startup: 3, Jitter: time.Minute}, []*fake{a}, func(t *testing.T, p *envPool) {
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { lease(t, p, i) })
		}
		wg.Wait()
		if a.maxMaking > 3 || a.count() != 20 {
			t.Errorf("%d at once, %d in all", a.maxMaking, a.count())
		}
		if d := time.Since(start); d < 7*time.Second || d > 2*time.Minute {
			t.Errorf("took %v", d)
		}
	})
}

// TestQuarantine checks that a host that fails gets no sessions until it answers again.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*fake){
		"refuses": func(f *fake) { f.set(errDown, false) },
		"stalls":  func(f *fake) { f.set(nil, true) },
		"garbage": func(f *fake) { f.set(&llm.Error{Kind: llm.KindMalformed}, false) },
		"invalid": func(f *fake) { f.set(&llm.Error{Kind: llm.KindInvalid}, false) },
	} {
		a, b := newFake("a"), newFake("b")
		withPool(t, poolConfig{PerHost: 50, Timeout: 2 * time.Second}, []*fake{a, b}, func(t *testing.T, p *envPool) {
			breaks(a)
			for i := range 40 {
				lease(t, p, i)
			}
			if st := p.stats(); a.count() != 0 || b.count() != 40 || !st[0].Down || st[0].Trips != 1 || st[1].Down {
				t.Errorf("%s: %+v", name, st)
			}
			time.Sleep(10 * time.Minute)
			if st := p.stats(); !st[0].Down || st[0].Trips != 1 {
				t.Errorf("%s: up without an answer: %+v", name, st)
			}
			a.set(nil, false)
			time.Sleep(2 * time.Minute)
			for i := range 40 {
				lease(t, p, 100+i)
			}
			if st := p.stats(); st[0].Down || a.count() != 40 || b.count() != 40 {
				t.Errorf("%s: after its return: %+v", name, st)
			}
		})
	}
}

// TestTrial checks that a host on trial gets one session at a time.
func TestTrial(t *testing.T) {
	t.Parallel()
	p := newPool([]Host{newFake("a")}, poolConfig{})
	h := p.hosts[0]
	h.Record(p.policy, health.Absent, time.Now())
	if p.freeHost() != nil {
		t.Error("a host that is down gets a session")
	}
	h.Probed(p.policy, true, time.Now())
	if p.freeHost() != h {
		t.Error("a host on trial gets no session")
	}
	p.claim(h)
	if p.freeHost() != nil {
		t.Error("a host on trial gets two sessions")
	}
}

// TestAllDown checks that the pool waits when all hosts are down, and then returns an error that stops a run
// instead of failing its episodes.
func TestAllDown(t *testing.T) {
	t.Parallel()
	a, b := newFake("a"), newFake("b")
	a.set(errDown, false)
	b.set(errDown, false)
	withPool(t, poolConfig{DownTimeout: time.Minute}, []*fake{a, b}, func(t *testing.T, p *envPool) {
		start := time.Now()
		_, err := p.lease(t.Context(), 0, "0", rules.Opening{})
		e := llm.AsError(err)
		if e == nil || e.Kind != llm.KindTransport || e.Uncertain || !strings.Contains(e.Message, "a, b") {
			t.Errorf("%v", err)
		}
		if d := time.Since(start); d < time.Minute || d > 2*time.Minute {
			t.Errorf("after %v", d)
		}
		time.AfterFunc(30*time.Second, func() { b.set(nil, false) })
		lease(t, p, 1)
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	withPool(t, poolConfig{DownTimeout: time.Minute}, []*fake{a}, func(t *testing.T, p *envPool) {
		for _, c := range []struct {
			kind   llm.Kind
			within time.Duration
		}{{llm.KindBadRequest, 0}, {llm.KindServer, 5 * time.Second}, {llm.KindOverloaded, 2 * time.Minute}} {
			a.set(&llm.Error{Kind: c.kind, Status: 400}, false)
			start := time.Now()
			if _, err := p.lease(t.Context(), 0, string(c.kind), rules.Opening{}); llm.KindOf(err) != c.kind || time.Since(start) > c.within {
				t.Errorf("%s: %v after %v", c.kind, err, time.Since(start))
			}
		}
		time.AfterFunc(20*time.Second, func() { a.set(nil, false) })
		lease(t, p, 1) // it was full and has room again
		if st := p.stats(); st[0].Trips != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestNamesAreNew checks that a session gets another id than the one before that could not be made: that one
// may be closed late.
func TestNamesAreNew(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	withPool(t, poolConfig{}, []*fake{a}, func(t *testing.T, p *envPool) {
		a.set(&llm.Error{Kind: llm.KindServer, Status: 500}, false)
		time.AfterFunc(time.Second/10, func() { a.set(nil, false) })
		if l := lease(t, p, 1); l.id == "run-1" || !strings.HasPrefix(l.id, "run-1") {
			t.Errorf("the second is named %s", l.id)
		}
	})
}

func TestWarm(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	a.slow = time.Second
	withPool(t, poolConfig{PerHost: 4, Warm: 2}, []*fake{a}, func(t *testing.T, p *envPool) {
		lease(t, p, 1)
		time.Sleep(10 * time.Second)
		if st := p.stats()[0]; st.Spare != 2 || st.Sessions != 3 {
			t.Errorf("%+v", st)
		}
		l := lease(t, p, 77)
		if a.seed(l.id) != 77 || !strings.Contains(l.id, "spare") {
			t.Errorf("%s was reset with %d", l.id, a.seed(l.id))
		}
		time.Sleep(10 * time.Second)
		if st := p.stats()[0]; st.Spare != 2 || st.Sessions != 4 {
			t.Errorf("not refilled: %+v", st)
		}
		// A spare gives up its slot to a waiter.
		other, err := p.lease(t.Context(), 5, "5", rules.Opening{Env: "other"})
		if err != nil {
			t.Fatal(err)
		}
		if st := p.stats()[0]; st.Spare != 1 || st.Sessions > 4 {
			t.Errorf("%+v", st)
		}
		other.Release(t.Context())
	})
	b := newFake("b")
	withPool(t, poolConfig{Warm: 1}, []*fake{b}, func(t *testing.T, p *envPool) {
		lease(t, p, 1)
		synctest.Wait()
		b.set(&llm.Error{Kind: llm.KindServer, Status: 404}, false) // a server that was restarted
		time.AfterFunc(time.Second/10, func() { b.set(nil, false) })
		if l := lease(t, p, 2); strings.Contains(l.id, "spare") {
			t.Errorf("%s was dropped", l.id)
		}
	})
}

func TestDrain(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	withPool(t, poolConfig{PerHost: 1}, []*fake{a}, func(t *testing.T, p *envPool) {
		held := lease(t, p, 1)
		errs := make(chan error)
		go func() {
			_, err := p.lease(t.Context(), 2, "2", rules.Opening{})
			errs <- err
		}()
		synctest.Wait()
		p.Drain()
		if err := <-errs; llm.KindOf(err) != llm.KindCanceled {
			t.Error(err)
		}
		if _, err := p.lease(t.Context(), 3, "3", rules.Opening{}); llm.KindOf(err) != llm.KindCanceled {
			t.Error(err)
		}
		if _, err := held.Step(t.Context(), nil); err != nil {
			t.Errorf("a lease cannot be used: %v", err)
		}
	})
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	withPool(t, poolConfig{PerHost: 1}, []*fake{a}, func(t *testing.T, p *envPool) {
		held := lease(t, p, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		errs := make(chan error)
		go func() {
			_, err := p.lease(ctx, 2, "2", rules.Opening{})
			errs <- err
		}()
		synctest.Wait()
		cancel(errors.New("enough"))
		if err := <-errs; llm.KindOf(err) != llm.KindCanceled {
			t.Error(err)
		}
		held.Release(t.Context())
		lease(t, p, 3) // the slot is free
	})
}

// TestLeftBehind checks that sessions of an earlier process are closed, and those of others are not.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	a.left = []string{"run-1", "run-spare9", "runner-1", "other-1"}
	withPool(t, poolConfig{}, []*fake{a}, func(t *testing.T, p *envPool) {
		lease(t, p, 1)
		synctest.Wait()
		if !slices.Equal(a.left, []string{"run-1", "runner-1", "other-1"}) {
			t.Errorf("%v", a.left) // run-1 is the session that was just made
		}
	})
}

func TestStepsTimeOut(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	withPool(t, poolConfig{Timeout: time.Second}, []*fake{a}, func(t *testing.T, p *envPool) {
		l := lease(t, p, 1)
		a.set(nil, true)
		_, err := l.Step(t.Context(), nil)
		if e := llm.AsError(err); e == nil || e.Kind != llm.KindTimeout || !e.Uncertain {
			t.Errorf("%v", err)
		}
	})
}

// TestDrainAtOnce checks that Drain ends every waiting Lease at once, whatever it waits for, and that a session
// that is being made is still returned.
func TestDrainAtOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config poolConfig
		fail   *llm.Error
		slow   time.Duration
		opened int
	}{
		"a host that is down":        {fail: errDown},
		"a slot":                     {config: poolConfig{PerHost: 1}, slow: time.Hour, opened: 1},
		"others that are being made": {config: poolConfig{Startup: 2}, slow: time.Hour, opened: 2},
		"the jitter":                 {config: poolConfig{Jitter: 24 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newFake("a")
			a.slow = tt.slow
			a.set(tt.fail, false)
			withPool(t, tt.config, []*fake{a}, func(t *testing.T, p *envPool) {
				var wg sync.WaitGroup
				var mu sync.Mutex
				var ended, got int
				for i := range 8 {
					wg.Go(func() {
						_, err := p.lease(t.Context(), i, string(rune('a'+i)), rules.Opening{Env: "e"})
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							got++
						} else if llm.KindOf(err) == llm.KindCanceled {
							ended++
						}
					})
				}
				time.Sleep(10 * time.Second)
				p.Drain()
				synctest.Wait()
				mu.Lock()
				if ended != 8-tt.opened {
					t.Errorf("%d of 8 ended", ended)
				}
				mu.Unlock()
				wg.Wait()
				if got != tt.opened {
					t.Errorf("%d of 8 were opened", got)
				}
			})
		})
	}
}

// TestWaiting checks that Waiting names a host while a Lease waits and no host can be used.
func TestWaiting(t *testing.T) {
	t.Parallel()
	a, b := newFake("a"), newFake("b")
	withPool(t, poolConfig{}, []*fake{a, b}, func(t *testing.T, p *envPool) {
		a.set(&llm.Error{Kind: llm.KindTransport, Message: "dial: refused", Err: syscall.ECONNREFUSED}, false)
		b.set(&llm.Error{Kind: llm.KindTransport, Message: "b: broken"}, false)
		if got := p.Waiting(); got != "" {
			t.Errorf("nothing waits: %q", got)
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { lease(t, p, i).Release(t.Context()) })
		}
		time.Sleep(time.Minute) // both hosts are tried
		synctest.Wait()
		if got, want := p.Waiting(), "a: "+syscall.ECONNREFUSED.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		a.set(nil, false)
		wg.Wait()
		if got := p.Waiting(); got != "" {
			t.Errorf("all hosts answer: %q", got)
		}
	})
}

// fake is a host that the test controls.
type fake struct {
	name string
	slow time.Duration // how long making a session takes

	mu        sync.Mutex
	fail      *llm.Error // of every request
	mute      bool       // requests are not answered
	space     int        // sessions that it has room for; 0: any number
	refused   int        // sessions that it had no room for
	sessions  map[string]int64
	making    int
	maxMaking int // made at once
	left      []string
}

func (f *fake) Name() string { return f.name }

func (f *fake) New(id string, _ rules.Opening) Session { return &fakeSession{f, id} }

func (f *fake) Check(ctx context.Context, stray func(string) bool) error {
	f.mu.Lock()
	f.left = slices.DeleteFunc(f.left, stray)
	f.mu.Unlock()
	return f.answer(ctx)
}

func (f *fake) answer(ctx context.Context) error {
	f.mu.Lock()
	fail, mute := f.fail, f.mute
	f.mu.Unlock()
	if mute {
		<-ctx.Done()
		return llm.ContextError(ctx)
	}
	if fail != nil {
		return fail
	}
	return nil
}

func (f *fake) set(fail *llm.Error, mute bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.mute = fail, mute
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sessions)
}

func (f *fake) seed(id string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[id]
}

type fakeSession struct {
	*fake
	id string
}

func (s *fakeSession) Reset(ctx context.Context, seed int64) (json.RawMessage, error) {
	s.mu.Lock()
	s.making++
	s.maxMaking = max(s.maxMaking, s.making)
	s.mu.Unlock()
	time.Sleep(s.slow)
	err := s.answer(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making--
	if err == nil && s.space > 0 && len(s.sessions) >= s.space {
		s.refused++
		err = errFull
	}
	if err != nil {
		return nil, err
	}
	s.sessions[s.id] = seed
	return nil, nil
}

func (s *fakeSession) Prompt(ctx context.Context) (rules.Prompt, error) { return nil, s.answer(ctx) }

func (s *fakeSession) Step(ctx context.Context, _ string, _ rules.Action) (rules.Result, error) {
	return rules.Result{}, s.answer(ctx)
}

func (s *fakeSession) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, s.id)
	return nil
}

func newFake(name string) *fake { return &fake{name: name, sessions: map[string]int64{}} }

var errDown = &llm.Error{Kind: llm.KindTransport, Message: "refused"}

// withPool runs f with a pool of hosts on a fake clock, and closes the pool.
func withPool(t *testing.T, c poolConfig, hosts []*fake, f func(t *testing.T, p *envPool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var all []Host
		for _, h := range hosts {
			all = append(all, h)
		}
		c.Owner = "run"
		p := newPool(all, c)
		f(t, p)
		p.Close(t.Context())
		for _, h := range hosts {
			if n := h.count(); n > 0 {
				t.Errorf("%s still has %d sessions", h.name, n)
			}
		}
	})
}

func lease(t *testing.T, p *envPool, n int) *envLease {
	t.Helper()
	l, err := p.lease(t.Context(), n, fmt.Sprint(n), rules.Opening{Env: "e", Seed: int64(n)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestStrays checks which sessions were left behind, by who else plays the run.
func TestStrays(t *testing.T) {
	t.Parallel()
	all := []string{"run-1-0-0", "run_a-2-0-0", "run_b-2-0-0+", "run_b-2-1-0", "run_b-3-0-0", "run_b-spare1", "run_a-spare1", "runner-2-0-0", "run_b-x-0-0", "run_b-2", ""}
	for name, c := range map[string]struct {
		config  poolConfig
		resumed map[int]int
		want    []string
	}{
		"alone":        {poolConfig{Owner: "run"}, nil, []string{"run-1-0-0", "run_a-2-0-0", "run_b-2-0-0+", "run_b-2-1-0", "run_b-3-0-0", "run_b-spare1", "run_a-spare1", "run_b-x-0-0", "run_b-2"}},
		"with others":  {poolConfig{Owner: "run_a", Run: "run"}, nil, []string{"run_a-2-0-0", "run_a-spare1"}},
		"after others": {poolConfig{Owner: "run_a", Run: "run"}, map[int]int{2: 1, 1: 1}, []string{"run-1-0-0", "run_a-2-0-0", "run_b-2-0-0+", "run_a-spare1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool([]Host{newFake("a")}, c.config)
			for episode, attempt := range c.resumed {
				p.Resume(episode, attempt)
			}
			if got := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !p.stray(id) }); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestLateStrays checks that a session that a killed process asked for, and that the host made after the first check, is closed at the end.
func TestLateStrays(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	withPool(t, poolConfig{}, []*fake{a}, func(t *testing.T, p *envPool) {
		lease(t, p, 1).Release(t.Context())
		synctest.Wait()
		a.mu.Lock()
		a.left = []string{"run-6-0-0", "other-6-0-0"}
		a.mu.Unlock()
	})
	if want := []string{"other-6-0-0"}; !slices.Equal(a.left, want) {
		t.Errorf("left %v, want %v", a.left, want)
	}
}

// TestShare checks that a pool uses only its part of each host, until the part ends, and more when it gets more.
func TestShare(t *testing.T) {
	t.Parallel()
	a, b := newFake("a"), newFake("b")
	withPool(t, poolConfig{PerHost: 10}, []*fake{a, b}, func(t *testing.T, p *envPool) {
		used := func() [2]int {
			synctest.Wait()
			rooms := p.Capacities()
			return [2]int{rooms[0].Used, rooms[1].Used}
		}
		p.ShareCapacity(map[string]float64{"a": 0.3, "b": 0}, time.Now().Add(3*time.Second))
		for i := range 20 {
			go func() { _, _ = p.lease(t.Context(), i, fmt.Sprint(i), rules.Opening{Env: "e"}) }()
		}
		if got := used(); got != [2]int{3, 0} || p.Capacities()[0].Waiting != 17 {
			t.Errorf("%v %+v", got, p.Capacities())
		}
		p.ShareCapacity(map[string]float64{"b": 0.5}, time.Now().Add(3*time.Second))
		if got := used(); got != [2]int{3, 5} {
			t.Errorf("%v", got)
		}
		p.ShareCapacity(map[string]float64{"a": 0.1}, time.Now().Add(time.Second))
		time.Sleep(3 * time.Second)
		p.ShareCapacity(map[string]float64{"a": 1}, time.Now()) // it has ended
		if got := used(); got != [2]int{3, 5} {
			t.Errorf("%v", got)
		}
		p.ShareCapacity(map[string]float64{"a": 2, "b": 1}, time.Now().Add(time.Second))
		if got := used(); got != [2]int{10, 10} {
			t.Errorf("%v", got)
		}
	})
}

// TestWrongForm checks that nobody waits for hosts that answer in a wrong form: they answer the same later.
func TestWrongForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  llm.Kind
		hosts int
		tries int // of each lease
	}{{llm.KindInvalid, 1, 1}, {llm.KindMalformed, 1, 3}, {llm.KindInvalid, 2, 6}, {llm.KindMalformed, 2, 6}} {
		hosts := []*fake{newFake("a"), newFake("b")}[:c.hosts]
		for _, h := range hosts {
			h.set(&llm.Error{Kind: c.kind}, false)
		}
		withPool(t, poolConfig{PerHost: 50}, hosts, func(t *testing.T, p *envPool) {
			began := time.Now()
			for i := range 20 {
				_, err := p.lease(t.Context(), i, fmt.Sprint(i), rules.Opening{Env: "e"})
				if e := llm.AsError(err); e == nil || e.Kind != c.kind {
					t.Fatalf("%+v: %v", c, err)
				}
			}
			failed := 0
			for _, s := range p.stats() {
				failed += s.Failed
			}
			if took, limit := time.Since(began), time.Duration(20*(c.tries-1))*time.Second; failed != 20*c.tries || took > limit {
				t.Errorf("%+v: %d failures in %s, want %d in at most %s", c, failed, took, 20*c.tries, limit)
			}
		})
	}
}

func TestRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		chosen        int
		latency       func(limit int) time.Duration
		wanted, spare bool
		want          int // after 100 answers
	}{
		{"nobody wants more", 0, always(time.Second), false, true, 16},
		{"the host keeps up", 0, always(time.Second), true, false, 116},
		{"it slows down, and most sessions wait for it", 0, perSession, true, false, 48},
		{"it slows down, and few wait for it", 0, perSession, true, true, 116},
		{"the user has chosen", 20, always(time.Second), true, true, 20},
	} {
		r := newLimit(c.chosen, 16)
		for range 100 {
			r.answered(c.latency(r.now), c.wanted, c.spare)
		}
		if r.now != c.want {
			t.Errorf("%s: %d, want %d", c.name, r.now, c.want)
		}
	}
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// perSession is the latency of a server that does one thing at a time.
func perSession(limit int) time.Duration { return time.Duration(limit) * time.Millisecond }

// TestRoomGrows checks that sessions beyond the first are made while those that there are get answers, that the room is
// back at the first ones after a host was down, and that a chosen number is kept.
func TestRoomGrows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config     poolConfig
		want, room int
	}{
		"found":  {poolConfig{First: 4}, 12, 12 + firstStartup},
		"chosen": {poolConfig{PerHost: 4}, 4, 4},
	} {
		a := newFake("a")
		withPool(t, c.config, []*fake{a}, func(t *testing.T, p *envPool) {
			got, wg := make(chan *envLease, 12), sync.WaitGroup{}
			for i := range 12 {
				wg.Go(func() { got <- lease(t, p, i) })
			}
			synctest.Wait()
			for range min(4, len(got)) {
				l := <-got
				for range 3 {
					if _, err := l.Step(t.Context(), nil); err != nil {
						t.Error(err)
					}
				}
				got <- l
			}
			synctest.Wait()
			if a.count() != c.want || p.Capacity() != c.room {
				t.Errorf("%s: %d sessions, room for %d; want %d and %d", name, a.count(), p.Capacity(), c.want, c.room)
			}
			if waits := p.Waiting(); (waits == "environments: the servers have 4, and 8 episodes wait for one") != (c.want == 4) {
				t.Errorf("%s: waits for %q", name, waits)
			}
			p.hosts[0].limit.restart()
			if n := p.hosts[0].limit.now; n != 4 {
				t.Errorf("%s: room for %d after it was down", name, n)
			}
			for range 12 {
				(<-got).Release(t.Context())
			}
			wg.Wait()
		})
	}
}

// TestFullHost checks that a host that is full is asked for few more sessions than it has, and that they are made once it
// has room.
func TestFullHost(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	a.space = 10
	withPool(t, poolConfig{DownTimeout: time.Hour}, []*fake{a}, func(t *testing.T, p *envPool) {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				l := lease(t, p, i)
				for a.count() < 40 {
					time.Sleep(time.Second)
					if _, err := l.Step(t.Context(), nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(2 * time.Minute)
		a.mu.Lock()
		if a.space = 40; len(a.sessions) != 10 || a.refused == 0 || a.refused > 500 {
			t.Errorf("%d sessions, %d refused in 2 minutes", len(a.sessions), a.refused)
		}
		a.mu.Unlock()
		wg.Wait()
	})
}

// TestStartupGrows checks that more sessions are made at once while a host makes them as quickly as before.
func TestStartupGrows(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	a.slow = time.Second
	withPool(t, poolConfig{}, []*fake{a}, func(t *testing.T, p *envPool) {
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 16 + 32 + 64 {
			wg.Go(func() { lease(t, p, i) })
		}
		wg.Wait()
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("%d sessions took %v, %d at once", a.count(), d, a.maxMaking)
		}
	})
}

var errFull = &llm.Error{Kind: llm.KindOverloaded, Message: "full"}

// hostStat is the state of a host.
type hostStat struct {
	Host string
	// Sessions counts sessions there or being made, and Spare those that nobody uses.
	Sessions int
	Spare    int
	// Made and Failed count sessions that were made and requests that failed.
	Made   int
	Failed int
	// Down means that it gets no work for now, and Trips is how often it went down.
	Down  bool
	Trips int
}

// stats returns the state of each host.
func (p *envPool) stats() []hostStat {
	p.mu.Lock()
	defer p.mu.Unlock()
	spare := map[*host]int{}
	for _, all := range p.spares {
		for _, l := range all {
			spare[l.host]++
		}
	}
	var out []hostStat
	for _, h := range p.hosts {
		out = append(out, hostStat{
			Host: h.Name(), Sessions: h.load, Spare: spare[h], Made: h.made, Failed: h.failed, Down: h.Down(), Trips: h.trips,
		})
	}
	return out
}
