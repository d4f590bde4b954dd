package simhttp

import (
	"maps"
	"net/http"
	"strconv"
	"sync"

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
	mu  sync.Mutex
	now Stats

	running sync.RWMutex // every request in flight holds it for reading
}

// count changes the counts.
func (s *stats) count(change func(n *Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.Endpoints == nil {
		s.now.Endpoints, s.now.Errors, s.now.Faults = map[string]int64{}, map[string]int64{}, map[string]int64{}
	}
	change(&s.now)
}

func (s *stats) begin(endpoint string) {
	s.running.RLock()
	s.count(func(n *Stats) {
		n.Requests++
		n.Endpoints[endpoint]++
		n.InFlight++
		n.InFlightMax = max(n.InFlightMax, n.InFlight)
	})
}

func (s *stats) end() {
	s.count(func(n *Stats) { n.InFlight-- })
	s.running.RUnlock()
}

// wait returns when no request is being answered.
func (s *stats) wait() {
	s.running.Lock()
	s.running.Unlock() //nolint:staticcheck // the lock waits, it guards nothing
}

func (s *stats) ok() { s.count(func(n *Stats) { n.OK++ }) }

func (s *stats) failure(status int) {
	s.count(func(n *Stats) {
		if status == http.StatusTooManyRequests {
			n.RateLimited++
		}
		n.Errors[strconv.Itoa(status)]++
	})
}

func (s *stats) fault(f sim.Fault) {
	if f != "" {
		s.count(func(n *Stats) { n.Faults[string(f)]++ })
	}
}

func (s *stats) tokens(u llm.Usage) {
	s.count(func(n *Stats) {
		n.Tokens.Input += int64(u.Input)
		n.Tokens.Output += int64(u.Output)
		n.Tokens.Cached += int64(u.Cached)
	})
}

// Stats returns the counts so far.
func (s *Server) Stats() (out Stats) {
	s.stats.count(func(n *Stats) {
		out = *n
		out.Endpoints, out.Errors, out.Faults = maps.Clone(n.Endpoints), maps.Clone(n.Errors), maps.Clone(n.Faults)
	})
	return out
}

func (s *Server) serveStats(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, s.Stats())
}
