package limiter

import (
	"time"

	"parley/llm"
)

// Hold refuses the calls that wait, and all later ones, with e, until it is called with nil. Calls in
// flight continue.
func (l *Limiter) Hold(e *llm.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = e
	l.pump(time.Now())
}

// Choose sets the maximum number of calls in flight.
func (l *Limiter) Choose(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adapt.choose(n)
	l.pump(time.Now())
}

// Bounds are the limits in force. Rates are a minute; 0 means that none is known.
type Bounds struct {
	InFlight, Concurrency           int
	Requests, Tokens, Input, Output float64
	// Charged is what all calls that ended have cost, as the server counts.
	Charged Units
}

// Units are what a server limits.
type Units struct {
	Requests float64 `json:"requests,omitzero"`
	Tokens   float64 `json:"tokens,omitzero"`
	Input    float64 `json:"input,omitzero"`
	Output   float64 `json:"output,omitzero"`
}

// Bounds returns the limits in force, how many calls are in flight, and what was charged so far.
func (l *Limiter) Bounds() Bounds {
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := func(i int) float64 { return l.buckets[i].rate * 60 }
	sum := func(i int) float64 { return l.buckets[i].charged }
	return Bounds{
		InFlight: l.inFlight, Concurrency: max(1, int(l.adapt.limit)),
		Requests: rate(requests), Tokens: rate(tokens), Input: rate(inputs), Output: rate(outputs),
		Charged: Units{Requests: sum(requests), Tokens: sum(tokens), Input: sum(inputs), Output: sum(outputs)},
	}
}

// Arrived notes that a call was not refused, after a time in which the server refused all calls or was not there.
func (l *Limiter) Arrived() {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adapt.arrived()
	l.pump(now)
}
