package cli

import (
	"context"
	"iter"
	"sync"
	"time"

	"parley/engine"
	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/serve/gateway/trace"
	"parley/llm"
)

// openTracer returns a tracer if the environment names a collector, and nil otherwise.
func openTracer(ctx context.Context, s *State) (*trace.Tracer, error) {
	if !traced(s) {
		return nil, nil
	}
	t, err := trace.Open(ctx, s.Env, "parley", Version())
	return t, exit.AsUsage(err)
}

// closeTracer sends the remaining spans, for a few seconds. A missing collector is no reason to fail.
func closeTracer(ctx context.Context, s *State, t *trace.Tracer) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := t.Close(late); err != nil {
		s.tell(err.Error())
	}
}

// traceEvent makes spans of what the engine does.
func traceEvent(p *trace.Play, e engine.Event) {
	switch {
	case e.Replied != nil:
		p.Replied(e.Replied)
	case e.Ended != nil:
		p.Ended(e.Ended)
	}
}

// tracedAsker makes spans of questions.
type tracedAsker struct {
	bulk.Asker
	play *trace.Play
}

// Each implements bulk.Asker.
func (a tracedAsker) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(i int, r llm.Result)) int {
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
