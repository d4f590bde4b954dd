package dispatch

import (
	"context"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/tokens"
	"parley/llm"
)

// enqueue is one attempt of a call over a batch API, instead of limit and meter. It draws on the
// call's account at batch prices, waits for its line, and counts.
type enqueue struct {
	queue   *batch.Queue
	guess   *tokens.Estimator
	prices  *budget.Prices
	stats   *Stats
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
		if e := t.affords(); e != nil {
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
		e := t.affords()
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
	t := &bill{model: p.prices.Look(c.req.Model), account: c.account}
	if !t.model.OK {
		return t
	}
	t.batched = t.model.Terms(c.req, true).Worst
	if t.account.Bounded() {
		t.held, t.live = t.batched, t.model.Terms(c.req, false).Worst
	}
	return t
}

// affords makes room for the attempt at live prices.
func (t *bill) affords() *llm.Error { return t.account.GoLive(t.live) }

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
