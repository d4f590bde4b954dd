package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/provider"
	"parley/llm"
)

// limits measures how much of a provider's limit is used and how many calls it refuses, with the limit in the
// client's plan and with only the headers.
func limits(b *bench) error {
	b.printf("(a) share of the provider's limit in the steady state, and refusals\n")
	b.printf("    target: share 0.98; refused 0.5%% with the limit set, 2%% with headers only\n\n")
	b.printf("    %-34s %9s %9s %9s %10s\n", "limit", "client", "share", "refused", "in flight")
	type row struct {
		name  string
		flags string
		plan  plan
		share func(result) float64
	}
	base := plan{Client: "parley", Dialect: "openai", Calls: 2500, Bytes: 400, MaxTokens: 64, Skip: 3 * time.Second}
	with := func(change func(*plan)) plan { p := base; change(&p); return p }
	rows := []row{
		{"3,000 requests/min, bucket 1 s", "--rpm 3000 --burst 1s", base, func(r result) float64 { return r.Requests / 50 }},
		{"3,000 requests/min, bucket 60 s", "--rpm 3000 --burst 60s", with(func(p *plan) { p.Calls = 5000; p.Skip = 20 * time.Second }), func(r result) float64 { return r.Requests / 50 }},
		{"600,000 tokens/min, bucket 2 s", "--tpm 600000 --burst 2s", with(func(p *plan) { p.MaxTokens = 200 }), func(r result) float64 { return r.Charged / 10000 }},
		{"Anthropic input, 600,000/min", "--itpm 600000 --burst 4s", with(func(p *plan) { p.Dialect = "anthropic" }), func(r result) float64 { return r.Input / 10000 }},
		{"Anthropic output, 120,000/min", "--otpm 120000 --burst 4s", with(func(p *plan) { p.Dialect, p.Calls = "anthropic", 1500 }), func(r result) float64 { return r.Output / 2000 }},
	}
	for _, row := range rows {
		for _, known := range []bool{true, false} {
			p := row.plan
			name := "headers"
			if known {
				name = "limit set"
				setLimits(&p, row.flags)
			}
			s, err := b.sim(append(strings.Fields(row.flags), "--latency", "lognormal:500ms,0.3")...)
			if err != nil {
				return err
			}
			p.URL = s.url + "/v1"
			r, err := b.client(p)
			st, statsErr := s.stats()
			s.stop()
			if err != nil {
				return err
			}
			if statsErr != nil {
				return statsErr
			}
			b.printf("    %-34s %9s %9.3f %8.2f%% %10d\n", row.name, name, row.share(r),
				100*float64(st.RateLimited)/float64(st.Requests), st.InFlightMax)
		}
	}
	b.printf("\n")
	return nil
}

// setLimits puts the limits of the server's flags into the client's plan.
func setLimits(p *plan, flags string) {
	f := strings.Fields(flags)
	for i, name := range f {
		to := map[string]*float64{"--rpm": &p.RPM, "--tpm": &p.TPM, "--itpm": &p.ITPM, "--otpm": &p.OTPM}[name]
		if to != nil {
			_, _ = fmt.Sscan(f[i+1], to)
		}
	}
}

// flight measures ten thousand calls in flight at a latency of one second.
func flight(b *bench) error {
	const n = 10_000
	b.printf("(b) %d calls in flight at 1 s each; cold, then twice on warm connections\n", n)
	b.printf("    target: no slower than the plain loop; under 450 MB, 300 MB with HTTP/2\n\n")
	b.printf("    %-28s %8s %8s %8s %10s %8s\n", "client", "cold s", "warm s", "warm s", "peak MB", "failed")
	for _, row := range []struct {
		name  string
		http2 bool
		who   string
	}{
		{"plain net/http, HTTP/1.1", false, "plain"},
		{"parley, HTTP/1.1", false, "parley"},
		{"plain net/http, HTTP/2", true, "plain"},
		{"parley, HTTP/2", true, "parley"},
	} {
		s, err := b.sim("--latency", "1s")
		if err != nil {
			return err
		}
		r, err := b.client(plan{
			Client: row.who, Dialect: "openai", URL: s.url + "/v1", HTTP2: row.http2,
			Calls: n, Concurrency: n, Bytes: 400, MaxTokens: 64, Rounds: 3,
		})
		s.stop()
		if err != nil {
			return err
		}
		b.printf("    %-28s %8.2f %8.2f %8.2f %10.0f %8d\n", row.name, r.Walls[0], r.Walls[1], r.Walls[2], r.PeakMB, r.Failed)
	}
	b.printf("\n")
	return nil
}

