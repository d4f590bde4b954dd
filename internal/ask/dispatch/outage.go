// Part outage holds calls back while their provider cannot be reached, or refuses every call: its
// server restarts, loads its model or new weights, or was not started yet.
//
// One call at a time probes the server, with growing pauses; the others wait, and all continue once
// the probe has arrived. Calls that wait longer than the limit fail. From then on later calls fail
// at once, until a probe is answered.
//
// A failure for which the server certainly did no work is waited out here, and costs neither money
// nor an attempt. Any other failure is returned; if the server is down, the next attempt waits
// here.

package dispatch

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"parley/llm"
)

// Outage says that a provider cannot be reached, or can be reached again.
type Outage struct {
	Provider, URL string
	Since         time.Time
	Why           string
	Limit         time.Duration // how long calls wait, from Since on
	Refuses       bool          // it can be reached and refuses every call; Limit does not count
	Back          bool          // it can be reached again
}

// Text describes the outage as of now.
func (o Outage) Text(now time.Time) string {
	took := now.Sub(o.Since).Round(time.Second)
	state, end := " is unreachable", " can be reached again"
	if o.Refuses {
		state, end = " refuses all calls", " answers again"
	}
	if o.Back {
		return fmt.Sprintf("%s%s after %v", o.Provider, end, took)
	}
	text := o.Provider + state
	if took > 0 {
		text += fmt.Sprintf(" for %v", took)
	}
	text += ": " + o.Why
	if o.URL != "" {
		text += " at " + o.URL
	}
	if took < o.Limit && !o.Refuses {
		text += fmt.Sprintf("; waits up to %v", o.Limit)
	}
	return text
}

// outageWhy returns what an error says, for a line about its provider.
func outageWhy(e *llm.Error) string {
	switch {
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return "connection refused"
	case e.Status != 0:
		return fmt.Sprintf("%d %s", e.Status, e.Message)
	default:
		return e.Message
	}
}
