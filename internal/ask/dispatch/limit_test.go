package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/llm"
)

// asked returns n requests of about the same size.
func asked(n, bytes, maxTokens int) []*llm.Request {
	text := strings.Repeat("word ", bytes/5)
	out := make([]*llm.Request, n)
	for i := range out {
		out[i] = &llm.Request{Model: "lab/any", Messages: []llm.Message{llm.User(text)}, MaxTokens: maxTokens, Sample: i, Order: int64(i)}
	}
	return out
}

func dispatcher(t *testing.T, model llm.Model, p provider.Provider, change ...func(*Config)) *Dispatcher {
	t.Helper()
	p.Name = "lab"
	c := Config{Settings: settings.New(settings.Library), Lanes: []Lane{{Provider: p, Model: model}}}
	for _, f := range change {
		f(&c)
	}
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// retries returns settings with this rule.
func retries(rule func(*settings.Retry)) *settings.Settings {
	s := settings.New(settings.Library)
	rule(&s.Retry)
	return s
}

func never(r *settings.Retry) { r.Retries = 0 }

// TestPaceReachesLimits makes thousands of calls to a provider with real limits in simulated time:
// nearly all of the limit must be used, with few refusals, whether the user configured the limit or
// only the headers report it.
func TestPaceReachesLimits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		server     rules
		configured provider.Limits
		counting   provider.Counting
		maxTokens  int
		refused    float64 // share of requests at most
	}{
		{"requests configured", rules{rpm: 3000}, provider.Limits{RPM: 3000}, "", 100, 0.005},
		{"requests configured, bucket of a second", rules{rpm: 3000, burst: time.Second}, provider.Limits{RPM: 3000}, "", 100, 0.005},
		{"requests configured, no headers", rules{rpm: 3000, burst: time.Second, silent: true}, provider.Limits{RPM: 3000}, "", 100, 0.005},
		{"requests by headers", rules{rpm: 3000}, provider.Limits{}, "", 100, 0.005},
		{"requests by headers, bucket of a second", rules{rpm: 3000, burst: time.Second}, provider.Limits{}, "", 100, 0.005},
		{"tokens configured", rules{tpm: 900_000, burst: 2 * time.Second}, provider.Limits{TPM: 900_000}, "", 300, 0.005},
		{"tokens by headers", rules{tpm: 900_000, burst: 2 * time.Second}, provider.Limits{}, "", 300, 0.005},
		{"tokens by headers, a minute", rules{tpm: 900_000}, provider.Limits{}, "", 0, 0.005},
		{"input configured", rules{itpm: 900_000, burst: 2 * time.Second, used: true}, provider.Limits{ITPM: 900_000}, provider.CountUsed, 300, 0.005},
		{"output by headers", rules{otpm: 300_000, burst: 4 * time.Second, used: true}, provider.Limits{}, provider.CountUsed, 1000, 0.005},
		{"output configured", rules{otpm: 300_000, used: true}, provider.Limits{OTPM: 300_000}, provider.CountUsed, 1000, 0.005},
		{"all", rules{rpm: 3000, itpm: 1_000_000, otpm: 400_000, burst: 5 * time.Second, used: true}, provider.Limits{}, provider.CountUsed, 1000, 0.005},
	}
	for i, tt := range tests {
		latencies := []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 4 * time.Second}
		switch {
		case testing.Short() && i%4 != 3: // some with headers, and the last
			continue
		case testing.Short():
			latencies = latencies[1:2]
		}
		for _, latency := range latencies {
			t.Run(fmt.Sprintf("%s/%v", tt.name, latency), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := server{rules: tt.server}
					s.latency, s.output, s.perByte = latency, 100, 0.25
					d := dispatcher(t, &s, provider.Provider{Dialect: "openai", Limits: tt.configured, Counting: tt.counting})
					const n = 10_000
					start := time.Now()
					d.All(t.Context(), asked(n, 1200, tt.maxTokens))
					took := time.Since(start)
					if s.answered != n {
						t.Fatalf("answered %d of %d", s.answered, n)
					}
					// The ideal spends the full bucket at once and the rest at the rate. The first
					// round trips, before anything is known, and the last do not count.
					ideal := time.Duration(0)
					per := need{1, max(300, float64(tt.maxTokens)), 300, 100}
					for i, l := range s.limits() {
						if l > 0 {
							ideal = max(ideal, time.Duration((n*per[i]-s.full(i))/l*float64(time.Minute)))
						}
					}
					share := float64(ideal) / float64(took-2*latency)
					t.Logf("share %.3f of the limit, %d refused, %d in flight", share, s.refused, s.peakInFlight)
					least := 0.98
					if s.otpm > 0 {
						least = 0.965 // how much an answer will be is known only when it is there
					}
					if share < least {
						t.Errorf("reached %.3f of the limit", share)
					}
					if r := float64(s.refused) / n; r > tt.refused {
						t.Errorf("%d refused, %.4f of the requests", s.refused, r)
					}
				})
			})
		}
	}
}

// answersAfter is a model whose answers take as long as latency, and that never refuses.
func answersAfter(latency time.Duration) llm.Model {
	return llm.Func(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
		select {
		case <-time.After(latency):
			return &llm.Response{Text: "yes", Finish: llm.FinishStop, Usage: llm.Usage{Input: 10, Output: 10}}, nil
		case <-ctx.Done():
			return nil, llm.ContextError(ctx)
		}
	})
}

func TestQueueServesLowestOrderFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var served []int64
		m := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
			mu.Lock()
			served = append(served, req.Order)
			mu.Unlock()
			time.Sleep(time.Second)
			return &llm.Response{}, nil
		})
		d := dispatcher(t, m, provider.Provider{Limits: provider.Limits{Concurrency: 1}})
		var wg sync.WaitGroup
		for _, order := range []int64{0, 9, 3, 7, 1, 5} {
			wg.Go(func() { _, _ = d.Ask(t.Context(), &llm.Request{Model: "lab/m", Order: order}) })
			synctest.Wait()
		}
		wg.Wait()
		if want := []int64{0, 1, 3, 5, 7, 9}; !slices.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
	})
}

func TestModelsShareOneLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{rules: rules{rpm: 600, burst: time.Second, latency: 100 * time.Millisecond, silent: true}}
		d := dispatcher(t, s, provider.Provider{
			Limits:      provider.Limits{RPM: 600},
			ModelLimits: map[string]provider.Limits{"own-*": {RPM: 60}},
		})
		reqs := asked(600, 10, 1)
		for i, r := range reqs {
			r.Model = fmt.Sprintf("lab/m%d", i%3)
		}
		d.All(t.Context(), reqs)
		if s.refused > 0 {
			t.Errorf("three models on one key were refused %d times", s.refused)
		}
		start := time.Now()
		own := asked(5, 10, 1)
		for _, r := range own {
			r.Model = "lab/own-1/tuned"
		}
		d.All(t.Context(), own)
		if took := time.Since(start); took < 4*time.Second {
			t.Errorf("5 calls at 60 a minute of its own took %v", took)
		}
	})
}

func TestGrowthStopsWhenTheServerOnlyQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// One answer at a time, 10 ms each, and never a refusal.
		turn := make(chan struct{}, 1)
		peak, now := 0, 0
		var mu sync.Mutex
		m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			mu.Lock()
			now++
			peak = max(peak, now)
			mu.Unlock()
			turn <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			<-turn
			mu.Lock()
			now--
			mu.Unlock()
			return &llm.Response{}, nil
		})
		d := dispatcher(t, m, provider.Provider{})
		d.All(t.Context(), asked(3000, 10, 1))
		if peak > 300 {
			t.Errorf("%d calls piled up at a server that answers one at a time", peak)
		}
	})
}

func TestOutOfCreditStopsTheProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			calls++
			time.Sleep(time.Second)
			return nil, &llm.Error{Kind: llm.KindQuota, Status: 429, Code: "insufficient_quota", Message: "pay first"}
		})
		d := dispatcher(t, m, provider.Provider{Limits: provider.Limits{Concurrency: 1}})
		for _, r := range d.All(t.Context(), asked(50, 10, 1)) {
			if llm.KindOf(r.Err) != llm.KindQuota {
				t.Fatalf("got %v", r.Err)
			}
		}
		if calls != 1 {
			t.Errorf("asked %d times of an account without credit", calls)
		}
		time.Sleep(2 * time.Minute)
		_, _ = d.Ask(t.Context(), asked(1, 10, 1)[0])
		if calls != 2 {
			t.Errorf("after a while it was asked %d times in all, want 2", calls)
		}
	})
}

func TestDrainFinishesWhatFlies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := dispatcher(t, answersAfter(10*time.Second), provider.Provider{Limits: provider.Limits{Concurrency: 3}})
		var results []llm.Result
		var wg sync.WaitGroup
		wg.Go(func() { results = d.All(t.Context(), asked(10, 10, 1)) })
		time.Sleep(time.Second)
		d.Drain()
		wg.Wait()
		ok, canceled := 0, 0
		for _, r := range results {
			switch {
			case r.Err == nil:
				ok++
			case llm.KindOf(r.Err) == llm.KindCanceled:
				canceled++
			}
		}
		if ok != 3 || canceled != 7 {
			t.Errorf("%d finished and %d refused, want 3 and 7", ok, canceled)
		}
	})
}

func TestWaitingCallLeavesTheQueueWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := dispatcher(t, answersAfter(time.Minute), provider.Provider{Limits: provider.Limits{Concurrency: 1}})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = d.Ask(t.Context(), asked(1, 10, 1)[0]) })
		synctest.Wait()
		req := asked(1, 10, 1)[0]
		req.Deadline = 5 * time.Second
		start := time.Now()
		_, err := d.Ask(t.Context(), req)
		if llm.KindOf(err) != llm.KindTimeout || !strings.Contains(err.Error(), "waited 5s for the provider's limits") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("a deadline of 5s took %v", took)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("went home"))
		if _, err := d.Ask(ctx, asked(1, 10, 1)[0]); err == nil {
			t.Error("a call under a dead context was answered")
		}
		wg.Wait()
	})
}

// TestFull: accounts are full when enough calls wait at all of them, and not when one has none.
func TestFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := llm.Func(func(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
			<-ctx.Done()
			return nil, llm.ContextError(ctx)
		})
		lane := func(name string) Lane {
			return Lane{Provider: provider.Provider{Name: name, Limits: provider.Limits{Concurrency: 1}}, Model: stuck}
		}
		d, err := New(Config{Lanes: []Lane{lane("a"), lane("b")}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ask := func(model string, n int) {
			reqs := make([]*llm.Request, n)
			for i := range reqs {
				reqs[i] = &llm.Request{Model: model, Sample: i}
			}
			go d.All(ctx, reqs)
			synctest.Wait()
		}
		for _, c := range []struct {
			model string
			calls int
			full  bool
		}{{"a/x", 1, false}, {"b/x", 1, false}, {"a/x", ahead, false}, {"b/x", ahead - 1, false}, {"b/x", 1, true}} {
			if ask(c.model, c.calls); d.Full() != c.full {
				t.Errorf("%d more calls of %s: full is %t", c.calls, c.model, !c.full)
			}
		}
		cancel()
		synctest.Wait()
	})
}
