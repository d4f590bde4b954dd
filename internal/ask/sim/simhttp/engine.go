package simhttp

import (
	"fmt"
	"maps"
	"net/http"
	"sync"

	"parley/internal/ask/sim"
)

// engine simulates what inference engines and their proxies add to the vendors' APIs: sessions in
// the path, the version of the weights, and metrics.
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

// metrics answers with a page for Prometheus that has vLLM's names. The use of the cache is the
// share of --concurrency that is in use.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	running, waiting, cache := s.stats.inFlight.Load(), int64(0), 0.0
	if limit := int64(s.cfg.Sim.Limits.Concurrency); limit > 0 {
		running, waiting = min(running, limit), max(0, running-limit)
		cache = float64(running) / float64(limit)
	}
	page := fmt.Appendf(nil, `# HELP vllm:num_requests_running Requests being answered.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="sim"} %d
# HELP vllm:num_requests_waiting Requests that wait.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="sim"} %d
# HELP vllm:kv_cache_usage_perc Use of the cache, 0 to 1.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="sim"} %g
`, running, waiting, cache)
	writeBody(w, http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", page)
}
