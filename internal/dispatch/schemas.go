package dispatch

import (
	"sync"

	"parley/internal/answer"
	"parley/llm"
)

// schemas decides how a model is told of a schema. The prompt holds it for models that are not
// known to follow one that is sent natively, and for those that have once not followed it. It is
// sent natively wherever the model is not known to refuse it, until a server that nobody
// vouches for has ignored it.
//
// It stands below cache and journal: what is added here is no part of what a call is known by.
type schemas struct {
	follows func(model string) bool

	mu  sync.RWMutex
	way map[string]schemaWay // by model, written provider/model
}

// schemaWay is how a model is told of a schema.
type schemaWay int

const (
	byServer schemaWay = iota // natively
	byBoth                    // natively, and in the prompt
	byPrompt
)

func newSchemas(follows func(model string) bool) *schemas {
	return &schemas{follows: follows, way: map[string]schemaWay{}}
}

// asked returns req as it is first sent: itself, or with the schema in its prompt.
func (s *schemas) asked(req *llm.Request) *llm.Request {
	if req.Schema == nil {
		return req
	}
	way := s.of(req.Model)
	if way == byServer {
		return req
	}
	return way.sent(instructed(req))
}

// sent returns req, in whose messages the schema stands, as it is sent.
func (w schemaWay) sent(req *llm.Request) *llm.Request {
	if w == byPrompt {
		req.Schema = nil
	}
	return req
}

// of is how a model is told of schemas now.
func (s *schemas) of(model string) schemaWay {
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
		return was // somebody has learned more meanwhile
	}
	if len(s.way) < maxModels {
		s.way[model] = way
	}
	return way
}

// judge takes in an answer that does not follow its schema. Where that was the model's own
// doing, the schema is not left to the server again. It is not even sent natively to one that
// has ignored it, unless the server is known to follow schemas: those have bad moments too.
func (s *schemas) judge(model string, schema *llm.Schema, resp *llm.Response) {
	if provider, _ := llm.SplitModel(model); resp.Provider != provider {
		return // a fallback's
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

// instructed puts the schema into the prompt of a request that has one: at the end of the last
// message if that is the user's, since many chat templates refuse two messages of one side in a
// row. A message that calls have in common is left alone, so that its prefix stays cached.
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
	if end := &parts[len(parts)-1]; end.Image == nil {
		end.Text += "\n\n" + words
	} else {
		parts = append(parts, llm.Part{Text: words})
	}
	m.Parts = parts
	return &r
}
