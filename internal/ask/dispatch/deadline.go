package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deadline is a context that ends at a time, like context.WithDeadlineCause. It sets its timer when
// its end is first waited for: a model that answers at once needs no timer, which would be a large
// part of the cost of such a call.
type deadline struct {
	parent context.Context //nolint:containedctx // it is a context
	at     time.Time
	cause  error

	timed atomic.Pointer[timed] // nil: nothing has waited yet
	mu    sync.Mutex            // for setting timed and over
	over  bool                  // stop was called
}

// timed is the context with the timer.
type timed struct {
	context.Context //nolint:containedctx // it is a context
	cancel          context.CancelFunc
}

func withDeadline(parent context.Context, at time.Time, cause error) *deadline {
	return &deadline{parent: parent, at: at, cause: cause}
}

// stop releases the timer. It must be called when the call is over.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if t := d.timed.Load(); t != nil {
		t.cancel()
	}
}

// set returns the context with the timer.
func (d *deadline) set() *timed {
	if t := d.timed.Load(); t != nil {
		return t
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.timed.Load(); t != nil {
		return t
	}
	t := &timed{}
	t.Context, t.cancel = context.WithDeadlineCause(d.parent, d.at, d.cause)
	if d.over {
		t.cancel()
	}
	d.timed.Store(t)
	return t
}

func (d *deadline) Deadline() (time.Time, bool) {
	if at, ok := d.parent.Deadline(); ok && at.Before(d.at) {
		return at, true
	}
	return d.at, true
}

func (d *deadline) Done() <-chan struct{} { return d.set().Done() }

func (d *deadline) Err() error { return d.set().Err() }

// Value asks the context with the timer if there is one: context.Cause finds the cause this way.
func (d *deadline) Value(key any) any {
	if t := d.timed.Load(); t != nil {
		return t.Value(key)
	}
	return d.parent.Value(key)
}
