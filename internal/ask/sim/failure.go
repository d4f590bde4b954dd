package sim

import (
	"context"
	"fmt"
	"time"

	"parley/llm"
)

// injectFault waits and returns the error of a case's fault, as a client would see it. It returns nil
// if the case has an answer.
func (m *Model) injectFault(ctx context.Context, c *Case, first, total time.Duration) *llm.Error {
	after := first
	var e *llm.Error
	switch c.Fault {
	case FaultError500:
		e = &llm.Error{Kind: llm.KindServer, Status: 500, Message: "the server had an error"}
	case FaultOverloaded:
		e = &llm.Error{Kind: llm.KindOverloaded, Status: 503, Message: "the server is overloaded"}
	case FaultQuota:
		e = &llm.Error{Kind: llm.KindQuota, Status: 429, Code: "insufficient_quota", Message: "you exceeded your current quota", Final: true}
	case FaultReset:
		e = &llm.Error{Kind: llm.KindTransport, Message: "connection reset by peer", Uncertain: true}
	case FaultCut:
		e, after = &llm.Error{Kind: llm.KindTransport, Message: "connection reset by peer after half an answer", Uncertain: true}, total
	case FaultStall:
		e, after = &llm.Error{Kind: llm.KindTimeout, Message: "no answer", Uncertain: true}, m.brain.cfg.StallFor
	case FaultTruncated, FaultNoDone:
		e, after = &llm.Error{Kind: llm.KindMalformed, Status: 200, Message: "the answer ends in the middle", Uncertain: true}, total
	case FaultHTML:
		e = &llm.Error{Kind: llm.KindMalformed, Status: 200, Message: "a web page instead of an answer"}
	case FaultStreamErr:
		e, after = &llm.Error{Kind: llm.KindServer, Status: 200, Message: "an error in the middle of the stream", Uncertain: true}, total
	default:
		return nil
	}
	if !Wait(ctx, after) {
		return m.goneError(ctx)
	}
	return e
}

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

func (m *Model) gone(ctx context.Context, req *llm.Request) *llm.Error {
	return m.fail(req, m.goneError(ctx))
}

// goneError returns the error of a caller whose context is done.
func (m *Model) goneError(ctx context.Context) *llm.Error {
	e := llm.AsError(ctx.Err())
	return &llm.Error{Kind: e.Kind, Message: e.Message, Err: context.Cause(ctx)}
}
