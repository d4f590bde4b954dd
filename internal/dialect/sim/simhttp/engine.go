package simhttp

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"sync"

	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
)

// engine is what inference engines and the proxies before them have beside the vendors' APIs:
// sessions in the path, the version of the weights, and a page of metrics.
type engine struct {
	mu       sync.Mutex
	version  string          // of the weights; empty: answers say nothing of it
	sessions map[string]bool // whether each is closed
}

// sessionRoutes serves everything that answers below a session as well, and closes sessions.
func (s *Server) sessionRoutes(handle func(pattern string, style quota.Style, e endpoint)) {
	for _, at := range []string{"/v1/{session}", "/v1/sessions/{session}"} {
		handle("POST "+at+"/chat/completions", quota.OpenAI, s.inSession(s.answer(&s.formats.chat)))
		handle("POST "+at+"/responses", quota.OpenAI, s.inSession(s.answer(&s.formats.responses)))
		handle("POST "+at+"/messages", quota.Anthropic, s.inSession(s.answer(&s.formats.messages)))
		handle("POST "+at+"/close", quota.OpenAI, s.closeSession)
	}
}

// inSession notes the session of a request, and refuses it when that is closed.
func (s *Server) inSession(e endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) *check.Error {
		name := r.PathValue("session")
		s.engine.mu.Lock()
		closed := s.engine.sessions[name]
		if !closed {
			s.engine.sessions[name] = false
		}
		s.engine.mu.Unlock()
		if closed {
			return &check.Error{Status: http.StatusConflict, Type: "invalid_request_error", Code: "session_closed", Message: "The session is closed."}
		}
		return e(w, r)
	}
}

func (s *Server) closeSession(w http.ResponseWriter, r *http.Request) *check.Error {
	name := r.PathValue("session")
	s.engine.mu.Lock()
	_, known := s.engine.sessions[name]
	if known {
		s.engine.sessions[name] = true
	}
	s.engine.mu.Unlock()
	if !known {
		return &check.Error{Status: http.StatusNotFound, Type: "invalid_request_error", Message: "There is no such session."}
	}
	writeJSON(w, map[string]string{"session_id": name, "status": "closed"})
	return nil
}

// Sessions returns the sessions that requests named in their path, and whether each is closed.
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
func (s *Server) updateWeightVersion(w http.ResponseWriter, r *http.Request) *check.Error {
	var buf bytes.Buffer
	if err := s.body(w, r, &buf, s.cfg.MaxBody, quota.OpenAI); err != nil {
		return err
	}
	var req struct {
		NewVersion *string `json:"new_version"`
	}
	if p := check.Decode(buf.Bytes(), &req, true); p != nil || req.NewVersion == nil {
		return check.Invalid("body.new_version", "new_version must be a string")
	}
	s.engine.mu.Lock()
	s.engine.version = *req.NewVersion
	s.engine.mu.Unlock()
	writeJSON(w, map[string]any{"success": true, "new_version": *req.NewVersion})
	return nil
}

// metrics is the page for Prometheus, with the names that vLLM gives. The cache is as full as
// the places of --concurrency are taken.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	running, waiting, cache := s.stats.inFlight.Load(), int64(0), 0.0
	if most := int64(s.cfg.Sim.Limits.Concurrency); most > 0 {
		running, waiting = min(running, most), max(0, running-most)
		cache = float64(running) / float64(most)
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
