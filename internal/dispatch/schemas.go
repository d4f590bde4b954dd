package dispatch

import (
	"sync"

	"parley/internal/answer"
	"parley/llm"
)

// schemas decides for which models the prompt holds the schema: those that are not known to
// follow one that is sent natively, and those that have once not followed it. The schema is
// sent natively as well, wherever the model is not known to refuse it.
//
// It stands below cache and journal: what is added here is no part of what a call is known by.
type schemas struct {
	follows func(model string) bool

	mu    sync.RWMutex
	shown map[string]bool // by model, written provider/model
}

func newSchemas(follows func(model string) bool) *schemas {
	return &schemas{follows: follows, shown: map[string]bool{}}
}

// asked returns req as it is first sent: itself, or with the schema in its prompt.
func (s *schemas) asked(req *llm.Request) *llm.Request {
	if req.Schema == nil || !s.shows(req.Model) {
		return req
	}
	return instructed(req)
}

func (s *schemas) shows(model string) bool {
	s.mu.RLock()
	shown, known := s.shown[model]
	s.mu.RUnlock()
	if known {
		return shown
	}
	shown = !s.follows(model)
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, known := s.shown[model]; known {
		return was // somebody has learned more meanwhile
	}
	if len(s.shown) < maxModels {
		s.shown[model] = shown
	}
	return shown
}

// judge takes in an answer that does not follow its schema. Where that was the model's own
// doing, the schema is not left to the server again.
func (s *schemas) judge(model string, resp *llm.Response) {
	if provider, _ := llm.SplitModel(model); resp.Provider != provider {
		return // a fallback's
	}
	if resp.Finish == llm.FinishLength || resp.Finish == llm.FinishRefused || resp.Refusal != "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.shown[model]; known || len(s.shown) < maxModels {
		s.shown[model] = true
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
