// Package health decides which of several servers get work: from their failures, from probes, and by load.
//
// A server is up until it fails too often. Then it is down for a pause; each pause in a row is twice as
// long as the one before. After a pause the caller probes the server. A server that answers the probe is
// on trial: it gets one piece of work at a time until a piece succeeds.
//
// It promises plain values: nothing here waits, locks or reads a clock. It is not for sending work or
// probes: its callers do that.
package health

import (
	"cmp"
	"slices"
	"time"
)

// Result is how a piece of work ended, as far as its server is concerned.
type Result int

// The results.
const (
	OK     Result = iota
	Failed        // the server failed
	Silent        // the server did not answer in time
	Absent        // the server could not be reached: it goes down at once
)

// Policy says when a server goes down, and for how long.
type Policy struct {
	// Failures is how many failures in a row take a server down.
	Failures int
	// First is the length of the first pause, and Max that of the longest.
	First, Max time.Duration
	// Window is how many of the latest results are kept. If at least MinSamples are, the server also
	// goes down when FailedShare of them are failures or SilentShare are Silent. 0: none are kept.
	Window, MinSamples       int
	FailedShare, SilentShare float64
}

// Health is the condition of one server. The zero value is up.
type Health struct {
	failures int       // since the last success
	pauses   int       // since the last success
	until    time.Time // end of the pause; zero: the server is up
	probing  bool
	trial    bool
	recent   []Result
}

// Down reports whether the server gets no work.
func (h *Health) Down() bool { return !h.until.IsZero() }

// Trial reports whether the server is on trial.
func (h *Health) Trial() bool { return h.trial }

// Until returns when the pause ends. It is zero if the server is up.
func (h *Health) Until() time.Time { return h.until }

// Pauses returns how many pauses there were since the last success.
func (h *Health) Pauses() int { return h.pauses }

// Accepts reports whether a server with so many pieces of work can get another.
func (h *Health) Accepts(active int) bool { return !h.Down() && !(h.trial && active > 0) }

// Record records a result. It reports whether the server goes down because of it. A success brings a
// server that is down back up.
func (h *Health) Record(p *Policy, r Result, now time.Time) (goesDown bool) {
	if p.Window > 0 {
		h.recent = append(h.recent, r)
		h.recent = h.recent[max(0, len(h.recent)-p.Window):]
	}
	if r == OK {
		*h = Health{probing: h.probing, recent: h.recent}
		return false
	}
	h.failures++
	if h.Down() || r != Absent && !h.trial && h.failures < p.Failures && !h.shares(p) {
		return false // if it is down, the work began before that
	}
	h.pause(p, now)
	return true
}

// shares reports whether too many of the latest results are failures.
func (h *Health) shares(p *Policy) bool {
	var failed, silent float64
	for _, r := range h.recent {
		if r != OK {
			failed++
		}
		if r == Silent {
			silent++
		}
	}
	n := float64(len(h.recent))
	return p.Window > 0 && len(h.recent) >= p.MinSamples && (failed >= p.FailedShare*n || silent >= p.SilentShare*n)
}

// pause takes the server down.
func (h *Health) pause(p *Policy, now time.Time) {
	h.until = now.Add(min(p.Max, p.First<<min(h.pauses, 10)))
	h.pauses++
	h.failures, h.trial, h.recent = 0, false, nil
}

// StartProbe reports whether the caller should probe the server now: its pause is over and nobody else
// does. Probed must follow.
func (h *Health) StartProbe(now time.Time) bool {
	if !h.Down() || h.probing || now.Before(h.until) {
		return false
	}
	h.probing = true
	return true
}

// Probed records whether the server answered a probe.
func (h *Health) Probed(p *Policy, alive bool, now time.Time) {
	h.probing = false
	switch {
	case !h.Down(): // a success came first
	case alive:
		h.until, h.trial = time.Time{}, true
	default:
		h.pause(p, now)
	}
}

// Least returns the server that comes first by compare, those that are usable before all others. There
// must be at least one server.
func Least[T any](servers []T, usable func(T) bool, compare func(a, b T) int) T {
	return slices.MinFunc(servers, func(a, b T) int {
		return cmp.Or(FalseFirst(!usable(a), !usable(b)), compare(a, b))
	})
}

// FalseFirst compares two conditions: one that does not hold comes first.
func FalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
