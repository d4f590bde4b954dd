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

// goModel wraps a model that another program wrote in Go, so that it always behaves as llm.Model promises: every result becomes a
// response or an *llm.Error. The caller owns both and may change them.
func goModel(m llm.Model) llm.Model { return strictModel{model: m} }

type strictModel struct {
	model llm.Model
	wraps bool // it wraps a model of ours, whose errors say what they mean
}

// Ask asks the model. A panic, a runtime.Goexit and a missing answer are failures that are not retried. The model runs on
// its own goroutine with its own copy of the request, so it cannot harm other calls.
func (s strictModel) Ask(ctx context.Context, req *llm.Request) (resp *llm.Response, err error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		returned := false
		defer func() {
			if v := recover(); v != nil {
				resp, err = nil, brokenModel("the model panicked: %v", v)
			} else if !returned {
				resp, err = nil, brokenModel("the model ended its goroutine: it called runtime.Goexit, or Fatal of a test")
			}
		}()
		resp, err = s.ask(ctx, req.Clone())
		returned = true
	})
	wg.Wait()
	return resp, err
}

func (s strictModel) ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	resp, err := s.model.Ask(ctx, req)
	if known, ok := errors.AsType[*llm.Error](err); ok && known != nil && s.wraps {
		return nil, err
	}
	if err != nil {
		return nil, failureOf(ctx, err)
	}
	if resp == nil {
		return nil, brokenModel("the model returned neither a response nor an error")
	}
	if err := recordable(resp); err != nil {
		return nil, err
	}
	own := *resp
	own.ToolCalls, own.Thoughts, own.JSON = slices.Clone(resp.ToolCalls), slices.Clone(resp.Thoughts), bytes.Clone(resp.JSON)
	own.Metadata = durationsOnly(resp.Metadata)
	if own.Finish == "" {
		if own.Finish = llm.FinishStop; len(own.ToolCalls) > 0 {
			own.Finish = llm.FinishTools
		}
	}
	return &own, nil
}

// recordable refuses a response that cannot be written as JSON, and so not into a run file.
func recordable(resp *llm.Response) error {
	problem := ""
	if len(resp.JSON) > 0 && !json.Valid(resp.JSON) {
		problem = "JSON is not valid"
	}
	for i, l := range resp.Logprobs {
		if !finite(l.Logprob) || slices.ContainsFunc(l.Top, func(l llm.Logprob) bool { return !finite(l.Logprob) || len(l.Top) > 0 }) {
			problem = fmt.Sprintf("Logprobs[%d] is infinite, not a number, or has alternatives of alternatives", i)
			break
		}
	}
	if problem == "" {
		return nil
	}
	e := brokenModel("the model returned a response that cannot be recorded: %s", problem)
	e.Kind, e.Usage = llm.KindMalformed, resp.Usage
	return e
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// failureOf turns the error of a model into an *llm.Error. An error of another type does not say whether the call is
// billed, so it is uncertain.
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
	e.Kind, e.Metadata = cmp.Or(e.Kind, llm.KindServer), durationsOnly(e.Metadata)
	if e.Kind == llm.KindCanceled && ctx.Err() == nil {
		e.Kind = llm.KindServer // nobody canceled the call
	}
	// The engine stops the run on a bad request without a status, and on a 404: it takes them for a fault of the plan and
	// for an unknown model. A model in Go cannot know either, so only this call fails.
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

// brokenModel returns the failure of a model that breaks the contract of llm.Model.
func brokenModel(format string, args ...any) *llm.Error {
	return &llm.Error{Kind: llm.KindServer, Final: true, Uncertain: true, Message: fmt.Sprintf(format, args...)}
}

// durationsOnly keeps the durations of m, which a model may report, and nothing else.
func durationsOnly(m llm.Metadata) llm.Metadata {
	return llm.Metadata{Latency: max(0, m.Latency), FirstByte: max(0, m.FirstByte)}
}
