package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"parley/llm"
)

// strict holds a model that somebody else wrote to what llm.Model promises: whatever it does becomes a response or an
// *llm.Error of its own, which dispatch may write to.
type strict struct{ model llm.Model }

// Ask asks the model. A panic, and an answer of nothing, are failures that are not tried again.
func (s strict) Ask(ctx context.Context, req *llm.Request) (resp *llm.Response, err error) {
	defer func() {
		if v := recover(); v != nil {
			resp, err = nil, broken("the model panicked: %v", v)
		}
	}()
	if resp, err = s.model.Ask(ctx, req); err != nil {
		return nil, failureOf(ctx, err)
	}
	if resp == nil {
		return nil, broken("the model returned neither a response nor an error")
	}
	own := *resp
	own.Trail = timesOf(resp.Trail)
	if own.Finish == "" {
		if own.Finish = llm.FinishStop; len(own.ToolCalls) > 0 {
			own.Finish = llm.FinishTools
		}
	}
	return &own, nil
}

// failureOf makes an *llm.Error of what a model failed with. Of an error that says nothing of it, nobody knows whether
// the call is billed.
func failureOf(ctx context.Context, err error) *llm.Error {
	known, ok := errors.AsType[*llm.Error](err)
	switch {
	case ok && known != nil:
	case ctx.Err() != nil:
		known = llm.ContextError(ctx)
	default:
		known = llm.AsError(errors.New(err.Error()))
	}
	e := *known
	e.Kind, e.Trail = cmp.Or(e.Kind, llm.KindServer), timesOf(e.Trail)
	if !ok {
		e.Uncertain, e.Err = true, err
	}
	return &e
}

// broken is the failure of a model that does not do what a Model promises.
func broken(format string, args ...any) *llm.Error {
	return &llm.Error{Kind: llm.KindServer, Final: true, Uncertain: true, Message: fmt.Sprintf(format, args...)}
}

// timesOf is what a model itself says of how it answered.
func timesOf(t llm.Trail) llm.Trail {
	return llm.Trail{Latency: max(0, t.Latency), FirstByte: max(0, t.FirstByte)}
}
