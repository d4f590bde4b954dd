package simhttp

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"parley/internal/ask/sim"
	"parley/llm"
)

// Stats is the answer to GET /stats.
type Stats struct {
	Requests    int64            `json:"requests"`      // received, except for /stats
	OK          int64            `json:"ok"`            // answered with success
	RateLimited int64            `json:"rate_limited"`  // refused with 429
	InFlight    int64            `json:"in_flight"`     // now
	InFlightMax int64            `json:"in_flight_max"` // ever
	Tokens      TokenStats       `json:"tokens"`
	Batches     BatchStats       `json:"batches"`
	Endpoints   map[string]int64 `json:"endpoints"` // requests by endpoint
	Errors      map[string]int64 `json:"errors"`    // by status
	Faults      map[string]int64 `json:"faults"`    // injected, by name
}

// TokenStats are the tokens of all answers, including those in batches.
type TokenStats struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
	Cached int64 `json:"cached"`
}

// stats counts requests. The zero value is ready to use.
type stats struct {
	requests, ok, limited, inFlight, inFlightMax atomic.Int64
	input, output, cached                        atomic.Int64

	statuses [600]atomic.Int64

	mu        sync.Mutex
	endpoints map[string]*atomic.Int64
	faults    map[sim.Fault]int64

	running sync.RWMutex // every request in flight holds it for reading
}

// endpoint returns the counter of an endpoint.
func (s *stats) endpoint(name string) *atomic.Int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endpoints == nil {
		s.endpoints = map[string]*atomic.Int64{}
	}
	if s.endpoints[name] == nil {
		s.endpoints[name] = &atomic.Int64{}
	}
	return s.endpoints[name]
}

func (s *stats) begin(endpoint *atomic.Int64) {
	s.running.RLock()
	s.requests.Add(1)
	endpoint.Add(1)
	n := s.inFlight.Add(1)
	for {
		highest := s.inFlightMax.Load()
		if n <= highest || s.inFlightMax.CompareAndSwap(highest, n) {
			return
		}
	}
}

func (s *stats) end() {
	s.inFlight.Add(-1)
	s.running.RUnlock()
}

// wait returns when no request is being answered.
func (s *stats) wait() {
	s.running.Lock()
	s.running.Unlock() //nolint:staticcheck // the lock waits, it guards nothing
}

func (s *stats) failure(status int) {
	if status == http.StatusTooManyRequests {
		s.limited.Add(1)
	}
	if status >= 0 && status < len(s.statuses) {
		s.statuses[status].Add(1)
	}
}

func (s *stats) fault(f sim.Fault) {
	if f == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults == nil {
		s.faults = map[sim.Fault]int64{}
	}
	s.faults[f]++
}

func (s *stats) tokens(u llm.Usage) {
	s.input.Add(int64(u.Input))
	s.output.Add(int64(u.Output))
	s.cached.Add(int64(u.Cached))
}

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	t := &s.stats
	out := Stats{
		Requests: t.requests.Load(), OK: t.ok.Load(), RateLimited: t.limited.Load(),
		InFlight: t.inFlight.Load(), InFlightMax: t.inFlightMax.Load(),
		Tokens:    TokenStats{Input: t.input.Load(), Output: t.output.Load(), Cached: t.cached.Load()},
		Batches:   s.batches.Stats(),
		Endpoints: map[string]int64{}, Errors: map[string]int64{}, Faults: map[string]int64{},
	}
	for status := range t.statuses {
		if n := t.statuses[status].Load(); n > 0 {
			out.Errors[strconv.Itoa(status)] = n
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, n := range t.endpoints {
		if v := n.Load(); v > 0 {
			out.Endpoints[name] = v
		}
	}
	for f, n := range t.faults {
		out.Faults[string(f)] = n
	}
	return out
}

func (s *Server) serveStats(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, s.Stats())
}
