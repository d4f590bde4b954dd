package dispatch

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/llm"
)

var errRefused = &llm.Error{Kind: llm.KindTransport, Message: "connection refused", Unreachable: true, Err: syscall.ECONNREFUSED}

// flaky is a server that is down for some time, and counts attempts.
type flaky struct {
	from, until time.Time // it is away
	away        *llm.Error
	latency     time.Duration

	mu       sync.Mutex
	tries    []time.Time // while it was away
	answered int
	looks    int
}

func (f *flaky) gone() bool { now := time.Now(); return !now.Before(f.from) && now.Before(f.until) }

func (f *flaky) Ask(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
	if f.gone() {
		f.mu.Lock()
		f.tries = append(f.tries, time.Now())
		f.mu.Unlock()
		return nil, f.away
	}
	t := time.NewTimer(f.latency)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return nil, llm.ContextError(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered++
	return &llm.Response{Text: "yes", Finish: llm.FinishStop, Usage: llm.Usage{Input: 1, Output: 1}}, nil
}

// watched is a flaky server that can be checked without a call.
type watched struct{ flaky }

func (w *watched) Alive(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	if w.gone() {
		return errRefused
	}
	return nil
}

func waiting(limit time.Duration, change ...func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Settings.Retry.Unreachable = limit
		for _, f := range change {
			f(c)
		}
	}
}

func loading() *llm.Error {
	return &llm.Error{Kind: llm.KindOverloaded, Status: 503, Message: "Loading model", Unreachable: true}
}

// TestWaitsForAServerThatRestarts: a server is down for five minutes while many calls are made. All
// are answered, few are tried meanwhile, and no attempt is charged.
func TestWaitsForAServerThatRestarts(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]*llm.Error{"refused": errRefused, "loading": loading()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				f := &flaky{from: start.Add(10 * time.Second), until: start.Add(310 * time.Second), away: away, latency: time.Second}
				var mu sync.Mutex
				var reported []string
				d := dispatcher(t, f, provider.Provider{BaseURL: "http://127.0.0.1:9/v1", Limits: provider.Limits{Concurrency: 50}}, waiting(10*time.Minute, func(c *Config) {
					c.Events = onOutage(func(o Outage) {
						mu.Lock()
						defer mu.Unlock()
						reported = append(reported, o.Text(time.Now()))
					})
				}))
				const calls = 2000
				for i, r := range d.All(t.Context(), asked(calls, 10, 1)) {
					if r.Err != nil || r.Response.Metadata.Attempts != 1 {
						t.Fatalf("call %d: %v %+v", i, r.Err, r.Response)
					}
				}
				// Those in flight, those that are admitted at the same moment, and then one after
				// each pause: 0.5, 1, 2, 4 and then every 5 s.
				if limit := 2*int(d.Stats().InFlightMax) + 5 + 300/5; len(f.tries) > limit || len(f.tries) < 20 {
					t.Errorf("%d tries while it was away, want at most %d", len(f.tries), limit)
				}
				if late := time.Since(f.until); late > 2*time.Minute {
					t.Errorf("done %v after the server was back", late)
				}
				if len(reported) != 2 || !strings.HasPrefix(reported[0], "lab is unreachable: ") || !strings.Contains(reported[0], "at http://127.0.0.1:9/v1; waits up to 10m0s") ||
					!strings.HasPrefix(reported[1], "lab can be reached again after 5m") {
					t.Errorf("reported %q", reported)
				}
				if len(d.Unreachable()) != 0 {
					t.Errorf("%+v", d.Unreachable())
				}
			})
		})
	}
}

// TestOneProviderIsAwayAndTheOtherGoesOn asks two providers at once.
func TestOneProviderIsAwayAndTheOtherGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		gone := &flaky{from: start, until: start.Add(5 * time.Minute), away: errRefused}
		well := &flaky{latency: time.Second}
		d, err := New(Config{
			Lanes:    []Lane{{Provider: provider.Provider{Name: "gone"}, Model: gone}, {Provider: provider.Provider{Name: "well"}, Model: well}},
			Settings: settings.New(settings.Plan),
		})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := d.Ask(t.Context(), &llm.Request{Model: "gone/m"}); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := d.Ask(t.Context(), &llm.Request{Model: "well/m"}); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("the other took %v", took)
				}
			})
		}
		time.Sleep(40 * time.Second)
		if o := d.Unreachable(); len(o) != 1 || o[0].Text(time.Now()) != "gone is unreachable for 40s: connection refused; waits up to 10m0s" {
			t.Errorf("%+v", o)
		}
		wg.Wait()
	})
}

