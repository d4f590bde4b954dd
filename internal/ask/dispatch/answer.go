package dispatch

import (
	"context"
	"fmt"

	"parley/internal/ask/answer"
	"parley/internal/kit/text"
	"parley/llm"
)

// maxRepairs is how often a structured answer that does not follow its schema is asked for again.
const maxRepairs = 2

// answers makes structured answers valid. It uses the provider's native structured output where
// there is one, puts the schema in the prompt where the model is not known to follow it, reads the
// answer with one tolerant parser, and repairs it a limited number of times by showing the model
// the schema and what is wrong.
type answers struct {
	next     layer
	compiler *answer.Compiler
	schemas  *schemas
	stats    *Stats
}

// ask asks. For a request with a Schema it returns a response whose JSON is valid, or an error of
// KindInvalid.
func (a *answers) ask(ctx context.Context, c *call) (*llm.Response, error) {
	if c.req.Schema == nil {
		return a.next.ask(ctx, c)
	}
	return a.structured(ctx, c)
}

// structured is ask for a request with a Schema.
func (a *answers) structured(ctx context.Context, c *call) (*llm.Response, error) {
	req := c.req
	schema, err := a.compiler.Compile(req.Schema.JSON)
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Message: err.Error(), Err: err}
	}
	ask := a.schemas.asked(req)
	var spent llm.Usage
	for n, tries := 0, 0; ; n++ {
		resp, err := a.next.ask(ctx, c.with(ask))
		if err != nil {
			e := *llm.AsError(err)
			e.Usage = e.Usage.Plus(spent)
			e.Metadata.Attempts += tries
			return nil, &e
		}
		tries += resp.Metadata.Attempts
		spent = spent.Plus(resp.Usage)
		resp.Usage, resp.Metadata.Attempts = spent, tries
		if len(resp.ToolCalls) > 0 && resp.Text == "" {
			return resp, nil // it calls tools first; the answer comes in a later turn
		}
		value, how, readErr := schema.Read(resp.Text)
		if readErr == nil {
			resp.JSON = value
			resp.Metadata.Parsed = a.count(req.Model, how, n)
			return resp, nil
		}
		a.schemas.judge(req.Model, req.Schema, resp)
		if e := a.hopeless(resp, readErr, n); e != nil {
			a.stats.count(req.Model, func(m *ModelStats) { m.Malformed++ })
			return nil, e
		}
		ask = a.schemas.of(req.Model).sent(repaired(ask, resp.Text, readErr, n == 0 && ask == req))
	}
}

// repaired returns the request that asks again and shows the answer and what is wrong with it. show
// adds the schema, if the prompt does not have it yet.
func repaired(req *llm.Request, text string, why error, show bool) *llm.Request {
	words := answer.Repair(why)
	if show {
		words += "\n\n" + answer.Instruct(req.Schema.JSON)
	}
	r := *req
	r.Messages = append(append(make([]llm.Message, 0, len(req.Messages)+2), req.Messages...),
		llm.Assistant(text), llm.User(words))
	return &r
}

// hopeless returns the error of an answer that asking again will not fix, or nil.
func (a *answers) hopeless(resp *llm.Response, why error, n int) *llm.Error {
	e := &llm.Error{
		Kind: llm.KindInvalid, Model: resp.Model, Provider: resp.Provider, RequestID: resp.RequestID,
		Usage: resp.Usage, Metadata: resp.Metadata, Err: why,
	}
	switch {
	case resp.Finish == llm.FinishRefused || resp.Refusal != "":
		e.Kind, e.Message = llm.KindRefused, "the model refused: "+text.Excerpt(resp.Refusal+resp.Text, 200)
	case resp.Finish == llm.FinishLength:
		e.Kind, e.Message = llm.KindCutOff, "the answer was cut off at the limit of output tokens: "+why.Error()
	case n >= maxRepairs:
		e.Message = fmt.Sprintf("the answer does not follow its schema after %d repairs: %v", n, why)
	default:
		return nil
	}
	return e
}

func (a *answers) count(model string, how answer.How, repairs int) (parsed string) {
	a.stats.count(model, func(m *ModelStats) {
		switch {
		case repairs > 0:
			m.Repaired++
			parsed = "repaired"
		case how == answer.Tolerant:
			m.Tolerant++
			parsed = "tolerant"
		default:
			m.Native++
			parsed = "native"
		}
	})
	return parsed
}
