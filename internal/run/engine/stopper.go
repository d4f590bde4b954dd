package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"parley/journal"
)

// stopper knows whether the run stops, and why. The first ending counts and never changes. Unless
// the run is complete, each of drains is then called once, and wait waits for all of them.
type stopper struct {
	drains   []func()
	draining sync.WaitGroup

	stopped atomic.Bool // nothing more is played, begun or sent
	closed  atomic.Bool // no more episodes begin
	mu      sync.Mutex
	closing journal.Reason // where closed
	end     ending         // where stopped
}

// ending is how Run ends.
type ending struct {
	state  journal.State
	reason journal.Reason
	cause  *journal.Replied // see Result
	err    error
}

// stoppedBy returns the ending of a run whose caller ended ctx.
func stoppedBy(ctx context.Context) ending {
	return ending{state: journal.Stopped, reason: journal.Reason{Kind: journal.ByUser, Detail: context.Cause(ctx).Error()}}
}

// failedWith returns the ending of a run that cannot continue.
func failedWith(err error) ending {
	return ending{state: journal.Failed, reason: journal.Reason{Kind: journal.ByError, Detail: err.Error()}, err: err}
}

// stop ends the run, unless it has ended.
func (s *stopper) stop(e ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped.Load() {
		return
	}
	s.end = e
	var drains []func()
	if e.state != journal.Complete {
		drains = s.drains
	}
	s.draining.Add(len(drains)) // before the stop is visible to wait
	s.stopped.Store(true)
	for _, drain := range drains {
		go func() { // it returns at once, but takes locks that our caller may hold
			defer s.draining.Done()
			drain()
		}()
	}
}

// fail ends the run with an error. If the run has ended without one, the error is added.
func (s *stopper) fail(err error) {
	s.stop(failedWith(err))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.err == nil {
		s.end.err = err
	}
}

// close stops new episodes, for a reason that ends the run when the live ones have ended.
func (s *stopper) close(why journal.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = why
	s.closed.Store(true)
}

// stopClosed ends a run that was closed.
func (s *stopper) stopClosed() {
	s.mu.Lock()
	why := s.closing
	s.mu.Unlock()
	s.stop(ending{state: journal.Stopped, reason: why})
}

// wait waits for the drains, and returns how the run ended. Afterwards only fail may be called, and
// only until the last entry is written.
func (s *stopper) wait() ending {
	s.draining.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// whenDone calls f once ctx is done. The caller must call end: afterwards f does not begin, and end
// waits for an f that has begun.
func whenDone(ctx context.Context, f func()) (end func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		f()
	})
	return func() {
		if !stop() {
			<-over
		}
	}
}
