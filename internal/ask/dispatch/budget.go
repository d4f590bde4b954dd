package dispatch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// budgeted is the outermost layer: it opens an account for a call, which every attempt draws on.
type budgeted struct {
	next    layer
	budget  *budget.Budget
	prices  *budget.Prices
	batched func(c *call) bool                  // whether a call goes over a batch API
	asked   func(req *llm.Request) *llm.Request // as it is sent: see schemas
}

// ask sets aside the most that the first attempt can cost, asks, and spends what the call cost. If
// the budget gets its limit before an attempt, the call is asked again under that.
func (b *budgeted) ask(ctx context.Context, c *call) (resp *llm.Response, err error) {
	c.waited, c.attempts = new(atomic.Int64), new(atomic.Int64)
	w := budget.Want{Request: c.req, Sent: b.asked(c.req), Batched: b.batched(c), Waited: c.waited}
	if c.inWave != nil {
		w.Wave = c.inWave
	}
	var cost llm.Money
	var estimated bool
	for again := true; again; again = errors.Is(err, budget.ErrReopen) {
		var a *budget.Account
		if a, err = b.budget.Open(ctx, b.prices, w); err != nil {
			break
		}
		c.account = a
		resp, err = b.next.ask(ctx, c)
		more, guessed := a.Close(ctx)
		cost, estimated = cost.Plus(more), estimated || guessed
	}
	waited, attempts := time.Duration(c.waited.Load()), int(c.attempts.Load())
	if err != nil {
		e := *llm.AsError(err)
		e.Metadata.Cost, e.Metadata.Estimated, e.Metadata.Waited, e.Metadata.Attempts = cost, estimated, waited, attempts
		return nil, &e
	}
	resp.Metadata.Cost, resp.Metadata.Estimated, resp.Metadata.Waited, resp.Metadata.Attempts = cost, estimated, waited, attempts
	return resp, nil
}
