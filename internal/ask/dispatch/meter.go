package dispatch

import (
	"context"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// meter is the innermost layer, around the dialect: each call of ask is one attempt. It draws on
// the call's account, and counts.
type meter struct {
	next    llm.Model
	prices  *budget.Prices
	stats   *Stats
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
	a := attempt{model: m.prices.Look(c.req.Model)}
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
	if err == nil {
		m.fill(resp, req, time.Since(a.began))
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
	m.count(req, resp, e, paid, model.OK)
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
	s := m.stats.of(req.Model)
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
