package dispatch

import (
	"context"
	"time"

	"parley/llm"
)

// meter is the innermost layer, around the dialect: each time it is asked is one attempt. It
// draws on the call's account, bounds the attempt in time, and counts.
type meter struct {
	next    llm.Model
	prices  *priceList
	stats   *Stats
	notices *notices
	timeout time.Duration // of an attempt; 0: none
}

// ask makes one attempt.
func (m *meter) ask(ctx context.Context, c *call) (*llm.Response, error) {
	req, a := c.req, c.account
	known := m.prices.look(req.Model)
	var t terms
	var held llm.Money
	if known.ok && a.bounded() {
		t = known.terms(req, false)
		var ok bool
		if held, ok = a.begin(t); !ok {
			return nil, a.noRoom()
		}
	}
	start := time.Now()
	resp, err := m.attempt(ctx, req)
	if err == nil {
		m.fill(resp, req, time.Since(start))
	}
	paid, e := attempt{req: req, price: known.price, terms: t}.settle(resp, llm.AsError(err))
	if t.worst > 0 {
		if err != nil {
			resp = nil
		}
		known.observe(req, resp, paid) // before others are let in
	}
	a.end(held, paid)
	m.notices.settled(known, req, t.worst, paid)
	m.count(req, resp, e, paid, known.ok)
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

func (m *meter) count(req *llm.Request, resp *llm.Response, e *llm.Error, c charge, priced bool) {
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
