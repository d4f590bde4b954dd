package dispatch

import (
	"sync"

	"parley/internal/ask/answer"
	"parley/llm"
)

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
	way := s.of(req.Model)
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

// of returns how a model is given schemas now.
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
