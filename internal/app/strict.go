package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"

	"parley/llm"
)

// strict holds a model that somebody else wrote to what llm.Model promises: whatever it does becomes a response or an
// *llm.Error of its own, which dispatch may write to.
type strict struct{ model llm.Model }

// Ask asks the model. A panic, a runtime.Goexit, and an answer of nothing are failures that are not tried again. The model
// gets a request of its own, and is asked on a goroutine of its own: what it does to them harms nobody else.
func (s strict) Ask(ctx context.Context, req *llm.Request) (resp *llm.Response, err error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		returned := false
		defer func() {
			if v := recover(); v != nil {
				resp, err = nil, broken("the model panicked: %v", v)
			} else if !returned {
				resp, err = nil, broken("the model ended its goroutine: it called runtime.Goexit, or Fatal of a test")
			}
		}()
		resp, err = s.ask(ctx, req.Clone())
		returned = true
	})
	wg.Wait()
	return resp, err
}

func (s strict) ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	resp, err := s.model.Ask(ctx, req)
	if err != nil {
		return nil, failureOf(ctx, err)
	}
	if resp == nil {
		return nil, broken("the model returned neither a response nor an error")
	}
	if err := recordable(resp); err != nil {
		return nil, err
	}
	own := *resp
	own.ToolCalls, own.Thoughts, own.JSON = slices.Clone(resp.ToolCalls), slices.Clone(resp.Thoughts), bytes.Clone(resp.JSON)
	own.Metadata = timesOf(resp.Metadata)
	if own.Finish == "" {
		if own.Finish = llm.FinishStop; len(own.ToolCalls) > 0 {
			own.Finish = llm.FinishTools
		}
	}
	return &own, nil
}

// recordable refuses a response that no run file can hold, as JSON has no word for it.
func recordable(resp *llm.Response) error {
	what := ""
	if len(resp.JSON) > 0 && !json.Valid(resp.JSON) {
		what = "JSON is not valid"
	}
	for i, l := range resp.Logprobs {
		if !finite(l.Logprob) || slices.ContainsFunc(l.Top, func(l llm.Logprob) bool { return !finite(l.Logprob) || len(l.Top) > 0 }) {
			what = fmt.Sprintf("Logprobs[%d] is infinite, not a number, or has alternatives of alternatives", i)
			break
		}
	}
	if what == "" {
		return nil
	}
	e := broken("the model returned a response that cannot be recorded: %s", what)
	e.Kind, e.Usage = llm.KindMalformed, resp.Usage
	return e
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

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
	e.Kind, e.Metadata = cmp.Or(e.Kind, llm.KindServer), timesOf(e.Metadata)
	if e.Kind == llm.KindCanceled && ctx.Err() == nil {
		e.Kind = llm.KindServer // nobody canceled the call
	}
	// The engine takes a bad request without a status for a fault of the plan, and 404 for a provider that has no such
	// model. Neither is known of a model in Go: this call fails, and not the run.
	if e.Status == http.StatusNotFound {
		e.Status = 0
	}
	if e.Kind == llm.KindBadRequest {
		e.Status = cmp.Or(e.Status, http.StatusBadRequest)
	}
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
func timesOf(t llm.Metadata) llm.Metadata {
	return llm.Metadata{Latency: max(0, t.Latency), FirstByte: max(0, t.FirstByte)}
}
