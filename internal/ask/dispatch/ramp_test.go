package dispatch

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

// place is a provider that allows so many calls at once and sends no headers, for use in a synctest
// bubble.
type place struct {
	allows   int           // calls in flight; 0: any number
	slots    int           // that it works on at once; 0: any number
	latency  time.Duration // of an answer
	refusing time.Duration // how long a refusal takes
	says     llm.Error     // what a refusal says
	falls    bool          // beyond allows, everything in flight fails
	every    int           // one of so many calls is refused whatever the load; 0: none

	mu       sync.Mutex
	inFlight int
	peak     int
	asked    int
	refused  int
	busy     chan struct{}
	down     context.Context // ends when the place falls
	fall     context.CancelFunc
}

func (p *place) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	p.mu.Lock()
	if p.asked == 0 {
		p.busy = make(chan struct{}, max(1, p.slots))
		p.down, p.fall = context.WithCancel(context.Background())
	}
	p.asked++
	if p.allows > 0 && p.inFlight >= p.allows || p.every > 0 && p.asked%p.every == 0 {
		p.refused++
		if p.falls {
			p.refused += p.inFlight
			p.inFlight = 0
			p.fall()
			p.down, p.fall = context.WithCancel(context.Background())
		}
		p.mu.Unlock()
		time.Sleep(p.refusing)
		e := p.says
		return nil, &e
	}
	p.inFlight++
	p.peak = max(p.peak, p.inFlight)
	down := p.down
	p.mu.Unlock()

	if p.slots > 0 {
		p.busy <- struct{}{}
		defer func() { <-p.busy }()
	}
	t := time.NewTimer(p.latency * time.Duration(70+10*(req.Sample*5%7)) / 100)
	defer t.Stop()
	select {
	case <-t.C:
	case <-down.Done():
		e := p.says
		return nil, &e
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	return &llm.Response{Text: "yes", Finish: llm.FinishStop, Usage: llm.Usage{Input: 10, Output: 10}}, nil
}

// visitor is one of several runs at a place. Each of its requests takes another time to arrive, so that what happens does not
// depend on the order in which goroutines happen to continue.
type visitor struct {
	*place
	run int
}

func (v visitor) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	time.Sleep(time.Duration(8*req.Sample + v.run + 1))
	return v.place.Ask(ctx, req)
}

func providerAt(near bool) provider.Provider {
	p := provider.Provider{Dialect: "openai", BaseURL: "https://lab.example/v1"}
	if near {
		p.BaseURL = "http://127.0.0.1:8000/v1"
	}
	return p
}

// TestThousandConversationsAtOnce: the default finds room for all of them in a small part of the
// time of a call.
func TestThousandConversationsAtOnce(t *testing.T) {
	t.Parallel()
	if took, ideal := conversations(t, 1000), 6*time.Second; took > ideal*11/10 {
		t.Errorf("1,000 conversations of 6 calls of 1s took %v", took)
	}
}

// conversations returns how long n conversations of 6 calls of a second take, with a server on this machine.
func conversations(t *testing.T, n int) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &place{latency: time.Second}
		d := dispatcher(t, p, providerAt(true))
		start := time.Now()
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				for range 6 {
					if _, err := d.Ask(t.Context(), asked(3, 10, 1)[2]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		took = time.Since(start)
	})
	return took
}

