package envhttp

import (
	"context"
	"errors"
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
	in(t, Config{PerHost: 2}, []*fake{a, b}, func(t *testing.T, p *envPool) {
		var held []*Lease
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
	in(t, Config{Startup: 3, Jitter: time.Minute}, []*fake{a}, func(t *testing.T, p *envPool) {
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
		in(t, Config{PerHost: 50, Timeout: 2 * time.Second}, []*fake{a, b}, func(t *testing.T, p *envPool) {
			breaks(a)
			for i := range 40 {
				lease(t, p, i)
			}
			if st := p.Stats(); a.count() != 0 || b.count() != 40 || !st[0].Down || st[0].Trips != 1 || st[1].Down {
				t.Errorf("%s: %+v", name, st)
			}
			time.Sleep(10 * time.Minute)
			if st := p.Stats(); !st[0].Down || st[0].Trips != 1 {
				t.Errorf("%s: up without an answer: %+v", name, st)
			}
			a.set(nil, false)
			time.Sleep(2 * time.Minute)
			for i := range 40 {
				lease(t, p, 100+i)
			}
			if st := p.Stats(); st[0].Down || a.count() != 40 || b.count() != 40 {
				t.Errorf("%s: after its return: %+v", name, st)
			}
		})
	}
}

// TestTrial checks that a host on trial gets one session at a time.
func TestTrial(t *testing.T) {
	t.Parallel()
	p := newPool([]Host{newFake("a")}, Config{})
	h := p.hosts[0]
	h.Record(p.policy, health.Absent, time.Now())
	if p.free() != nil {
		t.Error("a host that is down gets a session")
	}
	h.Probed(p.policy, true, time.Now())
	if p.free() != h {
		t.Error("a host on trial gets no session")
	}
	p.claim(h)
	if p.free() != nil {
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
	in(t, Config{Patience: time.Minute}, []*fake{a, b}, func(t *testing.T, p *envPool) {
		start := time.Now()
		_, err := p.Lease(t.Context(), 0, "0", rules.Opening{})
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
	in(t, Config{Patience: time.Minute}, []*fake{a}, func(t *testing.T, p *envPool) {
		for _, c := range []struct {
			kind   llm.Kind
			within time.Duration
		}{{llm.KindBadRequest, 0}, {llm.KindServer, 5 * time.Second}, {llm.KindOverloaded, 2 * time.Minute}} {
			a.set(&llm.Error{Kind: c.kind, Status: 400}, false)
			start := time.Now()
			if _, err := p.Lease(t.Context(), 0, string(c.kind), rules.Opening{}); llm.KindOf(err) != c.kind || time.Since(start) > c.within {
				t.Errorf("%s: %v after %v", c.kind, err, time.Since(start))
			}
		}
		time.AfterFunc(20*time.Second, func() { a.set(nil, false) })
		lease(t, p, 1) // it was full and has room again
		if st := p.Stats(); st[0].Trips != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestNamesAreNew checks that a session gets another id than the one before that could not be made: that one
// may be closed late.
func TestNamesAreNew(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	in(t, Config{}, []*fake{a}, func(t *testing.T, p *envPool) {
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
	in(t, Config{PerHost: 4, Warm: 2}, []*fake{a}, func(t *testing.T, p *envPool) {
		lease(t, p, 1)
		time.Sleep(10 * time.Second)
		if st := p.Stats()[0]; st.Spare != 2 || st.Sessions != 3 {
			t.Errorf("%+v", st)
		}
		l := lease(t, p, 77)
		if a.seed(l.id) != 77 || !strings.Contains(l.id, "spare") {
			t.Errorf("%s was reset with %d", l.id, a.seed(l.id))
		}
		time.Sleep(10 * time.Second)
		if st := p.Stats()[0]; st.Spare != 2 || st.Sessions != 4 {
			t.Errorf("not refilled: %+v", st)
		}
		// A spare gives up its slot to a waiter.
		other, err := p.Lease(t.Context(), 5, "5", rules.Opening{Env: "other"})
		if err != nil {
			t.Fatal(err)
		}
		if st := p.Stats()[0]; st.Spare != 1 || st.Sessions > 4 {
			t.Errorf("%+v", st)
		}
		other.Release(t.Context())
	})
	b := newFake("b")
	in(t, Config{Warm: 1}, []*fake{b}, func(t *testing.T, p *envPool) {
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
	in(t, Config{PerHost: 1}, []*fake{a}, func(t *testing.T, p *envPool) {
		held := lease(t, p, 1)
		errs := make(chan error)
		go func() {
			_, err := p.Lease(t.Context(), 2, "2", rules.Opening{})
			errs <- err
		}()
		synctest.Wait()
		p.Drain()
		if err := <-errs; llm.KindOf(err) != llm.KindCanceled {
			t.Error(err)
		}
		if _, err := p.Lease(t.Context(), 3, "3", rules.Opening{}); llm.KindOf(err) != llm.KindCanceled {
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
	in(t, Config{PerHost: 1}, []*fake{a}, func(t *testing.T, p *envPool) {
		held := lease(t, p, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		errs := make(chan error)
		go func() {
			_, err := p.Lease(ctx, 2, "2", rules.Opening{})
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
	in(t, Config{}, []*fake{a}, func(t *testing.T, p *envPool) {
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
	in(t, Config{Timeout: time.Second}, []*fake{a}, func(t *testing.T, p *envPool) {
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
		config Config
		fail   *llm.Error
		slow   time.Duration
		opened int
	}{
		"a host that is down":        {fail: errDown},
		"a slot":                     {config: Config{PerHost: 1}, slow: time.Hour, opened: 1},
		"others that are being made": {config: Config{Startup: 2}, slow: time.Hour, opened: 2},
		"the jitter":                 {config: Config{Jitter: 24 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newFake("a")
			a.slow = tt.slow
			a.set(tt.fail, false)
			in(t, tt.config, []*fake{a}, func(t *testing.T, p *envPool) {
				var wg sync.WaitGroup
				var mu sync.Mutex
				var ended, got int
				for i := range 8 {
					wg.Go(func() {
						_, err := p.Lease(t.Context(), i, string(rune('a'+i)), rules.Opening{Env: "e"})
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
	in(t, Config{}, []*fake{a, b}, func(t *testing.T, p *envPool) {
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
