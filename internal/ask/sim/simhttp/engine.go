package simhttp

import (
	"maps"
	"net/http"
	"sync"

	"parley/internal/ask/sim"
)

// engine simulates what inference engines and their proxies add to the vendors' APIs: sessions in
// the path, and the version of the weights.
type engine struct {
	mu       sync.Mutex
	version  string          // of the weights; may be empty
	sessions map[string]bool // whether each is closed
}

// sessionRoutes adds the endpoints below a session, and the one that closes it.
func (s *Server) sessionRoutes(handle func(pattern string, style sim.Style, e Func)) {
	for _, at := range []string{"/v1/{session}", "/v1/sessions/{session}"} {
		handle("POST "+at+"/chat/completions", sim.OpenAI, s.inSession(s.answer(&s.formats.chat)))
		handle("POST "+at+"/responses", sim.OpenAI, s.inSession(s.answer(&s.formats.responses)))
		handle("POST "+at+"/messages", sim.Anthropic, s.inSession(s.answer(&s.formats.messages)))
		handle("POST "+at+"/close", sim.OpenAI, s.closeSession)
	}
}

// inSession records the session of a request, and refuses the request if the session is closed.
func (s *Server) inSession(e Func) Func {
	return func(w http.ResponseWriter, r *http.Request) *Error {
		name := r.PathValue("session")
		s.engine.mu.Lock()
		closed := s.engine.sessions[name]
		if !closed {
			s.engine.sessions[name] = false
		}
		s.engine.mu.Unlock()
		if closed {
			return &Error{Status: http.StatusConflict, Type: "invalid_request_error", Code: "session_closed", Message: "The session is closed."}
		}
		return e(w, r)
	}
}

func (s *Server) closeSession(w http.ResponseWriter, r *http.Request) *Error {
	name := r.PathValue("session")
	s.engine.mu.Lock()
	_, known := s.engine.sessions[name]
	if known {
		s.engine.sessions[name] = true
	}
	s.engine.mu.Unlock()
	if !known {
		return notFound(sim.OpenAI, "", "There is no such session.")
	}
	writeJSON(w, map[string]string{"session_id": name, "status": "closed"})
	return nil
}

// Sessions returns the sessions in the paths of requests, and whether each is closed.
func (s *Server) Sessions() map[string]bool {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	return maps.Clone(s.engine.sessions)
}

func (s *Server) weightVersion() string {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	return s.engine.version
}

// updateWeightVersion answers POST /update_weight_version, as vLLM and SGLang do.
func (s *Server) updateWeightVersion(w http.ResponseWriter, r *http.Request) *Error {
	var req struct {
		NewVersion *string `json:"new_version"`
	}
	if err := s.decodeSmall(w, r, &req); err != nil || req.NewVersion == nil {
		return invalid("body.new_version", "new_version must be a string")
	}
	s.engine.mu.Lock()
	s.engine.version = *req.NewVersion
	s.engine.mu.Unlock()
	writeJSON(w, map[string]any{"success": true, "new_version": *req.NewVersion})
	return nil
}
