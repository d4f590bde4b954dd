package dispatch

import (
	"context"
	"time"

	"parley/internal/dispatch/budget"
	"parley/llm"
)

// meter is the innermost layer, around the dialect: each call of ask is one attempt. It draws on
// the call's account, bounds the attempt in time, and counts.
type meter struct {
	next    llm.Model
	prices  *budget.Prices
	stats   *Stats
	notices *notices
	timeout time.Duration // of an attempt; 0: none
}

// ask makes one attempt.
func (m *meter) ask(ctx context.Context, c *call) (*llm.Response, error) {
	req, a := c.req, c.account
	model := m.prices.Look(req.Model)
	var t budget.Terms
	var held llm.Money
	if model.OK && a.Bounded() {
		t = model.Terms(req, false)
		var e *llm.Error
		if held, e = a.Begin(ctx, t); e != nil {
			return nil, e
		}
	}
	start := time.Now()
	resp, err := m.attempt(ctx, req)
	if err == nil {
		m.fill(resp, req, time.Since(start))
	}
	return m.settle(c, model, t, held, resp, err)
}

// settle charges an attempt. It is not a part of ask, so that a call that waits for its answer needs little stack.
func (m *meter) settle(c *call, model *budget.Model, t budget.Terms, held llm.Money, resp *llm.Response, err error) (*llm.Response, error) {
	req := c.req
	paid, e := budget.Attempt{Request: req, Price: model.Price, Terms: t}.Settle(resp, llm.AsError(err))
	if t.Worst > 0 {
		if err != nil {
			resp = nil
		}
		model.Observe(req, resp, paid) // before others are let in
	}
	c.account.End(held, paid)
	m.notices.settled(model, req, t.Worst, paid)
	m.notices.answered(req, resp)
	m.count(req, resp, e, paid, model.OK)
	if e != nil {
		return nil, e
	}
	return resp, nil
}

func (m *meter) attempt(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if m.timeout <= 0 {
		return m.next.Ask(ctx, req)
	}
	bounded, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	resp, err := m.next.Ask(bounded, req)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		e := *llm.AsError(err)
		e.Kind, e.Uncertain = llm.KindTimeout, true
		e.Message = "no whole answer within " + m.timeout.String()
		return nil, &e
	}
	return resp, err
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
