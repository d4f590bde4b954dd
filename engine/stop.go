package engine

import (
	"context"
	"fmt"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// causeOf is why a context that the caller of Run gave ended.
func causeOf(ctx context.Context) journal.Reason {
	return journal.Reason{Kind: journal.ByUser, Detail: context.Cause(ctx).Error()}
}

// errorOf is the reason of a run that failed.
func errorOf(err error) journal.Reason {
	return journal.Reason{Kind: journal.ByError, Detail: err.Error()}
}

// stop begins nothing more. What is in flight is finished and kept.
func (r *run) stop(state journal.State, reason journal.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopLocked(state, reason)
}

// drain begins nothing more. Episodes whose memory is outside are played to their end: they
// would have to begin again, and what they asked would be lost.
func (r *run) drain(reason journal.Reason) {
	r.mu.Lock()
	if !r.Kind.External() || len(r.live) == 0 || r.stopping {
		r.stopLocked(journal.Stopped, reason)
		r.mu.Unlock()
		return
	}
	r.closing = &reason
	n := 0
	for ep := range r.live {
		if ep.heard {
			n++
		}
	}
	r.wake.Broadcast()
	r.mu.Unlock()
	if d, ok := r.Actor.(world.Drainer); ok {
		d.Drain()
	}
	if n > 0 {
		r.watch(Event{Closing: n})
	}
}

// unbegun gives an episode up if, on a drain, its act was called off before anything was done
// for it: the sitting after this one begins it again.
func (r *run) unbegun(ctx context.Context, c *call, err error) bool {
	if c.act == nil || ctx.Err() != nil || llm.KindOf(err) != llm.KindCanceled {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing == nil || r.stopping {
		return false
	}
	r.landed(c)
	r.asked--
	c.strand.episode.given = true
	r.ready.push(c.strand, c.at.Episode) // whoever plays it ends it: another strand may be at it
	r.wake.Broadcast()
	return true
}

// giveUp takes an episode off the table, as if it had not begun.
func (r *run) giveUp(ep *episode) {
	r.mu.Lock()
	for s := range ep.strands {
		defer s.Stop()
	}
	ep.strands = nil
	delete(r.live, ep)
	r.mu.Unlock()
	r.release(ep.number, ep.attempt, false)
}

func (r *run) stopLocked(state journal.State, reason journal.Reason) {
	if r.stopping {
		return
	}
	r.stopping, r.state, r.reason = true, state, reason
	r.wake.Broadcast()
	if r.Models != nil && state != journal.Complete {
		go r.Models.Drain() // returns at once, but takes locks that a caller of ours may hold
	}
	if d, ok := r.Actor.(world.Drainer); ok && state != journal.Complete {
		go d.Drain()
	}
}

// fail stops the run for an error.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.stopLocked(journal.Failed, errorOf(err))
}

// planned ends the run: the plan asks for no more, or for more than a run can have. It may have a
// reason that makes the run no complete one.
func (r *run) planned() {
	var err error
	if r.stage.Len() > 0 {
		r.stage = world.Specs{}
		err = fmt.Errorf("engine: the plan asks for more than %d episodes", world.MaxEpisodes)
	} else if p, ok := r.Plan.(interface{ Err() error }); ok {
		err = p.Err()
	}
	if err != nil {
		r.err = err
		r.stopLocked(journal.Failed, errorOf(err))
		return
	}
	r.stopLocked(journal.Complete, journal.Reason{})
}
