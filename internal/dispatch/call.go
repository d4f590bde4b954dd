package dispatch

import (
	"context"

	"parley/internal/dispatch/budget"
	"parley/llm"
)

// layer is one step of a call on its way to a provider.
type layer interface {
	// ask answers c. Its error is an *llm.Error, or that of a context.
	ask(ctx context.Context, c *call) (*llm.Response, error)
}

// call is one call on its way down the layers, and all that they tell each other about it. A layer
// does not change the call that it was given: where the layers below need something else, it
// gives them a changed copy. So any number of tries can use one call at the same time.
type call struct {
	req      *llm.Request    // as the layer sees it: a repair or a fallback is a request of its own
	account  *budget.Account // what attempts draw on, shared by all copies; budget, the outermost layer, sets it
	inWave   *inWave         // its part in a wave; nil: it was not made in one
	hasty    bool            // there is another model to fall back to: it does not wait for a provider that is away
	admitted func()          // told of each attempt that may be sent, from any goroutine; nil: nobody is told
}

// with returns the call for another request.
func (c *call) with(req *llm.Request) *call {
	next := *c
	next.req = req
	return &next
}

// admit says that an attempt may be sent.
func (c *call) admit() {
	if c.admitted != nil {
		c.admitted()
	}
}

// aside says that the call waits for others, until back is called. Outside of waves it does nothing.
func (c *call) aside() (back func()) {
	if c.inWave != nil {
		return c.inWave.Aside()
	}
	return func() {}
}
