package pool

import (
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/llm"
	"parley/worlds/rollout/rules/protocol"
)

// TestDrainAtOnce: who has nothing opened yet is told at once, whatever it waits for; what is
// being opened is handed out.
func TestDrainAtOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config Config
		fail   *llm.Error
		slow   time.Duration
		opened int
	}{
		"a host that is down":        {fail: errDown},
		"a place":                    {config: Config{PerHost: 1}, slow: time.Hour, opened: 1},
		"others that are being made": {config: Config{Startup: 2}, slow: time.Hour, opened: 2},
		"the jitter":                 {config: Config{Jitter: 24 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newFake("a")
			a.slow = tt.slow
			a.set(tt.fail, false)
			in(t, tt.config, []*fake{a}, func(t *testing.T, p *Pool) {
				var wg sync.WaitGroup
				var mu sync.Mutex
				var told, got int
				for i := range 8 {
					wg.Go(func() {
						_, err := p.Lease(t.Context(), i, string(rune('a'+i)), protocol.Opening{Env: "e"})
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							got++
						} else if llm.KindOf(err) == llm.KindCanceled {
							told++
						}
					})
				}
				time.Sleep(10 * time.Second) // of the bubble's clock
				p.Drain()
				synctest.Wait()
				mu.Lock()
				if told != 8-tt.opened {
					t.Errorf("%d of 8 were told", told)
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

// TestWaiting: what is waited for is said while somebody waits and no host can be used.
func TestWaiting(t *testing.T) {
	t.Parallel()
	a, b := newFake("a"), newFake("b")
	in(t, Config{}, []*fake{a, b}, func(t *testing.T, p *Pool) {
		a.set(&llm.Error{Kind: llm.KindTransport, Message: "dial: refused", Err: syscall.ECONNREFUSED}, false)
		b.set(&llm.Error{Kind: llm.KindTransport, Message: "b: broken"}, false)
		if got := p.Waiting(); got != "" {
			t.Errorf("nobody waits: %q", got)
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { lease(t, p, i).Release(t.Context()) })
		}
		time.Sleep(time.Minute) // of the bubble's clock: both hosts are tried
		synctest.Wait()
		if got, want := p.Waiting(), "a: "+syscall.ECONNREFUSED.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		a.set(nil, false)
		wg.Wait()
		if got := p.Waiting(); got != "" {
			t.Errorf("all is well: %q", got)
		}
	})
}
