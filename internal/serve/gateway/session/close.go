package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"parley/world"
)

// The ways to close a session.
const (
	modeComplete = "complete" // what is in flight is waited for
	modeSeal     = "seal"     // what is in flight goes on, and is not waited for
	modeAbort    = "abort"    // what is in flight is ended
)

// Closing is how a session is to be closed.
type Closing struct {
	Reason string `json:"reason"`
	Mode   string `json:"completion_mode"`
	// Scores are what the session came to, by name.
	Scores map[string]float64 `json:"scores"`
}

// Check says what is wrong with it, and fills in what is missing.
func (c *Closing) Check() error {
	switch c.Mode {
	case "":
		c.Mode = modeComplete
	case modeComplete, modeSeal, modeAbort:
	default:
		return fmt.Errorf("completion_mode %q: use complete, seal or abort", c.Mode)
	}
	for name, v := range c.Scores {
		if math.IsNaN(v) || math.IsInf(v, 0) || name == "" {
			return fmt.Errorf("scores: %q: want names with numbers", name)
		}
	}
	return nil
}

func (c *Closing) scores() (out []world.Score) {
	for name, v := range c.Scores {
		out = append(out, world.Score{Name: name, Value: v})
	}
	slices.SortFunc(out, func(a, b world.Score) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// ErrAborted is the cause with which the calls of a session end that is aborted.
var ErrAborted = errors.New("the session was aborted")

// Close closes a session: it takes no more calls, and ends when nothing is in flight. A
// session that is closed already stays as it was closed. One that is replayed begins again.
func (a *Sessions) Close(ctx context.Context, s *Session, c Closing) (Status, error) {
	s.mu.Lock()
	if s.state != Open {
		defer s.mu.Unlock()
		return s.status(), nil
	}
	s.state = Sealed
	s.info.Reason, s.info.Mode = c.Reason, c.Mode
	if c.Mode == modeAbort {
		for _, cancel := range s.active {
			cancel(ErrAborted)
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
		s.sealed = &c // the last call to leave ends it
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

// end writes the end of a session in which nothing is in flight.
func (a *Sessions) end(s *Session, c Closing) (Status, error) {
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

// rewind opens a replayed session again, so that its record is served from the beginning. It is
// called with the session locked.
func (s *Session) rewind(past *Past) {
	if past != nil {
		past.rewind()
	}
	s.state, s.past = Open, past
	s.info.ClosedAt, s.info.Reason, s.info.Mode, s.info.Record = nil, "", "", nil
}

// Leave counts a call out of its session.
func (a *Sessions) Leave(s *Session, place int) {
	s.leave(place)
	a.settle(s)
}

// settle ends a sealed session if nothing is in flight in it any more.
func (a *Sessions) settle(s *Session) {
	s.mu.Lock()
	c := s.sealed
	if c == nil || len(s.active) > 0 {
		s.mu.Unlock()
		return
	}
	s.sealed = nil
	s.mu.Unlock()
	_, _ = a.end(s, *c) // an end that cannot be written stops the gateway: see Ledger.Failed
}

// Sweep closes idle sessions until ctx is done.
func (a *Sessions) Sweep(ctx context.Context) {
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
				_, _ = a.Close(ctx, s, Closing{Reason: fmt.Sprintf("idle for %v", a.cfg.Idle), Mode: modeComplete})
			}
		}
	}
}

// idle lists the sessions in which nothing has happened since then. The default one is
// nobody's, and stays.
func (a *Sessions) idle(since time.Time) (out []*Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.byID {
		for at := &s; *at != nil; {
			one := *at
			one.mu.Lock()
			open := one.state == Open
			if open && len(one.active) == 0 && one.ID != Default && one.info.LastSeen.Before(since) {
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

// Counts is how many sessions are open, and how many there are.
func (a *Sessions) Counts() (open, all int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.byID {
		s.mu.Lock()
		if s.state == Open {
			open++
		}
		s.mu.Unlock()
	}
	return open, len(a.byID)
}
