package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"parley/journal"
)

// stopper knows whether the run stops, and why. The first ending counts and never changes. Unless
// it is that of a complete run, each of drains is then called once, and wait waits for all of them.
type stopper struct {
	drains   []func()
	draining sync.WaitGroup

	stopped atomic.Bool // nothing more is played, begun or sent
	closed  atomic.Bool // nothing more is begun
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

// stoppedBy is the ending of a run whose caller ended ctx.
func stoppedBy(ctx context.Context) ending {
	return ending{state: journal.Stopped, reason: journal.Reason{Kind: journal.ByUser, Detail: context.Cause(ctx).Error()}}
}

// failedWith is the ending of a run that cannot go on.
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
	s.draining.Add(len(drains)) // before anybody sees that the run stops, and waits
	s.stopped.Store(true)
	for _, drain := range drains {
		go func() { // it returns at once, but takes locks that a caller of ours may hold
			defer s.draining.Done()
			drain()
		}()
	}
}

// fail ends the run for an error. Where the run has ended without one, it has one now.
func (s *stopper) fail(err error) {
	s.stop(failedWith(err))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.err == nil {
		s.end.err = err
	}
}

// close has no more episodes begun, for a reason that ends the run when those that are live have
// ended.
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

// wait waits until what stop began is over, and returns how the run ended. Only fail may be called
// after it, and only before the recorder has ended.
func (s *stopper) wait() ending {
	s.draining.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// whenDone calls f once ctx is done. The caller must call end, after which f is not begun; it
// waits for an f that has.
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