// TestGivesUpBeyondTheLimit: calls that wait too long fail together, later ones fail soon, and the
// error says where and what to do. Once the server is back, calls are answered.
func TestGivesUpBeyondTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &flaky{from: start, until: start.Add(time.Hour), away: errRefused}
		d := dispatcher(t, f, provider.Provider{BaseURL: "http://127.0.0.1:9/v1"}, waiting(time.Minute))
		for _, r := range d.All(t.Context(), asked(30, 10, 1)) {
			e := llm.AsError(r.Err)
			if e == nil || e.Kind != llm.KindTransport || e.Uncertain || !strings.Contains(e.Message, "lab is unreachable for 1m0s: connection refused at http://127.0.0.1:9/v1; make sure that the server is running") || !strings.Contains(e.Message, "--unreachable") {
				t.Fatalf("%v", r.Err)
			}
		}
		if took := time.Since(start); took < time.Minute || took > 66*time.Second {
			t.Errorf("gave up after %v", took)
		}
		before := time.Now()
		for range 5 {
			if _, err := d.Ask(t.Context(), asked(1, 10, 1)[0]); llm.AsError(err).Code != codeUnreachable {
				t.Fatal(err)
			}
		}
		if took := time.Since(before); took > 0 {
			t.Errorf("later calls waited for %v", took)
		}
		time.Sleep(time.Until(f.until))
		if _, err := d.Ask(t.Context(), asked(1, 10, 1)[0]); err != nil {
			t.Error(err)
		}
	})
}

// TestCallsThatMayHaveBeenServed distinguishes a call that makes its server crash, which is retried
// like any failure, from a server that is down, which is waited for.
func TestCallsThatMayHaveBeenServed(t *testing.T) {
	t.Parallel()
	cut := &llm.Error{Kind: llm.KindTransport, Message: "the server reset the connection", Unreachable: true, Uncertain: true}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		proxied := &watched{flaky{from: start, until: start.Add(5 * time.Minute), away: cut}} // whatever is sent is cut off
		d := dispatcher(t, proxied, provider.Provider{}, waiting(10*time.Minute))
		resp, err := d.Ask(t.Context(), asked(1, 10, 1)[0])
		if err != nil || len(proxied.tries) != 1 || resp.Metadata.Attempts != 2 {
			t.Errorf("%d calls were sent to a server that is away: %v", len(proxied.tries), err)
		}
		if proxied.looks > 70 {
			t.Errorf("looked %d times", proxied.looks)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		poison := &watched{}
		calls := 0
		crash := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			calls++
			poison.from, poison.until = time.Now(), time.Now().Add(20*time.Second) // it is started again
			return nil, cut
		})
		d := dispatcher(t, crashing{crash, poison}, provider.Provider{}, waiting(10*time.Minute))
		if _, err := d.Ask(t.Context(), asked(1, 10, 1)[0]); llm.KindOf(err) != llm.KindTransport || calls != 5 {
			t.Errorf("a call that makes the server crash was made %d times: %v", calls, err)
		}
	})
}

type crashing struct {
	llm.Model
	at *watched
}

func (c crashing) Alive(ctx context.Context) error { return c.at.Alive(ctx) }

