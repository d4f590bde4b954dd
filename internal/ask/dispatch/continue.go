package dispatch

import (
	"slices"

	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// An answer that a server cuts off, as it does when it gets new weights, is continued from its last token if that is exact:
// the server gave the ids of all tokens so far and takes them back, and nothing but the tokens decides how the answer goes
// on. Otherwise the whole answer is asked for again.

// goesOn returns the call with what an answer that was cut off has, if the model can continue it. first is the call before its
// first attempt.
func (r *retry) goesOn(c, first *call, resp *llm.Response) *call {
	n := len(resp.TokenIDs)
	switch req := c.req; {
	case n == 0:
		return c
	case r.continues == nil || !r.continues(req.Model) || !plain(req), resp.Refusal != "" || len(resp.Thoughts)+len(resp.ToolCalls) > 0,
		req.Logprobs && len(resp.Logprobs) != n, req.Begun == nil && len(resp.PromptTokenIDs) == 0:
		return first.continuing(nil)
	}
	return c.continuing(joined(c.req.Begun, resp))
}

// continuing returns a copy of the call that continues an answer. Nil: that begins it.
func (c *call) continuing(begun *llm.Response) *call {
	req := *c.req
	req.Begun = begun
	return c.with(&req)
}

// plain reports whether the tokens of a prompt and of an answer so far decide how the answer goes on.
func plain(req *llm.Request) bool {
	for name := range req.Extra {
		if name != "chat_template_kwargs" { // it made the prompt
			return false
		}
	}
	return req.TokenIDs && req.MaxTokens > 0 && len(req.Tools)+len(req.Stop) == 0 && req.Schema == nil && req.Seed == nil && req.Effort == "" &&
		req.FrequencyPenalty == nil && req.PresencePenalty == nil && req.TopLogprobs == 0
}

// joined returns an answer whose beginning was written before.
func joined(begun, rest *llm.Response) *llm.Response {
	out, span := *rest, llm.Span{Tokens: len(rest.TokenIDs), WeightVersion: rest.WeightVersion}
	if begun == nil {
		out.Spans = []llm.Span{span}
		return &out
	}
	out.Text = begun.Text + rest.Text
	out.TokenIDs, out.PromptTokenIDs = slices.Concat(begun.TokenIDs, rest.TokenIDs), begun.PromptTokenIDs
	out.Logprobs = slices.Concat(begun.Logprobs, rest.Logprobs)
	out.Spans, out.WeightVersion = append(slices.Clip(begun.Spans), span), begun.WeightVersion // the oldest
	out.Usage = llm.Usage{Input: begun.Usage.Input, Cached: begun.Usage.Cached, Output: llm.AddTokens(begun.Usage.Output, rest.Usage.Output)}
	return &out
}

// complete returns the whole answer to a call that may continue one.
func complete(req *llm.Request, resp *llm.Response) (*llm.Response, error) {
	n := len(resp.TokenIDs)
	switch {
	case req.Begun == nil:
		return resp, nil
	case n == 0 && resp.Text != "" || req.Logprobs && len(resp.Logprobs) != n:
		return nil, fault.Malformed("the server continued an answer without the ids of its tokens", nil)
	}
	return joined(req.Begun, resp), nil
}

// full reports whether an answer has all the tokens that it may have.
func full(c *call) bool {
	return c.req.Begun != nil && len(c.req.Begun.TokenIDs) >= c.req.MaxTokens
}

// limited returns such an answer.
func limited(c *call) *llm.Response {
	resp := *c.req.Begun
	resp.Finish = llm.FinishLength
	return &resp
}

// notContinued reports whether an attempt to continue an answer failed in a way that asking for the whole one may not.
func notContinued(e *llm.Error) bool {
	switch e.Kind {
	case llm.KindCanceled, llm.KindBudget, llm.KindAuth, llm.KindQuota:
		return false
	default:
		return e.Kind == llm.KindMalformed || !e.Kind.Retryable()
	}
}

// kept adds to an error what the call has of its answer.
func kept(c *call, err error) error {
	if c.req.Begun == nil {
		return err
	}
	e := *llm.AsError(err)
	e.Partial = c.req.Begun
	return &e
}
