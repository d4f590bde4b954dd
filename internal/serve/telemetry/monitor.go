// Part monitor serves what a process that plays a run, or asks many questions, is doing, as a
// page for Prometheus.
//
// It promises that a reader never holds up a call, and that the page has no text of requests or
// answers and no key.
//
// It does not count: packages dispatch and runview do.

package telemetry

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/kit/auth"
	"parley/internal/kit/sketch"
	"parley/llm"
)

// Calls is what sends the calls. Package dispatch implements it.
type Calls interface {
	Stats() dispatch.Snapshot
	Budget() *budget.Budget
	Limits() []dispatch.Limit
}

// MonitorRun is the state of a run.
type MonitorRun struct {
	Episodes         map[string]int // by state
	Paused, Draining bool
}

// Prefix begins the name of every metric of a run.
const Prefix = "parley_"

// MonitorPage writes the page. run is nil if no run is played.
func MonitorPage(calls Calls, run func() MonitorRun, began time.Time) *Page {
	p := &Page{}
	AddStats(p, calls.Stats())
	gauge := func(name, help string, v float64, labels ...string) {
		p.Add(Gauge, Prefix+name, help, v, labels...)
	}
	spent, reserved := calls.Budget().Spent()
	gauge("spent_dollars", "Spent in all, earlier processes included.", spent.Dollars())
	gauge("reserved_dollars", "Set aside for calls in flight.", reserved.Dollars())
	gauge("budget_dollars", "What may be spent in all; 0 is no limit.", calls.Budget().Limit().Dollars())
	addLimits(p, calls.Limits())
	if run != nil {
		r := run()
		for _, state := range []string{"ended", "failed", "playing", "waiting"} {
			gauge("episodes", "Episodes by state.", float64(r.Episodes[state]), "state", state)
		}
		gauge("paused", "1 while no calls are sent.", truth(r.Paused))
		gauge("draining", "1 while no episodes begin.", truth(r.Draining))
	}
	p.AddProcess(began)
	return p
}

// AddStats adds the calls of a process: those that ended, by model, and those that have not.
func AddStats(p *Page, stats dispatch.Snapshot) {
	AddCalls(p, Prefix, stats)
	addErrors(p, stats)
	for _, model := range stats.Names() {
		m := stats.Models[model]
		p.AddHistogram(Prefix+"latency_seconds", "Time of a provider to answer.", monitorHistogram(&m.Latency), "model", model)
	}
	p.Add(Gauge, Prefix+"in_flight", "Calls sent to providers and not answered.", float64(stats.InFlight))
	p.Add(Gauge, Prefix+"waiting", "Calls that wait for a provider's limits.", float64(stats.Waiting))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// AddCalls adds what was sent to providers, by model.
func AddCalls(p *Page, prefix string, stats dispatch.Snapshot) {
	counter := func(name, help string, of func(*dispatch.ModelStats) float64, labels ...string) {
		for _, model := range stats.Names() {
			s := stats.Models[model]
			p.Add(Counter, prefix+name, help, of(&s), append([]string{"model", model}, labels...)...)
		}
	}
	counter("calls_total", "Calls that ended.", func(s *dispatch.ModelStats) float64 { return float64(s.Calls) })
	counter("calls_failed_total", "Calls that ended with an error.", func(s *dispatch.ModelStats) float64 { return float64(s.Failed) })
	counter("attempts_total", "Calls sent to providers.", func(s *dispatch.ModelStats) float64 { return float64(s.Attempts) })
	counter("retries_total", "Calls sent again after a failure.", func(s *dispatch.ModelStats) float64 { return float64(s.Retried) })
	counter("rate_limited_total", "Calls that a provider refused for its limits.", func(s *dispatch.ModelStats) float64 { return float64(s.RateLimited) })
	counter("cost_dollars_total", "Cost of calls.", func(s *dispatch.ModelStats) float64 { return s.Cost.Dollars() })
	counter("tokens_total", "Tokens of calls.", func(s *dispatch.ModelStats) float64 { return float64(s.Usage.Input) }, "type", "input")
	counter("tokens_total", "Tokens of calls.", func(s *dispatch.ModelStats) float64 { return float64(s.Usage.Output) }, "type", "output")
}

// addErrors adds the failed attempts by model and kind.
func addErrors(p *Page, stats dispatch.Snapshot) {
	for _, model := range stats.Names() {
		for _, kind := range llm.Kinds() {
			if n := stats.Models[model].Errors[kind]; n > 0 {
				p.Add(Counter, Prefix+"errors_total", "Failed attempts by kind.", float64(n), "model", model, "kind", string(kind))
			}
		}
	}
}

// addLimits adds the limits of each server, as far as they are known.
func addLimits(p *Page, limits []dispatch.Limit) {
	labels := func(l dispatch.Limit) []string {
		return []string{"provider", l.Provider, "server", l.Server, "models", l.Models}
	}
	for _, l := range limits {
		p.Add(Gauge, Prefix+"server_in_flight", "Calls in flight at a server.", float64(l.InFlight), labels(l)...)
	}
	for _, l := range limits {
		p.Add(Gauge, Prefix+"server_concurrency", "Calls that may be in flight at a server.", float64(l.Concurrency), labels(l)...)
	}
	for _, l := range limits {
		for _, rate := range []struct {
			unit string
			of   float64
		}{{"requests", l.Requests}, {"tokens", l.Tokens}, {"input_tokens", l.Input}, {"output_tokens", l.Output}} {
			if rate.of > 0 {
				p.Add(Gauge, Prefix+"server_limit_per_minute", "Rates that a server allows.", rate.of, append(labels(l), "unit", rate.unit)...)
			}
		}
	}
}

// monitorHistogram returns the durations of a sketch as a monitorHistogram.
func monitorHistogram(s *sketch.Sketch) *Histogram {
	h := NewHistogram(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
	s.Buckets(func(low, high time.Duration, n int) { h.ObserveN((low+high).Seconds()/2, n) })
	return h
}

// Serve serves the page at /metrics until end is called. keys are those of which readers must send
// one; none are needed if there are none.
func Serve(ctx context.Context, ln net.Listener, keys []string, page func() *Page) (end func()) {
	guard := auth.Guard{Keys: auth.New(keys), Refuse: refuse}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { page().Serve(w) })
	srv := guard.Server(mux)
	srv.BaseContext = func(net.Listener) context.Context { return ctx }
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(ln) }) // it ends when it is closed
	return func() {
		_ = srv.Close() // nobody waits for the page of a process that ends
		wg.Wait()
	}
}

func refuse(w http.ResponseWriter, _ *http.Request, why auth.Refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(why.Status)
	if b, err := json.Marshal(map[string]map[string]string{"error": {"code": why.Code, "message": why.Message}}); err == nil {
		_, _ = w.Write(append(b, '\n')) // the client may be gone
	}
}
