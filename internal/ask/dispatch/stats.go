package dispatch

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/limiter"
	"parley/internal/kit/sketch"
	"parley/llm"
)

// counters counts what a Dispatcher does, per model and in all. It can be read at any time; its memory
// does not grow with the calls.
type counters struct {
	gauge limiter.Gauge

	mu     sync.Mutex
	models map[string]*ModelStats
}

func newCounters() *counters { return &counters{models: map[string]*ModelStats{}} }

// Snapshot is what a Dispatcher has counted at one moment.
type Snapshot struct {
	InFlight    int64 `json:"in_flight"`     // sent and not answered
	InFlightMax int64 `json:"in_flight_max"` // maximum so far
	Waiting     int64 `json:"waiting"`       // for a provider's limits
	ModelStats        // all models together
	// Models is by provider/model.
	Models map[string]ModelStats `json:"models,omitempty"`
}

// ModelStats counts the calls to one model.
type ModelStats struct {
	Calls       int64               `json:"calls"`            // calls that ended
	Failed      int64               `json:"failed"`           // that ended with an error
	Cached      int64               `json:"cached"`           // answered by our cache
	Coalesced   int64               `json:"coalesced"`        // joined with an equal call in flight
	Attempts    int64               `json:"attempts"`         // sent to the provider
	Retried     int64               `json:"retried"`          // attempts after a failure
	Batched     int64               `json:"batched"`          // attempts over a batch API
	RateLimited int64               `json:"rate_limited"`     // attempts refused for a rate limit
	Warmed      int64               `json:"warmed"`           // calls that waited until a prefix was cached
	Errors      map[llm.Kind]int64  `json:"errors,omitempty"` // failed attempts by kind
	LastError   map[llm.Kind]string `json:"said,omitempty"`   // text of the last failed attempt of each kind; hostile

	Native    int64 `json:"native"`    // structured answers that were valid at once
	Tolerant  int64 `json:"tolerant"`  // that needed the tolerant parser
	Repaired  int64 `json:"repaired"`  // that needed another request
	Malformed int64 `json:"malformed"` // that never became valid

	Usage     llm.Usage `json:"usage"`
	Cost      llm.Money `json:"cost"`
	Uncertain llm.Money `json:"uncertain"` // of attempts that may have been billed
	Saved     llm.Money `json:"saved"`     // by the providers' prompt caches
	Estimated int64     `json:"estimated"` // attempts charged without a usage from the provider
	Unpriced  int64     `json:"unpriced"`  // attempts of a model with no known price

	Latency   sketch.Sketch `json:"-"` // of attempts that were answered
	FirstByte sketch.Sketch `json:"-"`
	Waited    sketch.Sketch `json:"-"` // time in the queue, of calls that were answered
	Whole     sketch.Sketch `json:"-"` // of whole calls

	refusedCalls int64     // calls that were refused for now and are retried
	refusedSince time.Time // the first refusal after the last answer
	refusal      llm.Kind  // the last
}

