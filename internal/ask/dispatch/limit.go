package dispatch

import (
	"context"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/dispatch/tokens"
	"parley/llm"
)

// limit is the layer that paces calls: see package limiter.
type limit struct {
	next layer
	*limiter.Limiter
	guess *tokens.Estimator
}

// ask waits for a permit, then asks.
func (l *limit) ask(ctx context.Context, c *call) (*llm.Response, error) {
	size := tokens.SizeOf(c.req)
	input, output := l.guess.Guess(c.req, size)
	p, err := l.Acquire(ctx, c.req, input, output)
	if err != nil {
		return nil, err
	}
	c.admit()
	l.guess.Open(c.req.Model)
	resp, err := l.next.ask(ctx, c)
	l.guess.Close(c.req.Model)
	if resp != nil {
		resp.Metadata.Waited += p.Waited()
		l.guess.Learn(c.req, size, resp.Usage)
	}
	l.Release(p, resp, err)
	return resp, err
}
