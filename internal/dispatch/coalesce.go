package dispatch

import (
	"context"
	"sync"

	"parley/llm"
)

// coalesce joins equal calls in flight at temperature zero: one asks, all get the
// answer. At any other temperature two equal questions are two samples.
type coalesce struct {
	next llm.Model

	mu     sync.Mutex
	flying map[[32]byte]*flight
}

// flight is a call others wait for.
type flight struct {
	done chan struct{}
	resp *llm.Response
	err  error
}

func newCoalesce(next llm.Model) *coalesce {
	return &coalesce{next: next, flying: map[[32]byte]*flight{}}
}

// Ask asks, or waits for the equal call that already does.
func (c *coalesce) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if req.Temperature == nil || *req.Temperature != 0 {
		return c.next.Ask(ctx, req)
	}
	key := req.Digest()
	for {
		c.mu.Lock()
		f := c.flying[key]
		if f == nil {
			f = &flight{done: make(chan struct{})}
			c.flying[key] = f
			c.mu.Unlock()
			return c.lead(ctx, key, f, req)
		}
		c.mu.Unlock()
		back := aside(ctx)
		select {
		case <-f.done:
		case <-ctx.Done():
		}
		back()
		if ctx.Err() != nil {
			return nil, llm.ContextError(ctx)
		}
		if f.err == nil {
			return shared(f.resp), nil
		}
		if llm.KindOf(f.err) != llm.KindCanceled {
			return nil, f.err
		}
		// The one that asked went away; somebody else asks now.
	}
}

func (c *coalesce) lead(ctx context.Context, key [32]byte, f *flight, req *llm.Request) (*llm.Response, error) {
	defer func() {
		c.mu.Lock()
		delete(c.flying, key)
		c.mu.Unlock()
		close(f.done)
	}()
	f.err = &llm.Error{Kind: llm.KindCanceled, Message: "the call that asked ended early"} // unless it returns
	resp, err := c.next.Ask(ctx, req)
	f.err = err
	if err != nil {
		return nil, err
	}
	// The others get a copy made now: layers outside write to the Trail of ours.
	f.resp = shared(resp)
	return resp, nil
}

func shared(resp *llm.Response) *llm.Response {
	c := *resp
	c.Trail = llm.Trail{Coalesced: true, Parsed: resp.Trail.Parsed}
	return &c
}
