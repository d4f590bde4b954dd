package engine

import (
	"context"

	"parley/journal"
)

func causeOf(ctx context.Context) string { return context.Cause(ctx).Error() }

// stop begins nothing more. What is in flight is finished and kept.
func (r *run) stop(state journal.State, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopLocked(state, reason)
}

// drain begins nothing more. Episodes whose memory is outside are played to their end: they
// would have to begin again, and what they asked would be lost.
func (r *run) drain(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.Kind.External || len(r.live) == 0 {
		r.stopLocked(journal.Stopped, reason)
		return
	}
	r.closing = reason
	r.wake.Broadcast()
}

func (r *run) stopLocked(state journal.State, reason string) {
	if r.stopping {
		return
	}
	r.stopping, r.state, r.reason = true, state, reason
	r.wake.Broadcast()
	if r.Models != nil && state != journal.Complete {
		go r.Models.Drain() // returns at once, but takes locks that a caller of ours may hold
	}
	if d, ok := r.Actor.(interface{ Drain() }); ok && state != journal.Complete {
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
	r.stopLocked(journal.Failed, err.Error())
}
