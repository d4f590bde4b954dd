package dispatch

import (
	"context"

	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// layer is one step of a call on its way to a provider.
type layer interface {
	// ask answers c. Its error is an *llm.Error, or that of a context.
	ask(ctx context.Context, c *call) (*llm.Response, error)
}

// call is one call on its way through the layers, and everything that they share about it. A layer
// does not change the call that it is given: if the layers below need something else, it gives them
// a changed copy. So any number of attempts can use one call at the same time.
type call struct {
	req      *llm.Request    // the current request: a repair or a fallback has another than the caller's
	account  *budget.Account // what attempts draw on, shared by all copies; set by budgeted, the outermost layer
	inWave   *inWave         // its part in a wave; nil: none
	hasty    bool            // there is a model to fall back to: do not wait for a provider that is unreachable
	admitted func()          // called for each attempt that may be sent, from any goroutine; may be nil
}

// with returns a copy of the call with another request.
func (c *call) with(req *llm.Request) *call {
	next := *c
	next.req = req
	return &next
}

// admit reports that an attempt may be sent.
func (c *call) admit() {
	if c.admitted != nil {
		c.admitted()
	}
}

// aside notes that the call waits for others, until back is called. Outside of waves it does
// nothing.
func (c *call) aside() (back func()) {
	if c.inWave != nil {
		return c.inWave.Aside()
	}
	return func() {}
}