// TestUnservedCostsNothing counts what is spent while a server is down.
func TestUnservedCostsNothing(t *testing.T) {
	t.Parallel()
	prices, err := price.Read(strings.NewReader(`{"models":{"lab/*":{"input":1,"output":1}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &flaky{from: start, until: start.Add(time.Minute), away: errRefused}
		d := dispatcher(t, f, provider.Provider{}, waiting(10*time.Minute, func(c *Config) {
			c.Prices, c.Budget = prices, budget.New(llm.Dollar, 0)
		}))
		resp, err := d.Ask(t.Context(), asked(1, 10, 1)[0])
		if err != nil {
			t.Fatal(err)
		}
		p, _ := prices.Find("lab/any")
		spent, reserved := d.Budget().Spent()
		if want := p.Cost(resp.Usage, false); spent != want || reserved != 0 || d.Stats().Uncertain != 0 || len(f.tries) < 5 {
			t.Errorf("spent %v, want %v; %v is reserved; %d tries", spent, want, reserved, len(f.tries))
		}
	})
}

// TestFallsBackFromAProviderThatIsAway: a call with a model to fall back to does not wait.
func TestFallsBackFromAProviderThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		gone := &flaky{from: start, until: start.Add(5 * time.Minute), away: errRefused}
		d, err := New(Config{
			Lanes:    []Lane{{Provider: provider.Provider{Name: "gone"}, Model: gone}, {Provider: provider.Provider{Name: "well"}, Model: &flaky{}}},
			Settings: settings.New(settings.Plan),
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			if _, err := d.Ask(t.Context(), &llm.Request{Model: "gone/m", Fallbacks: []string{"well/m"}}); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		if took := time.Since(start); took > 10*time.Second || len(gone.tries) > 10 {
			t.Errorf("took %v, %d tries", took, len(gone.tries))
		}
	})
}

// TestDrainEndsWaiting: a drain ends the waiting for a provider, and so does the end of a call's
// context.
func TestDrainEndsWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &flaky{from: start, until: start.Add(time.Hour), away: errRefused}
		d := dispatcher(t, f, provider.Provider{}, waiting(30*time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := d.Ask(ctx, asked(1, 10, 1)[0]); llm.KindOf(err) != llm.KindTimeout || !strings.Contains(err.Error(), "lab is unreachable for 10s") {
			t.Error(err)
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := d.Ask(t.Context(), asked(1, 10, 1)[0]); llm.KindOf(err) != llm.KindCanceled {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		before := time.Now()
		d.Drain()
		wg.Wait()
		if took := time.Since(before); took > 0 {
			t.Errorf("the drain took %v", took)
		}
	})
}

// TestSlowAnswersDoNotHoldOthersBack: a server returns whose answers take ten minutes. The other
// calls are sent as soon as it is clear that it is there.
func TestSlowAnswersDoNotHoldOthersBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &watched{flaky{from: start, until: start.Add(time.Minute), away: errRefused, latency: 10 * time.Minute}}
		d := dispatcher(t, f, provider.Provider{Limits: provider.Limits{Concurrency: 40}}, waiting(30*time.Minute))
		for _, r := range d.All(t.Context(), asked(40, 10, 1)) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		if took := time.Since(start); took > 12*time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

// TestReplicasAllAway: all servers of a provider are down, and one returns.
func TestReplicasAllAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := &flaky{from: start, until: start.Add(time.Hour), away: errRefused}
		b := &flaky{from: start, until: start.Add(3 * time.Minute), away: loading()}
		d, err := New(Config{
			Lanes:    []Lane{{Provider: provider.Provider{Name: "lab", BaseURLs: []string{"http://a", "http://b"}}, Replicas: []Replica{{Name: "a", Model: a}, {Name: "b", Model: b}}}},
			Settings: settings.New(settings.Plan),
		})
		if err != nil {
			t.Fatal(err)
		}
		var answered atomic.Int64
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if _, err := d.Ask(t.Context(), &llm.Request{Model: "lab/m", Session: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
				answered.Add(1)
			})
		}
		time.Sleep(time.Minute)
		if o := d.Unreachable(); len(o) != 1 || o[0].URL != "http://a and 1 more" {
			t.Errorf("%+v", o)
		}
		wg.Wait()
		if took := time.Since(b.until); answered.Load() != 50 || took > 30*time.Second || len(a.tries)+len(b.tries) > 300 {
			t.Errorf("%d answered %v after one was back; %d and %d tries", answered.Load(), took, len(a.tries), len(b.tries))
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWithoutALimitNobodyWaits: without a limit, a call that reaches no server fails like any
// other.
func TestWithoutALimitNobodyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{from: time.Now(), until: time.Now().Add(time.Hour), away: errRefused}
		d := dispatcher(t, f, provider.Provider{}, waiting(-1))
		if _, err := d.Ask(t.Context(), asked(1, 10, 1)[0]); llm.KindOf(err) != llm.KindTransport || len(f.tries) != 5 {
			t.Errorf("%d tries: %v", len(f.tries), err)
		}
	})
}

// onOutage returns a listener for outages alone, and onNotice one for notices.
func onOutage(f func(Outage)) func(Event) {
	return func(e Event) {
		if e.Outage != nil {
			f(*e.Outage)
		}
	}
}

func onNotice(f func(Notice)) func(Event) {
	return func(e Event) {
		if e.Notice != nil {
			f(*e.Notice)
		}
	}
}