// TestNoStorm asks 10,000 requests of providers that allow few calls at once, or fail beyond a
// number, and say nothing about it.
func TestNoStorm(t *testing.T) {
	t.Parallel()
	refuses := llm.Error{Kind: llm.KindRateLimited, Status: 429}
	overloaded := llm.Error{Kind: llm.KindOverloaded, Status: 503}
	fails := llm.Error{Kind: llm.KindServer, Status: 500}
	gone := llm.Error{Kind: llm.KindTransport, Unreachable: true}
	const n = 10_000
	for _, c := range []struct {
		name    string
		near    bool
		server  *place
		runs    int           // beside each other
		refused int           // at most
		took    time.Duration // at most
	}{
		{"one at a time", false, &place{allows: 1, refusing: 80 * time.Millisecond, says: refuses}, 1, n / 200, 168 * time.Minute},
		{"8", false, &place{allows: 8, refusing: 80 * time.Millisecond, says: refuses}, 1, n / 200, 22 * time.Minute},
		{"8, near", true, &place{allows: 8, refusing: 3 * time.Millisecond, says: refuses}, 1, n / 200, 22 * time.Minute},
		{"8, refused late", false, &place{allows: 8, refusing: 300 * time.Millisecond, says: refuses}, 1, n / 200, 22 * time.Minute},
		{"100", false, &place{allows: 100, refusing: 80 * time.Millisecond, says: refuses}, 1, n / 200, 110 * time.Second},
		{"1,000", false, &place{allows: 1000, refusing: 80 * time.Millisecond, says: refuses}, 1, n / 200, 18 * time.Second},
		{"1,000, near", true, &place{allows: 1000, refusing: 3 * time.Millisecond, says: refuses}, 1, n / 200, 12 * time.Second},
		{"2,000, near", true, &place{allows: 2000, refusing: 3 * time.Millisecond, says: refuses}, 1, n / 200, 8 * time.Second},
		{"3,000, near", true, &place{allows: 3000, refusing: 3 * time.Millisecond, says: refuses}, 1, n / 200, 8 * time.Second},
		{"5,000, near", true, &place{allows: 5000, refusing: 3 * time.Millisecond, says: refuses}, 1, n / 200, 8 * time.Second},
		{"8, says overloaded", true, &place{allows: 8, refusing: 3 * time.Millisecond, says: overloaded}, 1, n / 200, 25 * time.Minute},
		{"100, says overloaded", false, &place{allows: 100, refusing: 50 * time.Millisecond, says: overloaded}, 1, n / 200, 115 * time.Second},
		{"100, fails beyond", false, &place{allows: 100, refusing: 50 * time.Millisecond, says: fails}, 1, n / 200, 115 * time.Second},
		// It loses all calls in flight, but only once.
		{"falls over at 100", false, &place{allows: 100, refusing: 50 * time.Millisecond, says: fails, falls: true}, 1, 150, 4 * time.Minute},
		{"crashes at 500", true, &place{allows: 500, refusing: 5 * time.Millisecond, says: gone, falls: true}, 1, 550, time.Minute},
		{"four runs", false, &place{allows: 100, refusing: 50 * time.Millisecond, says: refuses}, 4, n / 200, 110 * time.Second},
		{"four runs, near", true, &place{allows: 100, refusing: 3 * time.Millisecond, says: refuses}, 4, n / 200, 130 * time.Second},
		// One waits for the other, and tries at most every half minute.
		{"two runs, 8", true, &place{allows: 8, refusing: 3 * time.Millisecond, says: refuses}, 2, n / 100, 35 * time.Minute},
		// Refusals that do not depend on the load must not stop the work.
		{"one of 50, whatever the load", false, &place{every: 50, refusing: 50 * time.Millisecond, says: refuses}, 1, n / 40, 90 * time.Second},
		{"one of 50 fails, whatever the load", false, &place{every: 50, refusing: 50 * time.Millisecond, says: fails}, 1, n / 40, 60 * time.Second},
	} {
		if testing.Short() && c.server.allows != 100 {
			continue // a race shows in few of them too
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.server.latency = time.Second
				start := time.Now()
				var wg sync.WaitGroup
				for run := range c.runs {
					wg.Go(func() {
						d := dispatcher(t, visitor{c.server, run}, providerAt(c.near), func(c *Config) { c.Settings.Retry.Deadline, c.Settings.Retry.Unreachable = 0, time.Hour })
						for _, r := range d.All(t.Context(), asked(n/c.runs, 10, 1)) {
							if r.Err != nil {
								t.Fatal(r.Err)
							}
						}
					})
				}
				wg.Wait()
				took := time.Since(start)
				t.Logf("%d refused, %d in flight, %v", c.server.refused, c.server.peak, took)
				if c.server.refused > c.refused || took > c.took {
					t.Errorf("%d refused, want at most %d; took %v, want at most %v", c.server.refused, c.refused, took, c.took)
				}
			})
		})
	}
}

