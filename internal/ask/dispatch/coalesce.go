package dispatch

import (
	"context"
	"sync"

	"parley/llm"
)

// coalesce joins equal calls in flight at temperature zero: one asks, all get the answer. At any
// other temperature, two equal requests are two samples.
type coalesce struct {
	next layer

	mu       sync.Mutex
	inFlight map[[32]byte]*flight
}

// flight is a call that others wait for.
type flight struct {
	done chan struct{}
	resp *llm.Response
	err  error
}

func newCoalesce(next layer) *coalesce {
	return &coalesce{next: next, inFlight: map[[32]byte]*flight{}}
}

// ask asks, or waits for the equal call that already does.
func (j *coalesce) ask(ctx context.Context, c *call) (*llm.Response, error) {
	if t := c.req.Temperature; t == nil || *t != 0 {
		return j.next.ask(ctx, c)
	}
	return j.join(ctx, c)
}

// join is ask for a call at temperature zero.
func (j *coalesce) join(ctx context.Context, c *call) (*llm.Response, error) {
	key := c.req.Digest()
	for {
		j.mu.Lock()
		f := j.inFlight[key]
		if f == nil {
			f = &flight{done: make(chan struct{})}
			j.inFlight[key] = f
			j.mu.Unlock()
			return j.lead(ctx, key, f, c)
		}
		j.mu.Unlock()
		c.account.Release(ctx) // the call that asks may need it
		back := c.aside()
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
		// The call that asked was canceled: another asks now.
	}
}

func (j *coalesce) lead(ctx context.Context, key [32]byte, f *flight, c *call) (*llm.Response, error) {
	defer func() {
		j.mu.Lock()
		delete(j.inFlight, key)
		j.mu.Unlock()
		close(f.done)
	}()
	f.err = &llm.Error{Kind: llm.KindCanceled, Message: "the call that asked ended early"} // if it panics
	resp, err := j.next.ask(ctx, c)
	f.err = err
	if err != nil {
		return nil, err
	}
	// The others get a copy made now: outer layers write to the Metadata of ours.
	f.resp = shared(resp)
	return resp, nil
}

func shared(resp *llm.Response) *llm.Response {
	c := *resp
	c.Metadata = llm.Metadata{Coalesced: true, Parsed: resp.Metadata.Parsed}
	return &c
}
