package dispatch

import (
	"context"
	"path"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/dispatch/tokens"
	"parley/internal/ask/provider"
	"parley/internal/ask/trust"
	"parley/llm"
)

// endpoint is the layers of one server: warm(limit(meter(dialect))), with a limiter for all of its
// models and one more for each pattern with its own limits.
type endpoint struct {
	provider provider.Provider
	address  string
	levels   Levels  // may be nil
	groups   []group // the last has no pattern
}

type group struct {
	pattern string
	limit   *limit
	first   layer
}

// newEndpoint makes the layers of the server at an address.
func newEndpoint(p provider.Provider, address string, c Config, next layer, guess *tokens.Estimator, s *Stats) *endpoint {
	// A refusal is known to other processes later than here, so those that share an account do not try more sooner.
	near := !c.Shared && (p.InProcess() || trust.Loopback(address))
	start := limiter.Start{Near: near, Reports: p.Metrics != ""}
	add := func(groups []group, pattern string, limits provider.Limits) []group {
		if c.Levels != nil {
			start.Known = c.Levels.Load(p, address, pattern)
		}
		lim := &limit{next: next, Limiter: limiter.New(limits, p.Counts(), &s.gauge, start), guess: guess}
		if c.Shared {
			lim.Share(limiter.Part{})
		}
		return append(groups, group{pattern: pattern, limit: lim, first: newWarm(lim, p.Warm, s)})
	}
	e := &endpoint{provider: p, address: address, levels: c.Levels}
	for _, pattern := range p.LimitPatterns() {
		e.groups = add(e.groups, pattern, p.ModelLimits[pattern])
	}
	e.groups = add(e.groups, "", p.Limits)
	return e
}

// ask asks the server, under the limits of the model.
func (e *endpoint) ask(ctx context.Context, c *call) (*llm.Response, error) {
	_, model := llm.SplitModel(c.req.Model)
	last := len(e.groups) - 1
	for i := range e.groups[:last] {
		if ok, _ := path.Match(e.groups[i].pattern, model); ok {
			return e.groups[i].first.ask(ctx, c)
		}
	}
	return e.groups[last].first.ask(ctx, c)
}

func (e *endpoint) drain() {
	for i := range e.groups {
		e.groups[i].limit.Drain(batch.DrainError())
	}
}

// hold refuses calls with err until err is nil.
func (e *endpoint) hold(err *llm.Error) {
	for i := range e.groups {
		e.groups[i].limit.Hold(err)
	}
}

// choose sets the calls in flight of the models without limits of their own.
func (e *endpoint) choose(n int) {
	e.provider.Limits.Concurrency = n
	e.groups[len(e.groups)-1].limit.Choose(n)
}

// save stores how many calls the server has handled at once, where nobody has chosen that.
func (e *endpoint) save() {
	for _, g := range e.groups {
		limits, ok := e.provider.ModelLimits[g.pattern]
		if !ok {
			limits = e.provider.Limits
		}
		if limits.Concurrency == 0 && e.levels != nil {
			// What cannot be stored is found out again by the next run.
			_ = e.levels.Save(e.provider, e.address, g.pattern, g.limit.Level())
		}
	}
}

// recall makes the calls that wait fail: see limiter.
func (e *endpoint) recall() {
	for i := range e.groups {
		e.groups[i].limit.Recall()
	}
}

// arrived lets as many calls be sent as before: see limiter.
func (e *endpoint) arrived() {
	for i := range e.groups {
		e.groups[i].limit.Arrived()
	}
}

// steer adapts the calls in flight to the server's load.
func (e *endpoint) steer(load replica.Load) {
	for i := range e.groups {
		e.groups[i].limit.Steer(load)
	}
}
