package dispatch

import (
	"context"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch/budget"
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
	address string
	groups  []group // the last has no pattern
}

type group struct {
	pattern string
	limit   *limit
	first   layer
}

// newEndpoint makes the layers of the server at an address.
func newEndpoint(p provider.Provider, address string, c Config, next layer, guess *tokens.Estimator, s *counters) *endpoint {
	// A refusal is known to other processes later than here, so those that share an account do not try more sooner.
	near := !c.Shared && (p.InProcess() || trust.Loopback(address))
	start := limiter.Start{Near: near, Reports: p.Metrics != ""}
	add := func(groups []group, pattern string, limits provider.Limits) []group {
		lim := &limit{next: next, Limiter: limiter.New(limits, p.Counts(), &s.gauge, start), guess: guess}
		if c.Shared {
			lim.Share(limiter.Part{})
		}
		return append(groups, group{pattern: pattern, limit: lim, first: newWarm(lim, p.Warm, s)})
	}
	e := &endpoint{address: address}
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
		if provider.Matches(e.groups[i].pattern, model) {
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

// setConcurrency sets the calls in flight of the models without limits of their own.
func (e *endpoint) setConcurrency(n int) {
	e.groups[len(e.groups)-1].limit.SetConcurrency(n)
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
	c.waited.Add(int64(p.Waited()))
	c.admit()
	l.guess.Open(c.req.Model)
	resp, err := l.next.ask(ctx, c)
	l.guess.Close(c.req.Model)
	if resp != nil {
		l.guess.Learn(c.req, size, resp.Usage)
	}
	l.Release(p, resp, err)
	return resp, err
}

// meter is the innermost layer, around the dialect: each call of ask is one attempt. It draws on
// the call's account, and counts.
type meter struct {
	next    llm.Model
	prices  *budget.Prices
	stats   *counters
	notices *notices
}

// attempt is what is known of an attempt before it is made.
type attempt struct {
	model *budget.Model
	terms budget.Terms
	held  llm.Money
	began time.Time
}

// ask makes one attempt. What it does after that is in another function: a stream may be open for long, and keeps the
// stack of every function that waits for it.
func (m *meter) ask(ctx context.Context, c *call) (*llm.Response, error) {
	a := attempt{model: m.prices.Lookup(c.req.Model)}
	if a.model.OK && c.account.Bounded() {
		a.terms = a.model.Terms(c.req, false)
		var e *llm.Error
		if a.held, e = c.account.Begin(ctx, a.terms); e != nil {
			return nil, e
		}
	}
	a.began = time.Now()
	resp, err := m.next.Ask(ctx, c.req)
	return m.settle(c, &a, resp, err)
}

// settle decides what an attempt cost, and counts it.
func (m *meter) settle(c *call, a *attempt, resp *llm.Response, err error) (*llm.Response, error) {
	req, model := c.req, a.model
	unsent := false
	if was := llm.AsError(err); was == nil || !was.Unserved() {
		// A second attempt may be canceled before it is sent: no server sees it.
		if unsent = was != nil && was.Kind == llm.KindCanceled && !was.Uncertain; !unsent {
			c.attempts.Add(1)
		}
	}
	if err == nil {
		m.fill(resp, req, time.Since(a.began))
	} else if model.OK && a.terms.Worst == 0 && llm.AsError(err).Uncertain {
		a.terms = model.Terms(req, false) // without a budget too, it costs the most that it can have cost
	}
	paid, e := budget.Attempt{Request: req, Price: model.Price, Terms: a.terms}.Settle(resp, llm.AsError(err))
	if a.terms.Worst > 0 {
		if err != nil {
			resp = nil
		}
		model.Observe(req, resp, paid) // before others are let in
	}
	c.account.End(a.held, paid)
	m.notices.settled(model, req, a.terms.Worst, paid)
	m.notices.answered(req, resp)
	if !unsent {
		m.count(req, resp, e, paid, model.OK)
	}
	if e != nil {
		return nil, e
	}
	return resp, nil
}

func (m *meter) fill(resp *llm.Response, req *llm.Request, took time.Duration) {
	if resp.Provider == "" {
		resp.Provider, _ = llm.SplitModel(req.Model)
	}
	if resp.Metadata.Latency == 0 {
		resp.Metadata.Latency = took
	}
	if resp.Metadata.FirstByte == 0 {
		resp.Metadata.FirstByte = resp.Metadata.Latency
	}
}

func (m *meter) count(req *llm.Request, resp *llm.Response, e *llm.Error, c budget.Charge, priced bool) {
	m.stats.mu.Lock()
	defer m.stats.mu.Unlock()
	s := m.stats.forModel(req.Model)
	s.attempt(resp, e, c, priced)
	if e != nil {
		if e.Kind == llm.KindRateLimited {
			s.RateLimited++
		}
		return
	}
	s.Latency.Add(resp.Metadata.Latency)
	s.FirstByte.Add(resp.Metadata.FirstByte)
}
