package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"parley/world"
)

// The ways to close a session.
const (
	modeComplete = "complete" // waits for calls in flight
	modeSeal     = "seal"     // does not wait for calls in flight
	modeAbort    = "abort"    // ends calls in flight
)

// closing says how to close a session.
type closing struct {
	Reason string `json:"reason"`
	Mode   string `json:"completion_mode"`
	// Scores are the scores of the session by name.
	Scores map[string]float64 `json:"scores"`
}

// Check checks c and sets its defaults.
func (c *closing) Check() error {
	switch c.Mode {
	case "":
		c.Mode = modeComplete
	case modeComplete, modeSeal, modeAbort:
	default:
		return fmt.Errorf("unknown completion_mode %q; want one of complete, seal, abort", c.Mode)
	}
	for name, v := range c.Scores {
		if math.IsNaN(v) || math.IsInf(v, 0) || name == "" {
			return fmt.Errorf("scores: %q: want names with numbers", name)
		}
	}
	return nil
}

func (c *closing) scores() (out []world.Score) {
	for _, name := range slices.Sorted(maps.Keys(c.Scores)) {
		out = append(out, world.Score{Name: name, Value: c.Scores[name]})
	}
	return out
}

// errAborted is the cause that ends the calls of an aborted session.
var errAborted = errors.New("the session was aborted")

// Close closes a session: it takes no more calls, and ends when none is in flight. Closing a closed session
// has no effect. A replayed session starts over.
func (a *sessionSet) Close(ctx context.Context, s *Session, c closing) (Status, error) {
	s.mu.Lock()
	if s.state != sessionOpen {
		defer s.mu.Unlock()
		return s.status(), nil
	}
	s.state = Sealed
	s.info.Reason, s.info.Mode = c.Reason, c.Mode
	if c.Mode == modeAbort {
		for _, cancel := range s.active {
			cancel(errAborted)
		}
	}
	if len(s.active) == 0 {
		s.mu.Unlock()
		return a.end(s, c)
	}
	idle := make(chan struct{})
	s.idle = idle
	if c.Mode == modeSeal {
		defer s.mu.Unlock()
		s.sealed = &c // the last call ends it
		return s.status(), nil
	}
	s.mu.Unlock()
	select {
	case <-idle:
		return a.end(s, c)
	case <-ctx.Done():
		s.mu.Lock()
		s.sealed = &c
		s.mu.Unlock()
		a.settle(s)
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.status(), context.Cause(ctx)
	}
}

// end records the end of a session without calls in flight.
func (a *sessionSet) end(s *Session, c closing) (Status, error) {
	now := time.Now()
	s.mu.Lock()
	if s.state == Closed || s.ending {
		defer s.mu.Unlock()
		return s.status(), nil
	}
	s.ending = true
	outcome, err := s.outcome(c.scores())
	s.mu.Unlock()
	if err == nil && a.ledger != nil {
		err = a.ledger.End(s.Episode, outcome, now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = false
	if err != nil {
		return s.status(), err
	}
	past := s.past
	if past != nil {
		s.info.Record = past.status()
	}
	s.state, s.info.ClosedAt, s.past, s.seen = Closed, &now, nil, nil
	out := s.status()
	if a.cfg.Replay {
		s.rewind(past)
	}
	return out, nil
}

// rewind opens a replayed session again, so that its record is served from the start. Session.mu is held.
func (s *Session) rewind(past *Past) {
	if past != nil {
		past.rewind()
	}
	s.state, s.past = sessionOpen, past
	s.info.ClosedAt, s.info.Reason, s.info.Mode, s.info.Record = nil, "", "", nil
}

// Leave removes a call from its session. id is what Enter returned.
func (a *sessionSet) Leave(s *Session, id int) {
	s.leave(id)
	a.settle(s)
}

// settle ends a sealed session without calls in flight.
func (a *sessionSet) settle(s *Session) {
	s.mu.Lock()
	c := s.sealed
	if c == nil || len(s.active) > 0 {
		s.mu.Unlock()
		return
	}
	s.sealed = nil
	s.mu.Unlock()
	_, _ = a.end(s, *c) // an error stops the gateway: see Ledger.Failed
}

// Sweep closes idle sessions until ctx is done.
func (a *sessionSet) Sweep(ctx context.Context) {
	if a.cfg.Idle <= 0 || a.ledger == nil {
		return
	}
	t := time.NewTicker(max(a.cfg.Idle/4, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			for _, s := range a.idle(time.Now().Add(-a.cfg.Idle)) {
				_, _ = a.Close(ctx, s, closing{Reason: fmt.Sprintf("idle for %v", a.cfg.Idle), Mode: modeComplete})
			}
		}
	}
}

// idle returns the sessions without activity since then, except the default one.
func (a *sessionSet) idle(since time.Time) (out []*Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.byID {
		for at := &s; *at != nil; {
			one := *at
			one.mu.Lock()
			open := one.state == sessionOpen
			if open && len(one.active) == 0 && one.ID != sessionDefault && one.info.LastSeen.Before(since) {
				out = append(out, one)
			}
			one.mu.Unlock()
			if one != s && !open {
				*at = one.before
				continue
			}
			at = &one.before
		}
	}
	return out
}

// Counts returns how many sessions are open, and how many there are.
func (a *sessionSet) Counts() (open, all int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.byID {
		s.mu.Lock()
		if s.state == sessionOpen {
			open++
		}
		s.mu.Unlock()
	}
	return open, len(a.byID)
}
