package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/internal/ask/settings"
	"parley/journal"
	"parley/llm"
)

// Steering changes a run while it is played, and records what others do for it. It may be used from several goroutines. When the run
// has ended, it does nothing.
type Steering struct {
	run  *run
	mu   sync.RWMutex
	over bool // nothing more is written to the journal
}

// end waits for Keep, which fails from now on.
func (s *Steering) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// ErrHeld is wrapped by the error of an ask that Models did not send because the run is paused. The
// ask is made again when the run continues.
var ErrHeld = errors.New("the run is paused")

// Hold pauses the run, or continues it: while on, no calls are sent. Hold does not affect calls that
// Models already has; Models can return them with ErrHeld.
func (s *Steering) Hold(on bool) {
	for _, c := range s.run.sched.hold(on) {
		s.run.acts.start(c)
	}
}

// Finish begins no more episodes. When the live ones have ended, the run stops for that reason.
func (s *Steering) Finish(why string) {
	s.run.finish(ending{state: journal.Stopped, reason: journal.Reason{Kind: journal.ByUser, Detail: why}}, true)
}

// Set replaces the settings, of which only the maximum number of asks in flight may differ.
func (s *Steering) Set(to *settings.Settings) { s.run.sched.set(to) }

// Until begins only the episodes with a number below n, until it is called with a larger one.
func (s *Steering) Until(n int) { s.run.sched.setUntil(n) }

// Change gives the plan a change, before the next stage, and makes it durable. by and detail describe it.
func (s *Steering) Change(by, detail string, change json.RawMessage) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	kept := make(chan error, 1)
	err := s.run.sched.change(change, func(stage int) {
		e := &journal.Steered{At: time.Now(), Verb: journal.SteerChange, By: by, Detail: detail, Change: change, Stage: stage}
		s.run.write(kept, e)
	})
	if err != nil {
		return err
	}
	return <-kept
}

// Quiet waits until no ask is in flight and all replies are durable, or until ctx is done. Others may be sent
// afterwards, unless the run is held.
func (s *Steering) Quiet(ctx context.Context) error {
	select {
	case <-s.run.sched.quiet():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("calls are still in flight: %w", context.Cause(ctx))
	}
}

// Wake makes the run look again which providers cannot be reached.
func (s *Steering) Wake() { s.run.sched.wakeAll() }

// Within returns what records the calls of programs.
func (s *Steering) Within() *Within { return s.run.within }

// Begun returns how the run was set up.
func (s *Steering) Begun() journal.Begun { return s.run.Begun }

// Keep makes entries durable, all or none of them, after everything that was written before.
func (s *Steering) Keep(first journal.Entry, more ...journal.Entry) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.over {
		return errors.New("the run has ended")
	}
	return s.run.keep(first, more...)
}

// hold sends no more calls, or sends them again. It returns the acts and the questions to people
// that waited for that, for the caller to carry out.
func (s *scheduler) hold(on bool) (others []*call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = on
	s.wake.Broadcast()
	if on || s.stop.stopped.Load() {
		return nil
	}
	others, s.heldOthers = s.heldOthers, nil
	for _, c := range others {
		s.begin(c)
	}
	return others
}

// change gives the plan a change. write records it, and is called with the lock held: a stage that depends on it is
// recorded after it.
func (s *scheduler) change(raw json.RawMessage, write func(stage int)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop.stopped.Load() {
		return errors.New("the run has ended")
	}
	stage, err := s.agenda.change(raw)
	if err == nil {
		write(stage)
	}
	return err
}

// quiet returns a channel that is closed when no ask is in flight and all replies are durable.
func (s *scheduler) quiet() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{})
	s.quieted = append(s.quieted, c)
	s.saved(0)
	return c
}

// saved notes that n replies or outcomes became durable.
func (s *scheduler) saved(n int) {
	s.save(-n)
	if s.flying > 0 || s.saving > 0 {
		return
	}
	for _, c := range s.quieted {
		close(c)
	}
	s.quieted = nil
}

func (s *scheduler) set(to *settings.Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = to
	s.wake.Broadcast()
}

func (s *scheduler) setUntil(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = n
	s.wake.Broadcast()
}

// earlier is what attempts at a call before a pause have cost, and what they have of its answer, if that can be continued.
type earlier struct {
	paid  llm.Money
	begun *llm.Response
}

// requeue takes back an ask that was not sent because the run is paused. e says what attempts at it
// have cost, and what they have of the answer.
func (s *scheduler) requeue(c *call, e *llm.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.paid == 0 && e.Metadata.Cost > 0 {
		s.owing++
	}
	c.paid, c.begun = c.paid.Plus(e.Metadata.Cost), e.Partial
	s.done(c)
	s.queued++
	provider, _ := llm.SplitModel(c.req.Model)
	s.providers[provider].asks.Push(c, int64(c.strand.episode.number))
	s.wake.Broadcast()
}

// settle notes that what earlier attempts at a call have cost is recorded with its reply.
func (s *scheduler) settle(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.paid > 0 {
		s.owing--
	}
}

// addCost adds what earlier attempts at a call have cost.
func addCost(r *journal.Replied, paid llm.Money) {
	switch {
	case paid == 0:
	case r.Response != nil:
		resp := *r.Response
		resp.Metadata.Cost = resp.Metadata.Cost.Plus(paid)
		r.Response = &resp
	case r.Error != nil:
		e := *r.Error
		e.Metadata.Cost = e.Metadata.Cost.Plus(paid)
		r.Error = &e
	}
}