// cpu measures the client's CPU for a call beside the official SDKs.
func cpu(b *bench) error {
	b.printf("(c) CPU of the client per call, 64 wide, no latency; least of three runs each, taken in turn\n")
	b.printf("    target: at most half of the official SDK's\n\n")
	b.printf("    %-12s %8s %12s %12s %8s %8s\n", "format", "prompt", "SDK µs", "parley µs", "ratio", "plain µs")
	for _, row := range []struct {
		dialect, sdk string
		bytes, calls int
	}{
		{"openai", "openai-sdk", 400, 20_000},
		{"openai", "openai-sdk", 40_000, 5_000},
		{"anthropic", "anthropic-sdk", 400, 20_000},
		{"anthropic", "anthropic-sdk", 40_000, 5_000},
	} {
		s, err := b.sim()
		if err != nil {
			return err
		}
		least := map[string]float64{}
		for range 3 {
			for _, who := range []string{row.sdk, "parley", "plain"} {
				r, err := b.client(plan{
					Client: who, Dialect: row.dialect, URL: s.url + "/v1", Calls: row.calls, Concurrency: 64, Bytes: row.bytes, MaxTokens: 64,
				})
				if err != nil {
					s.stop()
					return err
				}
				us := r.CPU / float64(row.calls) * 1e6
				if v, ok := least[who]; !ok || us < v {
					least[who] = us
				}
			}
		}
		s.stop()
		b.printf("    %-12s %7dB %12.0f %12.0f %8.2f %8.0f\n", row.dialect, row.bytes, least[row.sdk], least["parley"],
			least["parley"]/least[row.sdk], least["plain"])
	}
	b.printf("\n")
	return nil
}

// dispatchOnly measures dispatch with a model that answers at once.
func dispatchOnly(b *bench) error {
	b.printf("(d) dispatch itself: every layer, a model that answers at once, %d cores\n", runtime.GOMAXPROCS(0))
	b.printf("    target: 300,000 calls a second on two cores\n\n")
	best, err := dispatchRate()
	if err != nil {
		return err
	}
	b.printf("    %.0f calls a second, best of three\n\n", best)
	return waiting(b)
}

// dispatchRate returns the calls a second through dispatch, best of three.
func dispatchRate() (best float64, err error) {
	const n = 1_000_000
	instant := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
		return &llm.Response{Text: "yes", Finish: llm.FinishStop, Usage: llm.Usage{Input: 20, Output: 1}}, nil
	})
	d, err := dispatch.New(dispatch.Config{
		Lanes:  []dispatch.Lane{{Provider: provider.Provider{Name: "sim", Limits: provider.Limits{RPM: 1e12, Concurrency: 1000}}, Model: instant}},
		Budget: budget.New(1_000_000*llm.Dollar, 0),
	})
	if err != nil {
		return 0, err
	}
	reqs := slices.Repeat([]*llm.Request{{Model: "sim/small", MaxTokens: 10, Messages: []llm.Message{llm.User("Say yes.")}}}, n)
	for range 3 {
		start := time.Now()
		for _, r := range d.All(context.Background(), reqs) {
			if r.Err != nil {
				return 0, r.Err
			}
		}
		best = max(best, n/time.Since(start).Seconds())
	}
	return best, nil
}

// waiting measures what a call costs that waits: a hundred thousand at a provider that
// does not answer.
func waiting(b *bench) error {
	const n = 100_000
	stuck := llm.Func(func(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
		<-ctx.Done()
		return nil, llm.AsError(ctx.Err())
	})
	d, err := dispatch.New(dispatch.Config{Lanes: []dispatch.Lane{{Provider: provider.Provider{Name: "sim", Limits: provider.Limits{Concurrency: 1}}, Model: stuck}}})
	if err != nil {
		return err
	}
	reqs := make([]*llm.Request, n)
	for i := range reqs {
		reqs[i] = &llm.Request{Model: "sim/small", Sample: i}
	}
	ctx, cancel := context.WithCancel(context.Background())
	before := heap()
	done := make(chan struct{})
	go func() { d.All(ctx, reqs); close(done) }()
	time.Sleep(2 * time.Second) // until all that will be taken ahead is
	per := (heap() - before) / n
	cancel()
	<-done
	b.printf("    %.0f bytes for each of %d calls waiting in one All, goroutine stacks included\n\n", per, n)
	return nil
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}
