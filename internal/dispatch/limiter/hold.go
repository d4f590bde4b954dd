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
