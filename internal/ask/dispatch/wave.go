package dispatch

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"parley/internal/ask/batch"
	"parley/llm"
)

// Wave answers requests that are made together. Those over a batch API are sent as batches whenever
// every open call waits. It returns when all have ended. It calls done once for each, from one
// goroutine at a time, in the order of completion; i is the request's position in reqs.
//
// Equal calls differ in their Sample. When done returns for an answer, or for an error that is
// about the call and not about the run, the result must be durable: the batch may be closed after
// that.
func (d *Dispatcher) Wave(ctx context.Context, reqs []*llm.Request, done func(i int, r llm.Result)) {
	w := d.batcher.Begin(reqs)
	var calls sync.WaitGroup
	var one sync.Mutex
	for i, req := range reqs {
		calls.Go(func() {
			s := &inWave{Call: w.Call(req)}
			resp, err := d.ask(ctx, &call{req: req, inWave: s})
			ends := settled(ctx, err)
			if !ends {
				s.End(ctx, false) // first: it may be asked again at once
			}
			one.Lock()
			done(i, llm.Result{Response: resp, Err: err})
			one.Unlock()
			if ends {
				s.End(ctx, true)
			}
		})
	}
	w.Serve(ctx)
	calls.Wait()
}

// settled reports whether a call that ended this way is recorded, so that it is not asked again when
// the run is resumed. The engine records an error unless it stops the run.
func settled(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	e := llm.AsError(err)
	if e == nil || errors.Is(err, llm.ErrMaxCost) {
		return true
	}
	switch e.Kind {
	case llm.KindCanceled, llm.KindBudget, llm.KindQuota, llm.KindAuth:
		return false
	case llm.KindTransport:
		return e.Uncertain
	case llm.KindBadRequest:
		return e.Status != 0 && e.Status != http.StatusNotFound
	}
	return e.Status != http.StatusNotFound
}

// Batches returns the state of all batches.
func (d *Dispatcher) Batches() batch.Progress { return d.batcher.Progress() }

// CancelBatches asks the providers to end every open batch. Answers that exist by then are billed,
// and collected when the run is resumed.
func (d *Dispatcher) CancelBatches(ctx context.Context) error {
	return d.batcher.Cancel(ctx, func(provider string) (batch.API, error) {
		l, err := d.lanes.lane(provider)
		if err != nil {
			return nil, err
		}
		if l.enqueue == nil {
			return nil, &llm.Error{Kind: llm.KindBadRequest, Provider: provider, Message: "there is no batch API"}
		}
		return l.enqueue.queue.API, nil
	})
}

func newBatcher(c Config) (*batch.Batcher, error) {
	for i := range c.Batches {
		c.Budget.AddRisk(c.Batches[i].AtRisk())
	}
	return batch.New(batch.Config{
		Policy: c.Batch, Open: c.Batches, Record: c.Record,
		Release: func(m llm.Money) { c.Budget.AddRisk(-m) },
	})
}

// inWave is a call's part in a wave.
type inWave struct {
	*batch.Call
	wentLive time.Time // when it was first asked live
}

// live asks next. The deadline of the call counts from when it was first asked live.
func (s *inWave) live(ctx context.Context, c *call, next layer, deadline time.Duration) (*llm.Response, error) {
	if c.req.Deadline > 0 {
		deadline = c.req.Deadline
	}
	if s.wentLive.IsZero() {
		s.wentLive = time.Now()
	}
	if deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, s.wentLive.Add(deadline), deadlineError(deadline))
		defer cancel()
	}
	back := s.Aside()
	resp, err := next.ask(ctx, c)
	back()
	if err != nil && ctx.Err() != nil {
		e := *llm.AsError(err)
		e.Final = true // there is no time for another attempt
		return nil, &e
	}
	return resp, err
}
