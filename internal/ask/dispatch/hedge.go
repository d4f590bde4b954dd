package dispatch

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// Hedge says when a slow call gets a second attempt beside it.
type Hedge struct {
	// Percentile is the share of the model's own latencies after which a call counts as slow, such
	// as 0.95. Default: 0, which never hedges.
	Percentile float64
	// MinAnswers is how many answers are needed first. Default: 100.
	MinAnswers int
}

// hedge sends a second attempt when the first is slower than most, and returns the first answer.
// Both are paid for, so the second is made only if the budget has room.
type hedge struct {
	next  layer
	rule  Hedge
	stats *counters
}

func newHedge(next layer, rule Hedge, s *counters) layer {
	if rule.Percentile <= 0 {
		return next
	}
	rule.MinAnswers = cmp.Or(rule.MinAnswers, 100)
	return &hedge{next: next, rule: rule, stats: s}
}

// ask asks, and asks again if the answer is late.
func (h *hedge) ask(ctx context.Context, c *call) (*llm.Response, error) {
	after := h.delay(c.req.Model)
	if after <= 0 || c.inWave != nil {
		return h.next.ask(ctx, c)
	}
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan llm.Result, 2)
	ask := func(c *call) {
		resp, err := h.next.ask(ctx, c)
		answers <- llm.Result{Response: resp, Err: err}
	}
	// The clock starts when the first attempt is sent: time in the queue does not count.
	sent := make(chan struct{}, 1)
	first := *c
	first.admitted = func() {
		c.admit()
		select {
		case sent <- struct{}{}:
		default:
		}
	}
	go ask(&first)
	out := 1
	defer func() { // wait for both: an attempt still draws on the call's account
		cancel()
		for ; out > 0; out-- {
			<-answers
		}
	}()
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var failed llm.Result
	for {
		select {
		case <-sent:
			timer.Reset(after)
		case <-timer.C:
			h.stats.count(c.req.Model, func(m *ModelStats) { m.Hedged++ })
			out++
			second := *c
			second.waited = new(atomic.Int64) // the call does not wait while its first attempt is out
			go ask(&second)
		case r := <-answers:
			out--
			if r.Err == nil {
				r.Response.Metadata.Hedged = failed.Err != nil || out > 0
				return r.Response, nil
			}
			if failed.Err == nil || errors.Is(failed.Err, budget.ErrNoRoom) {
				failed = r // that there was no room for a second attempt is no failure
			}
			if out == 0 {
				return nil, failed.Err
			}
		}
	}
}

func (h *hedge) delay(model string) (d time.Duration) {
	h.stats.count(model, func(m *ModelStats) {
		if m.Latency.Count() >= uint64(h.rule.MinAnswers) {
			d = m.Latency.Quantile(h.rule.Percentile)
			d += d / 20 // a sketch may be slightly too low
		}
	})
	return d
}
