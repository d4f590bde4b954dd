package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/kit/auth"
	"parley/internal/run/cluster"
	"parley/internal/run/engine"
	"parley/internal/serve/telemetry"
	"parley/llm"
)

// metricsFlags are the flags of commands that Prometheus can watch.
type metricsFlags struct {
	Metrics       string `placeholder:"HOST:PORT" help:"Serve metrics for Prometheus at this address, such as 127.0.0.1:9100, under /metrics."`
	MetricsKeyEnv string `placeholder:"NAME" help:"Environment variable with the keys for --metrics, separated by commas. Without it, only this machine is served."`
}

// monitor is how machines watch a command: a page for Prometheus, and an OpenTelemetry collector.
type monitor struct {
	ln       net.Listener // of the page; nil: there is none
	keys     []string     // of the page
	endPage  func()       // nil: it is not served
	exporter *telemetry.Exporter
	workers  *cluster.Coordinator // nil: the run has none
}

// openMonitor opens what the flags and the environment name.
func (f *metricsFlags) openMonitor(ctx context.Context, s *State) (w *monitor, err error) {
	w = &monitor{}
	if f.Metrics != "" {
		if w.keys, err = auth.KeysFrom(s.Env, "--metrics-key-env", f.MetricsKeyEnv); err != nil {
			return nil, exit.AsUsage(err)
		}
		if w.ln, err = (&net.ListenConfig{}).Listen(ctx, "tcp", f.Metrics); err != nil {
			return nil, exit.Usagef("--metrics: %w", err)
		}
		if at, ok := w.ln.Addr().(*net.TCPAddr); (!ok || !at.IP.IsLoopback()) && len(w.keys) == 0 {
			return nil, errors.Join(exit.Usagef("--metrics %s would serve other machines without a key: set one with --metrics-key-env", f.Metrics), w.ln.Close())
		}
	}
	if w.exporter, err = telemetry.Open(ctx, s.Env, "parley", Version(), s.tellError); err != nil {
		w.closePage()
		return nil, exit.AsUsage(err)
	}
	return w, nil
}

// begin shows what calls and run say from now on. run is nil if no run is played.
func (w *monitor) begin(ctx context.Context, s *State, calls telemetry.Calls, run func() telemetry.RunState) {
	w.exporter.Know(calls.Providers())
	began := time.Now()
	page := func() *telemetry.Page {
		p := telemetry.RunPage(calls, run, began)
		if w.workers != nil {
			addDivision(p, w.workers.Status())
		}
		return p
	}
	w.show(ctx, s, page)
}

// show shows a page from now on.
func (w *monitor) show(ctx context.Context, s *State, page func() *telemetry.Page) {
	w.exporter.Measure(page)
	if w.ln != nil {
		fmt.Fprintf(s.err, "parley: metrics at http://%s/metrics\n", w.ln.Addr())
		w.endPage = telemetry.Serve(ctx, w.ln, w.keys, page)
	}
}

// ask asks with a, watched.
func (w *monitor) ask(ctx context.Context, s *State, a bulk.Asker, m *bulk.Asking) (note string) {
	if calls, ok := a.(telemetry.Calls); ok {
		w.begin(ctx, s, calls, nil)
	}
	if play := w.exporter.StartTrace("ask", ""); play != nil {
		defer play.End("done")
		a = watchedAsker{a, play}
	}
	return m.Run(ctx, a)
}

// close ends the page, and sends what remains.
func (w *monitor) close(ctx context.Context, s *State) {
	w.closePage()
	closeTelemetry(ctx, s, w.exporter)
}

func (w *monitor) closePage() {
	switch {
	case w.endPage != nil:
		w.endPage()
	case w.ln != nil:
		_ = w.ln.Close() // nobody was served
	}
}

// closeTelemetry sends what remains, for a few seconds. A missing collector is no reason to fail.
func closeTelemetry(ctx context.Context, s *State, to *telemetry.Exporter) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := to.Close(late); err != nil {
		s.tell(err.Error())
	}
}

// traceEvent makes spans and metrics of what the engine does.
func traceEvent(p *telemetry.Trace, e engine.Event) {
	switch {
	case e.Replied != nil:
		p.Replied(e.Replied)
	case e.Ended != nil:
		p.Ended(e.Ended)
	}
}

// watchedAsker makes spans and metrics of questions.
type watchedAsker struct {
	bulk.Asker
	play *telemetry.Trace
}

// Each implements bulk.Asker.
func (a watchedAsker) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(i int, r llm.Result)) int {
	var mu sync.Mutex
	asked, n := map[int]*llm.Request{}, 0
	return a.Asker.Each(ctx, func(yield func(*llm.Request) bool) {
		for req := range reqs {
			mu.Lock()
			asked[n] = req
			n++
			mu.Unlock()
			if !yield(req) {
				return
			}
		}
	}, func(i int, r llm.Result) {
		mu.Lock()
		req := asked[i]
		delete(asked, i)
		mu.Unlock()
		a.play.Asked(req, r)
		done(i, r)
	})
}

// addDivision adds to a page how a run is divided among workers. Nil: it is not.
func addDivision(p *telemetry.Page, st *cluster.Status) {
	if st == nil {
		return
	}
	gauge := func(name, help string, v float64, labels ...string) {
		p.Add(telemetry.Gauge, telemetry.Prefix+name, help, v, labels...)
	}
	const lots = "Lots of episodes by state. If lots wait, more workers would help."
	gauge("lots", lots, float64(st.Lots.Waiting), "state", "waiting")
	gauge("lots", lots, float64(st.Lots.Leased), "state", "leased")
	gauge("lots", lots, float64(st.Lots.Done), "state", "done")
	gauge("workers", "Workers that play the run.", float64(st.Playing()))
	gauge("log_lag_messages", "Messages of workers that are not in the run file yet.", float64(st.Lag))
	for _, name := range slices.Sorted(maps.Keys(st.Accounts)) {
		a := st.Accounts[name]
		for _, worker := range slices.Sorted(maps.Keys(a.Shares)) {
			gauge("share", "The part of an account's limits that a worker may use, from 0 to 1.", a.Shares[worker], "account", name, "worker", worker)
		}
	}
	if m := st.Money; m != nil {
		gauge("workers_set_aside_dollars", "What is set aside for workers: what they may still spend.", m.AllAllotted().Dollars())
		gauge("workers_at_risk_dollars", "What lost workers may have spent.", m.AtRisk.Dollars())
	}
}
