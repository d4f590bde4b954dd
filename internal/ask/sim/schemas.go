package sim

import (
	"bytes"
	"encoding/json"
	"sync"

	"parley/internal/ask/sim/jsongen"
)

// maxSchemas is the maximum number of compiled schemas that are kept.
const maxSchemas = 1024

// compiled is a compiled schema, with a digest and the token count of its text.
type compiled struct {
	schema *jsongen.Schema // nil for a tool without parameters
	digest uint64          // of the text without white space
	tokens int
}

// schemas compiles each schema once.
type schemas struct {
	mu   sync.RWMutex
	seen map[string]*compiled
}

func (s *schemas) compile(raw json.RawMessage) (*compiled, error) {
	if len(raw) == 0 {
		return &compiled{}, nil
	}
	s.mu.RLock()
	c := s.seen[string(raw)]
	s.mu.RUnlock()
	if c != nil {
		return c, nil
	}
	schema, err := jsongen.Compile(raw)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, err
	}
	c = &compiled{schema: schema, digest: hash(0).str(b.String()).end(), tokens: Count(b.String())}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) >= maxSchemas {
		s.seen = map[string]*compiled{}
	}
	s.seen[string(raw)] = c
	return c, nil
}
