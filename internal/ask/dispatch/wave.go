package dispatch

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/tokens"
	"parley/llm"
)

// Wave answers requests that are made together. Those over a batch API are sent as batches whenever
// every open call waits. It returns when all have ended. It calls done once for each, from one
// goroutine at a time, in the order of completion; i is the request's position in reqs.
//
// Equal calls differ in their Sample. When done returns for an answer, or for an error that is
// about the call and not about the run, the result must be durable or be written before what is logged later:
// the batch may be closed after that.
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

func newBatcher(c Config) *batch.Batcher {
	for i := range c.Batches {
		c.Budget.AddRisk(c.Batches[i].AtRisk())
	}
	return batch.New(batch.Config{
		Batch: &c.Settings.Batch, Open: c.Batches, Record: c.Record,
		Release: func(m llm.Money) { c.Budget.AddRisk(-m) },
	})
}

// WorstLine returns the most that a request costs over a batch API. With a budget, a request is an error whose price is not known.
func (d *Dispatcher) WorstLine(req *llm.Request) (llm.Money, error) {
	m := d.prices.Lookup(req.Model)
	if d.budget.Limit() > 0 {
		if err := d.prices.Unpriced(req); err != nil {
			return 0, err
		}
	}
	if !m.OK {
		return 0, nil
	}
	return m.Terms(req, true).Worst, nil
}

// SettleLine spends what a line cost of a batch that no call of this Dispatcher sent, and adds it to its result. Of the results, one is nil. It returns what
// WorstLine had returned.
func (d *Dispatcher) SettleLine(req *llm.Request, resp *llm.Response, e *llm.Error) (_ *llm.Response, _ *llm.Error, worst llm.Money) {
	m := d.prices.Lookup(req.Model)
	if m.OK {
		worst = m.Terms(req, true).Worst
	}
	paid, failed := budget.Attempt{Request: req, Price: m.Price, Terms: budget.Terms{Worst: worst}, Batched: true}.Settle(resp, e)
	m.Observe(req, resp, paid)
	d.budget.Spend(paid.Cost.Plus(paid.Uncertain))
	d.stats.count(req.Model, func(s *ModelStats) {
		s.Batched++
		s.attempt(resp, failed, paid, m.OK)
	})
	meta := llm.Metadata{Cost: paid.Cost.Plus(paid.Uncertain), Estimated: paid.Estimated(), Attempts: 1}
	if failed != nil {
		e := *failed
		e.Metadata = meta
		return nil, &e, worst
	}
	resp.Metadata = meta
	return resp, nil, worst
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

// enqueue is one attempt of a call over a batch API, instead of limit and meter. It draws on the
// call's account at batch prices, waits for its line, and counts.
type enqueue struct {
	queue   *batch.Queue
	guess   *tokens.Estimator
	prices  *budget.Prices
	stats   *counters
	notices *notices
}

// tokenMargin is the factor by which prompts are assumed to be longer than estimated, if the tokens
// that wait are limited.
const tokenMargin = 1.15

// batched reports whether a call is sent over the batch API of its model.
func (l *lanes) batched(c *call) bool {
	if c.inWave == nil || !c.inWave.Batches(c.req.Model) {
		return false
	}
	name, _ := llm.SplitModel(c.req.Model)
	lane, err := l.lane(name)
	return err == nil && lane.enqueue != nil
}

// ask sends the call in a batch, or asks live if the wave says so.
func (p *enqueue) ask(ctx context.Context, c *call, live func() (*llm.Response, error)) (*llm.Response, error) {
	req, s := c.req, c.inWave
	t := p.bill(c)
	if !s.UsesBatch(p.queue, req) {
		if e := t.goLive(); e != nil {
			return nil, e
		}
		return live()
	}
	w, err := p.queue.API.Weigh(req)
	if err != nil {
		return nil, err
	}
	size := tokens.SizeOf(req)
	input, _ := p.guess.Guess(req, size)
	item := batch.Item{Queue: p.queue, Request: req, Weight: w, Tokens: int(input * tokenMargin), Worst: t.batched}
	for {
		if e := t.account.BeginLine(t.held); e != nil {
			return nil, e
		}
		f := s.Ask(ctx, item)
		paid := t.end(req, &f)
		p.notices.settled(t.model, req, t.held, paid)
		if !f.Live {
			c.attempts.Add(1)
			p.count(req, f, paid, t.model.OK)
			if f.Err != nil {
				return nil, f.Err
			}
			p.guess.Learn(req, size, f.Response.Usage)
			f.Response.Dropped = w.Dropped
			p.notices.dropped(req, w.Dropped)
			f.Response.Metadata.Latency, f.Response.Metadata.FirstByte = f.Took, f.Took
			return f.Response, nil
		}
		e := t.goLive()
		if e == nil {
			return live()
		}
		if item.Insist {
			return nil, e
		}
		item.Insist = true // even alone in a batch it costs half
	}
}

// bill is what an attempt is charged to. The amounts are zero without a budget, except batched,
// which is recorded with the batch.
type bill struct {
	model         *budget.Model
	account       *budget.Account
	batched, live llm.Money
	held          llm.Money // set aside for the line
}

func (p *enqueue) bill(c *call) *bill {
	t := &bill{model: p.prices.Lookup(c.req.Model), account: c.account}
	if !t.model.OK {
		return t
	}
	t.batched = t.model.Terms(c.req, true).Worst
	if t.account.Bounded() {
		t.held, t.live = t.batched, t.model.Terms(c.req, false).Worst
	}
	return t
}

// goLive makes room for the attempt at live prices.
func (t *bill) goLive() *llm.Error { return t.account.GoLive(t.live) }

// end settles what the line cost, and what it may have cost. An answer that cannot be accepted
// becomes an error.
func (t *bill) end(req *llm.Request, f *batch.Answered) (c budget.Charge) {
	if f.Response != nil || f.Err != nil {
		one := budget.Attempt{Request: req, Price: t.model.Price, Batched: true}
		if f.Asked {
			one.Worst = t.held
		}
		if c, f.Err = one.Settle(f.Response, f.Err); f.Err != nil {
			f.Response = nil
		}
		if f.Again {
			c.Cost, c.Uncertain = 0, 0
		}
		if t.held > 0 {
			t.model.Observe(req, f.Response, c)
		}
	}
	t.account.EndLine(t.held, c)
	return c
}

// count counts an attempt that a provider processed.
func (p *enqueue) count(req *llm.Request, f batch.Answered, c budget.Charge, priced bool) {
	if !f.Asked || f.Again {
		return
	}
	p.stats.count(req.Model, func(m *ModelStats) {
		m.Batched++
		m.attempt(f.Response, f.Err, c, priced)
	})
}
