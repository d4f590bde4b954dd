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

// Model is the simulated provider in process: it answers at once, and everything that it is asked.
type Model struct{ brain *Brain }

// New returns a Model. Of cfg it has what changes answers: delays, limits, and faults of a connection are those of a server.
func New(cfg Config) (*Model, error) {
	b, err := NewBrain(cfg)
	if err != nil {
		return nil, err
	}
	return &Model{b}, nil
}

// Ask answers req. Failures are *llm.Error of the same kinds as over HTTP.
func (m *Model) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	start := time.Now()
	if ctx.Err() != nil {
		return nil, fail(req, canceled(ctx))
	}
	c, err := m.open(req)
	if err != nil {
		return nil, fail(req, &llm.Error{Kind: llm.KindBadRequest, Status: 400, Message: err.Error(), Err: err})
	}
	a, failed := m.answerOrPanic(&c)
	if failed != nil {
		return nil, fail(req, failed)
	}
	reading := m.brain.ReadCache(&c, start)
	m.brain.Keep(reading, start)
	llm.Began(ctx)
	r := response(&c, &a)
	r.Usage = c.Usage(&a, reading)
	r.Metadata.Latency = time.Since(start)
	r.Metadata.FirstByte = r.Metadata.Latency
	return r, nil
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

// answerOrPanic returns the brain's answer, or the failure of a stand-in that panicked.
func (m *Model) answerOrPanic(c *Case) (a Answer, err *llm.Error) {
	defer func() {
		if v := recover(); v != nil {
			err = &llm.Error{Kind: llm.KindServer, Status: 500, Final: true, Message: fmt.Sprintf("the stand-in panicked: %v", v)}
		}
	}()
	return m.brain.Answer(c), nil
}

func response(c *Case, a *Answer) *llm.Response {
	req := c.Request
	r := &llm.Response{
		Text: a.Text, Refusal: a.Refusal, Finish: a.Finish, ToolCalls: a.ToolCalls,
		Model: c.Model, Provider: provider(req), ID: "sim-" + strconv.FormatUint(c.Digest, 16), Tier: req.Tier,
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

func provider(req *llm.Request) string {
	if req == nil {
		return "sim"
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

func fail(req *llm.Request, e *llm.Error) *llm.Error {
	e.Provider = provider(req)
	if req != nil {
		_, e.Model = llm.SplitModel(req.Model)
	}
	return e
}

// canceled returns the error of a caller whose context is done.
func canceled(ctx context.Context) *llm.Error {
	e := llm.AsError(ctx.Err())
	return &llm.Error{Kind: e.Kind, Message: e.Message, Err: context.Cause(ctx)}
}
