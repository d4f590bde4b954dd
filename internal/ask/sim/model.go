package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/llm"
)

// Model is the simulated provider in process.
type Model struct {
	brain *Brain
	quota *Quota
	gate  *Gate
}

// New returns a Model. It has the faults of answers; the others happen on a connection, to a server.
func New(cfg Config) (*Model, error) {
	b, err := NewBrain(cfg)
	if err != nil {
		return nil, err
	}
	b.live = nil
	m := &Model{brain: b, gate: NewGate(cfg.Limits)}
	if cfg.Limits.Any() {
		m.quota = NewQuota(cfg.Limits, OpenAI, time.Now())
	}
	return m, nil
}

// Ask answers req. Failures are *llm.Error of the same kinds as over HTTP.
func (m *Model) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	start := time.Now()
	if ctx.Err() != nil {
		return nil, m.canceled(ctx, req)
	}
	c, err := m.open(req)
	if err != nil {
		return nil, m.fail(req, &llm.Error{Kind: llm.KindBadRequest, Status: 400, Message: err.Error(), Err: err})
	}
	if refused := m.gate.Enter(); refused != nil {
		return nil, m.fail(req, m.limited(refused))
	}
	defer m.gate.Leave()
	cost := Cost{Input: c.Input, Max: req.MaxTokens}
	if m.quota != nil {
		if r := m.quota.Admit(start, cost); r != nil {
			return nil, m.fail(req, m.limited(r))
		}
	}
	m.brain.DrawFault(&c)
	return m.answer(ctx, &c, cost, start)
}

func (m *Model) open(req *llm.Request) (Case, error) {
	switch {
	case req == nil || len(req.Messages) == 0:
		return Case{}, errors.New("sim: the request has no messages")
	case req.MaxTokens < 0:
		return Case{}, fmt.Errorf("sim: max tokens: %d is less than 1", req.MaxTokens)
	}
	return m.brain.Open(req)
}

// answer waits as long as the answer takes, and returns the answer or its fault.
func (m *Model) answer(ctx context.Context, c *Case, cost Cost, start time.Time) (*llm.Response, error) {
	a, err := m.answerOrPanic(c)
	if err != nil {
		return nil, m.fail(c.Request, err)
	}
	reading := m.brain.ReadCache(c, start)
	first, total := m.brain.Pace(c)
	if !Wait(ctx, first) {
		return nil, m.canceled(ctx, c.Request)
	}
	llm.Began(ctx)
	m.brain.Keep(reading, start.Add(first))
	if !Wait(ctx, total-first) {
		return nil, m.canceled(ctx, c.Request)
	}
	r := m.response(c, &a)
	r.Usage = c.Usage(&a, reading)
	now := time.Now()
	r.Metadata.Latency = now.Sub(start)
	r.Metadata.FirstByte = r.Metadata.Latency - (total - first)
	if m.quota != nil {
		m.quota.Settle(now, cost, r.Usage)
		r.Rate = m.quota.Rate(now)
	}
	return r, nil
}

// answerOrPanic returns the brain's answer, or the failure of a stand-in that panicked.
func (m *Model) answerOrPanic(c *Case) (a Answer, err *llm.Error) {
	defer func() {
		if v := recover(); v != nil {
			err = &llm.Error{Kind: llm.KindServer, Status: 500, Final: true, Message: fmt.Sprintf("the stand-in panicked: %v", v)}
		}
	}()
	return m.brain.Answer(c), nil
}

func (m *Model) response(c *Case, a *Answer) *llm.Response {
	req := c.Request
	r := &llm.Response{
		Text: a.Text, Refusal: a.Refusal, Finish: a.Finish, ToolCalls: a.ToolCalls,
		Model: c.Model, Provider: m.provider(req), ID: "sim-" + strconv.FormatUint(c.Digest, 16), Tier: req.Tier,
	}
	for i := range r.ToolCalls {
		r.ToolCalls[i].ID = "call_" + r.ToolCalls[i].ID
	}
	if a.Thought != "" {
		r.Thoughts = []llm.Thought{{Text: a.Thought}}
	}
	if req.Logprobs {
		r.Logprobs = c.Logprobs(a, req.TopLogprobs)
	}
	if req.TokenIDs {
		r.TokenIDs, r.PromptTokenIDs = a.IDs(), c.PromptIDs()
	}
	return r
}

func (m *Model) provider(req *llm.Request) string {
	if m.brain.cfg.Name != "" || req == nil {
		return m.brain.cfg.Name
	}
	p, _ := llm.SplitModel(req.Model)
	return cmp.Or(p, "sim")
}

// Wait waits for d, and reports false if ctx is done before.
func Wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

var _ llm.Model = (*Model)(nil)

// limited returns the error of a request that exceeds a limit.
func (m *Model) limited(r *Refusal) *llm.Error {
	e := &llm.Error{
		Kind: llm.KindRateLimited, Status: 429, Code: "rate_limit_exceeded", RetryAfter: r.After, Final: r.TooLarge,
		Message: fmt.Sprintf("limit of %s reached: limit %.0f, used %.0f, asked for %.0f", r.What, r.Limit, r.Used, r.Asked),
	}
	if m.quota != nil {
		e.Rate = m.quota.Rate(time.Now())
	}
	return e
}

func (m *Model) fail(req *llm.Request, e *llm.Error) *llm.Error {
	e.Provider = m.provider(req)
	if req != nil {
		_, e.Model = llm.SplitModel(req.Model)
	}
	return e
}

func (m *Model) canceled(ctx context.Context, req *llm.Request) *llm.Error {
	return m.fail(req, m.canceledError(ctx))
}

// canceledError returns the error of a caller whose context is done.
func (m *Model) canceledError(ctx context.Context) *llm.Error {
	e := llm.AsError(ctx.Err())
	return &llm.Error{Kind: e.Kind, Message: e.Message, Err: context.Cause(ctx)}
}