// TestQueueStaysShort: a server that queues calls instead of refusing them gets about a thousand
// before its first answers show that, and few after that. It is kept busy all the time.
func TestQueueStaysShort(t *testing.T) {
	t.Parallel()
	for _, near := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &place{slots: 8, latency: time.Second}
			d := dispatcher(t, p, providerAt(near))
			start := time.Now()
			d.All(t.Context(), asked(4000, 10, 1))
			if took := time.Since(start); took > 505*time.Second || p.peak > 1100 {
				t.Errorf("near %v: %d in flight, %v", near, p.peak, took)
			}
			p.peak = 0
			d.All(t.Context(), asked(400, 10, 1))
			if p.peak > 100 {
				t.Errorf("near %v: later %d in flight at 8 slots", near, p.peak)
			}
		})
	}
}

// TestQueueOfManySlots: answers that are quick because there are slots for them do not show that there is
// room for many times as many calls. Where the slots are as many as the first calls, nothing shows that they are all.
func TestQueueOfManySlots(t *testing.T) {
	t.Parallel()
	for slots, most := range map[int]int{256: 1500, 512: 5000, 1024: 10_000} {
		if testing.Short() && slots > 256 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			p := &place{slots: slots, latency: time.Second}
			d := dispatcher(t, p, providerAt(true))
			d.All(t.Context(), asked(20_000, 10, 1))
			if p.peak > most {
				t.Errorf("%d in flight at %d slots, want at most %d", p.peak, slots, most)
			}
		})
	}
}

// TestRoomForAll: where the first thousand calls are answered without delay, ten thousand are in flight with the next ones.
func TestRoomForAll(t *testing.T) {
	t.Parallel()
	if took, want := conversations(t, 10_000), 7900*time.Millisecond; took > want {
		t.Errorf("10,000 conversations of 6 calls of 1s took %v, want at most %v", took, want)
	}
}

// TestUnknownRate: a limit on the rate that nothing reports is found by trying.
func TestUnknownRate(t *testing.T) {
	t.Parallel()
	for _, latency := range []time.Duration{100 * time.Millisecond, time.Second} {
		if testing.Short() && latency < time.Second {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			s := server{rules: rules{rpm: 3000, burst: time.Second, silent: true, latency: latency, output: 100, perByte: 0.25}}
			d := dispatcher(t, &s, providerAt(false))
			start := time.Now()
			d.All(t.Context(), asked(20_000, 1200, 100))
			if took := time.Since(start); s.refused > 100 || took > 600*time.Second {
				t.Errorf("latency %v: %d refused, %v", latency, s.refused, took)
			}
		})
	}
}

// TestRateIsBackAfterAWeightSync: a server that gets new weights refuses every call for half a minute, with a reason of its own. Two
// seconds after it accepts calls again, as many are in flight as before, also if answers take long.
func TestRateIsBackAfterAWeightSync(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		latency time.Duration
		limit   int
	}{{time.Second, 0}, {20 * time.Second, 0}, {time.Second, 64}, {20 * time.Second, 8}} {
		if testing.Short() && tt.limit != 64 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			f := &flaky{
				from: start.Add(50 * time.Second), until: start.Add(80 * time.Second), latency: tt.latency,
				away: &llm.Error{Kind: llm.KindOverloaded, Status: 503, Message: "weights are being updated"},
			}
			var reported []string
			d := dispatcher(t, f, provider.Provider{Limits: provider.Limits{Concurrency: tt.limit}}, waiting(10*time.Minute, func(c *Config) {
				c.Events = onOutage(func(o Outage) { reported = append(reported, o.Text(time.Now())) })
			}))
			var wg sync.WaitGroup
			for range 600 {
				wg.Go(func() {
					for time.Since(f.until) < 10*time.Second {
						if _, err := d.Ask(t.Context(), asked(1, 10, 1)[0]); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			time.Sleep(time.Until(f.from) - time.Millisecond)
			before := d.Stats().InFlight
			time.Sleep(time.Until(f.until) + 2*time.Second)
			if now := d.Stats().InFlight; before < 8 || float64(now) < 0.9*float64(before) {
				t.Errorf("%+v: %d calls in flight after 2 seconds, %d before", tt, now, before)
			}
			wg.Wait()
			if limit := 3*600 + 5*30; len(f.tries) > limit {
				t.Errorf("%+v: %d tries while it refused all calls, want at most %d", tt, len(f.tries), limit)
			}
			if len(reported) != 2 || reported[0] != "lab refuses all calls: 503 weights are being updated" || !strings.HasPrefix(reported[1], "lab answers again after ") {
				t.Errorf("%+v: reported %q", tt, reported)
			}
		})
	}
}