// Snapshot returns a copy of the counts.
func (s *counters) Snapshot() Snapshot {
	out := Snapshot{
		InFlight: s.gauge.InFlight.Load(), InFlightMax: s.gauge.InFlightMax.Load(), Waiting: s.gauge.Waiting.Load(),
		Models: map[string]ModelStats{},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, m := range s.models {
		c := *m
		c.Errors = maps.Clone(m.Errors)
		c.LastError = maps.Clone(m.LastError)
		out.Models[name] = c
	}
	out.ModelStats = total(out.Models)
	return out
}

// Names lists the models of a snapshot in order.
func (s Snapshot) Names() []string {
	return slices.Sorted(maps.Keys(s.Models))
}

// Plus returns what s and o count together.
func (s Snapshot) Plus(o Snapshot) Snapshot {
	out := Snapshot{InFlight: s.InFlight + o.InFlight, InFlightMax: s.InFlightMax + o.InFlightMax, Waiting: s.Waiting + o.Waiting, Models: map[string]ModelStats{}}
	for _, models := range []map[string]ModelStats{s.Models, o.Models} {
		for name, m := range models {
			sum := total(map[string]ModelStats{name: out.Models[name]})
			sum.add(m)
			out.Models[name] = sum
		}
	}
	out.ModelStats = total(out.Models)
	return out
}

func total(models map[string]ModelStats) ModelStats {
	t := ModelStats{Errors: map[llm.Kind]int64{}}
	for _, m := range models {
		t.add(m)
	}
	return t
}

func (t *ModelStats) add(m ModelStats) {
	for _, f := range []struct {
		to   *int64
		from int64
	}{
		{&t.Calls, m.Calls}, {&t.Failed, m.Failed}, {&t.Cached, m.Cached}, {&t.Coalesced, m.Coalesced},
		{&t.Attempts, m.Attempts}, {&t.Retried, m.Retried}, {&t.Batched, m.Batched}, {&t.RateLimited, m.RateLimited},
		{&t.Warmed, m.Warmed}, {&t.Native, m.Native}, {&t.Tolerant, m.Tolerant}, {&t.Repaired, m.Repaired},
		{&t.Malformed, m.Malformed}, {&t.Estimated, m.Estimated}, {&t.Unpriced, m.Unpriced},
	} {
		*f.to += f.from
	}
	for k, n := range m.Errors {
		t.Errors[k] += n
	}
	if t.LastError == nil {
		t.LastError = map[llm.Kind]string{}
	}
	maps.Copy(t.LastError, m.LastError)
	t.Usage = t.Usage.Plus(m.Usage)
	t.Cost = t.Cost.Plus(m.Cost)
	t.Uncertain = t.Uncertain.Plus(m.Uncertain)
	t.Saved = t.Saved.Plus(m.Saved)
	t.Latency.Merge(&m.Latency)
	t.FirstByte.Merge(&m.FirstByte)
	t.Waited.Merge(&m.Waited)
	t.Whole.Merge(&m.Whole)
}

// attempt counts an attempt that ended with resp or e and was charged c.
func (t *ModelStats) attempt(resp *llm.Response, e *llm.Error, c budget.Charge, priced bool) {
	t.Attempts++
	t.Cost = t.Cost.Plus(c.Cost)
	t.Uncertain = t.Uncertain.Plus(c.Uncertain)
	t.Saved = t.Saved.Plus(c.Saved)
	if !priced {
		t.Unpriced++
	}
	if c.Estimated() {
		t.Estimated++
	}
	if e != nil {
		t.failed(e)
		return
	}
	t.refusedSince = time.Time{}
	t.Usage = t.Usage.Plus(resp.Usage)
}

// count changes the counts of a model.
func (s *counters) count(model string, f func(*ModelStats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.forModel(model))
}

func (s *counters) forModel(model string) *ModelStats {
	if len(model) > maxName {
		model = strings.Clone(model[:maxName])
	}
	m := s.models[model]
	if m == nil {
		if len(s.models) >= maxModels {
			model = otherModels
			if m = s.models[model]; m != nil {
				return m
			}
		}
		m = &ModelStats{Errors: map[llm.Kind]int64{}, LastError: map[llm.Kind]string{}}
		s.models[model] = m
	}
	return m
}

const (
	maxModels   = 1000 // counted separately; made-up names must not use up the memory
	maxName     = 256  // bytes of the name of one of them
	otherModels = "other"
)

// call counts a call that ended after d.
func (s *counters) call(req *llm.Request, resp *llm.Response, err error, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.forModel(req.Model)
	m.Calls++
	if err != nil {
		m.Failed++
		return
	}
	m.Whole.Add(d)
	m.Waited.Add(resp.Metadata.Waited)
	if resp.Metadata.Cached {
		m.Cached++
	}
	if resp.Metadata.Coalesced {
		m.Coalesced++
	}
}
