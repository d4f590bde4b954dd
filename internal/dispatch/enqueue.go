package dispatch

import (
	"context"

	"parley/internal/batch/batcher"
	"parley/internal/dispatch/budget"
	"parley/internal/dispatch/tokens"
	"parley/llm"
)

// enqueue is one attempt of a call over a batch API: it takes the place of limit and meter. It
// draws on the call's account at the batch's rates, waits for its line, and counts.
type enqueue struct {
	queue   *batcher.Queue
	guess   *tokens.Estimator
	prices  *budget.Prices
	stats   *Stats
	notices *notices
}

// tokenMargin is by how much prompts are taken to be longer than is guessed, where a limit
// on waiting tokens is kept.
const tokenMargin = 1.15

// batched says whether a call goes over the batch API of its model.
func (l *lanes) batched(c *call) bool {
	if c.inWave == nil || !c.inWave.Batches(c.req.Model) {
		return false
	}
	name, _ := llm.SplitModel(c.req.Model)
	lane, err := l.lane(name)
	return err == nil && lane.enqueue != nil
}

// ask sends the call in a batch, or asks live where the wave says so.
func (p *enqueue) ask(ctx context.Context, c *call, live func() (*llm.Response, error)) (*llm.Response, error) {
	req, s := c.req, c.inWave
	t := p.bill(c)
	if !s.UsesBatch(p.queue, req) {
		if !t.affords() {
			return nil, t.account.NoRoom()
		}
		return live()
	}
	w, err := p.queue.API.Weigh(req)
	if err != nil {
		return nil, err
	}
	size := tokens.SizeOf(req)
	input, _ := p.guess.Guess(req, size)
	item := batcher.Item{Queue: p.queue, Request: req, Weight: w, Tokens: int(input * tokenMargin), Worst: t.batched}
	for {
		if !t.begin() {
			return nil, t.account.NoRoom()
		}
		f := s.Ask(ctx, item)
		paid := t.end(req, &f)
		p.notices.settled(t.model, req, t.held, paid)
		switch {
		case !f.Live:
			p.count(req, f, paid, t.model.OK)
			if f.Err != nil {
				return nil, f.Err
			}
			p.guess.Learn(req, size, f.Response.Usage)
			f.Response.Dropped = w.Dropped
			f.Response.Metadata.Latency, f.Response.Metadata.FirstByte = f.Took, f.Took
			return f.Response, nil
		case t.affords():
			return live()
		case item.Insist:
			return nil, t.account.NoRoom()
		}
		item.Insist = true // alone in a batch it costs half
	}
}

// bill is what an attempt is charged to. The most it can cost is zero where no budget is kept;
// batched is known all the same, for the events.
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

func (t *bill) begin() bool {
	_, ok := t.account.Begin(budget.Terms{Worst: t.held})
	return ok
}

// affords makes room for the attempt at live prices.
func (t *bill) affords() bool { return t.account.GoLive(t.live) }

// end settles what the line cost, and what it may have. An answer that cannot be accepted
// becomes an error.
func (t *bill) end(req *llm.Request, f *batcher.Result) (c budget.Charge) {
	if f.Response != nil || f.Err != nil {
		one := budget.Attempt{Request: req, Price: t.model.Price, Batched: true}
		if f.Asked {
			one.Worst = t.held
		}
		if c, f.Err = one.Settle(f.Response, f.Err); f.Err != nil {
			f.Response = nil
		}
		if t.held > 0 {
			t.model.Observe(req, f.Response, c)
		}
	}
	t.account.End(t.held, c)
	return c
}

// count counts an attempt that a provider had.
func (p *enqueue) count(req *llm.Request, f batcher.Result, c budget.Charge, priced bool) {
	if !f.Asked {
		return
	}
	p.stats.count(req.Model, func(m *ModelStats) {
		m.Batched++
		m.attempt(f.Response, f.Err, c, priced)
	})
}
