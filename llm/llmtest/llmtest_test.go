package llmtest

import (
	"context"
	"strings"
	"testing"

	"parley/llm"
)

// obedient answers everything as the suite wants it, so that a fault of the suite
// itself shows here.
func obedient(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if ctx.Err() != nil {
		return nil, llm.AsError(ctx.Err())
	}
	llm.Began(ctx)
	r := &llm.Response{Text: "word", Model: "m", Finish: llm.FinishStop, Usage: llm.Usage{Input: 3, Output: 1}}
	switch {
	case req.ToolChoice == "weather" || req.ToolChoice == "required":
		r.ToolCalls = []llm.ToolCall{{ID: "1", Name: "weather", Arguments: "{}"}}
		r.Finish = llm.FinishTools
	case req.Schema != nil:
		r.Text = `{"city":"Rome","people":3}`
	case req.MaxTokens < 10:
		r.Finish = llm.FinishLength
	}
	for _, s := range req.Stop {
		r.Text, _, _ = strings.Cut(r.Text, s)
	}
	return r, nil
}

func TestExercise(t *testing.T) {
	t.Parallel()
	stall := llm.Func(func(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
		<-ctx.Done()
		return nil, llm.AsError(ctx.Err())
	})
	Exercise(t, Harness{Model: llm.Func(obedient), Name: "p/m", Stall: stall})
}
