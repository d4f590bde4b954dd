package dispatch

import (
	"context"
	"fmt"
	"sync"

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
	stats    *counters
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
	for n := 0; ; n++ {
		resp, err := a.next.ask(ctx, c.with(ask))
		if err != nil {
			e := *llm.AsError(err)
			e.Usage = e.Usage.Plus(spent)
			return nil, &e
		}
		spent = spent.Plus(resp.Usage)
		resp.Usage = spent
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
		if e := a.unrepairable(resp, readErr, n); e != nil {
			a.stats.count(req.Model, func(m *ModelStats) { m.Malformed++ })
			return nil, e
		}
		ask = a.schemas.wayOf(req.Model).sent(repaired(ask, resp.Text, readErr, n == 0 && ask == req))
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

// unrepairable returns the error of an answer that asking again will not fix, or nil.
func (a *answers) unrepairable(resp *llm.Response, why error, n int) *llm.Error {
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

// schemas decides how a model is given a schema. The prompt has it for models that are not known to
// follow a native schema, and for those that once did not. It is sent natively unless the model is
// known to refuse it, until an unknown server has ignored it.
//
// It is below cache and journal: what is added here does not change the identity of a call.
type schemas struct {
	follows func(model string) bool

	mu  sync.RWMutex
	way map[string]schemaWay // by model, written provider/model
}

// schemaWay is how a model is given a schema.
type schemaWay int

const (
	byServer schemaWay = iota // natively
	byBoth                    // natively, and in the prompt
	byPrompt
)

func newSchemas(follows func(model string) bool) *schemas {
	return &schemas{follows: follows, way: map[string]schemaWay{}}
}

// asked returns req as it is first sent: unchanged, or with the schema in its prompt.
func (s *schemas) asked(req *llm.Request) *llm.Request {
	if req.Schema == nil {
		return req
	}
	way := s.wayOf(req.Model)
	if way == byServer {
		return req
	}
	return way.sent(instructed(req))
}

// sent returns req, whose messages have the schema, as it is sent.
func (w schemaWay) sent(req *llm.Request) *llm.Request {
	if w == byPrompt {
		req.Schema = nil
	}
	return req
}

// wayOf returns how a model is given schemas now.
func (s *schemas) wayOf(model string) schemaWay {
	s.mu.RLock()
	way, known := s.way[model]
	s.mu.RUnlock()
	if known {
		return way
	}
	if !s.follows(model) {
		way = byBoth
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, known := s.way[model]; known {
		return was // another call has learned more meanwhile
	}
	if len(s.way) < maxModels {
		s.way[model] = way
	}
	return way
}

// judge learns from an answer that does not follow its schema. If the model is the cause, the
// prompt has the schema from now on. A server that ignored it is not sent it natively any more,
// unless the server is known to follow schemas.
func (s *schemas) judge(model string, schema *llm.Schema, resp *llm.Response) {
	if provider, _ := llm.SplitModel(model); resp.Provider != provider {
		return // a fallback answered
	}
	if resp.Finish == llm.FinishLength || resp.Finish == llm.FinishRefused || resp.Refusal != "" {
		return
	}
	way := byBoth
	if !s.follows(model) && answer.Ignores(schema.JSON, resp.Text) {
		way = byPrompt
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, known := s.way[model]; known || len(s.way) < maxModels {
		s.way[model] = max(was, way)
	}
}

// instructed puts the schema into the prompt of a request: at the end of the last message if that
// is the user's, since many chat templates refuse two messages of one role in a row. A message of
// the shared prefix is not changed, so that the prefix stays cached.
func instructed(req *llm.Request) *llm.Request {
	if req.Schema == nil {
		return req
	}
	words := answer.Instruct(req.Schema.JSON)
	r := *req
	last := len(req.Messages) - 1
	r.Messages = append(make([]llm.Message, 0, len(req.Messages)+1), req.Messages...)
	if last < 0 || last < req.Prefix || req.Messages[last].Role != llm.RoleUser || len(req.Messages[last].Parts) == 0 {
		r.Messages = append(r.Messages, llm.User(words))
		return &r
	}
	m := &r.Messages[last]
	parts := append(make([]llm.Part, 0, len(m.Parts)+1), m.Parts...)
	if end := &parts[len(parts)-1]; end.IsText() {
		end.Text += "\n\n" + words
	} else {
		parts = append(parts, llm.Part{Text: words})
	}
	m.Parts = parts
	return &r
}
