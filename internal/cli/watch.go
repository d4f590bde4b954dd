package cli

import (
	"context"
	"iter"
	"sync"
	"time"

	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/run/engine"
	"parley/internal/serve/telemetry"
	"parley/llm"
)

// watch is how machines watch a command: a page for Prometheus, and an OpenTelemetry collector.
type watch struct {
	page    *metricsServer
	to      *telemetry.Exporter
	divided *divided // nil: the run has no workers
}

// watch opens what the flags and the environment name.
func (f *metricsFlags) watch(ctx context.Context, s *State) (w watch, err error) {
	if w.page, err = f.listen(ctx, s); err != nil {
		return w, err
	}
	if w.to, err = telemetry.Open(ctx, s.Env, "parley", Version(), s.tellError); err != nil {
		w.page.close()
	}
	return w, exit.AsUsage(err)
}

// begin shows what calls and run say from now on. run is nil if no run is played.
func (w watch) begin(ctx context.Context, s *State, calls telemetry.Calls, run func() telemetry.MonitorRun) {
	began := time.Now()
	page := func() *telemetry.Page {
		p := telemetry.MonitorPage(calls, run, began)
		w.divided.add(p)
		return p
	}
	w.show(ctx, s, page)
}

// show shows a page from now on.
func (w watch) show(ctx context.Context, s *State, page func() *telemetry.Page) {
	w.page.serve(ctx, s, page)
	w.to.Measure(page)
}

// ask asks with a, watched.
func (w watch) ask(ctx context.Context, s *State, a bulk.Asker, m *bulk.Asking) (note string) {
	if calls, ok := a.(telemetry.Calls); ok {
		w.begin(ctx, s, calls, nil)
	}
	if play := w.to.Play("ask", ""); play != nil {
		defer play.End("done")
		a = watchedAsker{a, play}
	}
	return m.Run(ctx, a)
}

// close ends the page, and sends what remains.
func (w watch) close(ctx context.Context, s *State) {
	w.page.close()
	closeTelemetry(ctx, s, w.to)
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
func traceEvent(p *telemetry.Play, e engine.Event) {
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
	play *telemetry.Play
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
