package dispatch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/batch/batcher"
	"parley/internal/dispatch/limiter"
	"parley/internal/replica"
	"parley/llm"
)

const (
	probePauseFirst = 500 * time.Millisecond      // after a call that reached nobody
	probePauseMax   = limiter.MaxUnreachablePause // each pause is twice as long as the one before
	aliveTime       = 5 * time.Second             // a server may take to say that it is there
	probeSettles    = time.Second                 // a call that was not refused by then has arrived
)

// reach holds calls back while their provider cannot be reached: it restarts, loads its model,
// or was not started yet. One call at a time tries, with growing pauses; the others wait, and
// all go on once that call has arrived. What waits longer than the limit fails, and from then
// on whatever comes fails at once, until a call that tries is answered.
//
// A failure that the server certainly did no work for is waited out here, and costs neither
// money nor a try. Any other is returned; if the server is away, the next try waits here.
type reach struct {
	next   layer
	alive  func(ctx context.Context) error // asks no model anything; nil: only calls can tell
	recall func()                          // calls back what waits to be sent; nil: see replica
	name   string
	url    string
	limit  time.Duration
	tell   func(Outage) // nil: nobody is told

	draining context.Context //nolint:containedctx // a signal of its own, beside that of calls
	drain    context.CancelFunc
	trouble  atomic.Bool // since is set: what most calls need to know

	mu       sync.Mutex
	down     bool       // calls wait
	since    time.Time  // of the first failure after the last answer; zero: it can be reached
	cause    *llm.Error // the last one
	pause    time.Duration
	probeAt  time.Time     // nobody tries before
	probing  bool          // somebody does
	doubting bool          // somebody looks whether it is still there
	changed  chan struct{} // closed when any of that changes
}

// waitOut has the calls of a lane wait for a provider that cannot be reached, where c says so.
func (l *lane) waitOut(in Lane, c Config) {
	if c.Retry.Unreachable <= 0 || in.Provider.Dialect == "sim" {
		return
	}
	r := &reach{
		next: l.live, alive: aliveOf(in), name: in.Provider.Name, url: addresses(in.Provider),
		limit: c.Retry.Unreachable, tell: c.Outages, changed: make(chan struct{}),
	}
	r.draining, r.drain = context.WithCancel(context.Background())
	if l.set == nil {
		r.recall = l.endpoints[0].recall
	}
	l.reach, l.live = r, r
}

// ask asks once the provider can be reached.
func (r *reach) ask(ctx context.Context, c *call) (*llm.Response, error) {
	for {
		probe, err := r.enter(ctx, c.hasty)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		there := false
		if probe {
			if there, err = r.look(ctx); err != nil {
				r.missed(llm.AsError(err), probe)
				continue
			}
		}
		resp, err := r.try(ctx, c, there)
		if !r.ended(ctx, probe, began, err) || c.hasty {
			return resp, err
		}
	}
}

// try asks. If the server is known to be there, the others need not wait until a slow answer
// has come: a call that was not refused soon has arrived.
func (r *reach) try(ctx context.Context, c *call, there bool) (*llm.Response, error) {
	if there {
		t := time.AfterFunc(probeSettles, r.arrived)
		defer t.Stop()
	}
	return r.next.ask(ctx, c)
}

// enter waits until a call may go, unless it is hasty. probe is whether it is the one that tries.
func (r *reach) enter(ctx context.Context, hasty bool) (probe bool, err error) {
	if !r.trouble.Load() {
		return false, nil
	}
	for {
		r.mu.Lock()
		now, end := time.Now(), r.since.Add(r.limit)
		next := r.probeAt
		if r.probing || next.After(end) {
			next = end
		}
		switch {
		case !r.down:
			r.mu.Unlock()
			return false, nil
		case r.draining.Err() != nil:
			r.mu.Unlock()
			return false, batcher.DrainError()
		case !r.probing && !now.Before(r.probeAt):
			r.probing = true
			r.mu.Unlock()
			return true, nil
		case !now.Before(end), hasty:
			e := r.failure(now)
			r.mu.Unlock()
			return false, e
		}
		changed := r.changed
		r.mu.Unlock()
		if err := r.wait(ctx, next.Sub(now), changed); err != nil {
			return false, err
		}
	}
}

// wait waits for d, for a change, or for a drain.
func (r *reach) wait(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-r.draining.Done():
	case <-ctx.Done():
		e := *llm.ContextError(ctx)
		if o, ok := r.outage(); ok {
			e.Message += "; " + o.Text(time.Now())
		}
		return &e
	}
	return nil
}

// look looks whether the server is there, without a call. It returns an error if it is not,
// and false if that could not be found out.
func (r *reach) look(ctx context.Context) (there bool, err error) {
	if r.alive == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, aliveTime)
	defer cancel()
	defer context.AfterFunc(r.draining, cancel)() //nolint:contextcheck // the drain is for all calls
	e := llm.AsError(r.alive(ctx))
	switch {
	case e == nil:
		return true, nil
	case ctx.Err() != nil, !e.Unreachable:
		return e.Status != 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A page that always fails says nothing; one that fails as a call did says that calls will.
	if e.Status != 0 && r.cause != nil && e.Status != r.cause.Status {
		return true, nil
	}
	return false, e
}

// ended takes in how a call ended that began then. It says whether the call is to be made
// again.
func (r *reach) ended(ctx context.Context, probe bool, began time.Time, err error) (again bool) {
	e := llm.AsError(err)
	switch {
	case e == nil:
		r.met(probe, began)
	case r.recall != nil && errors.Is(err, replica.ErrRecalled):
		r.leave(probe)
		return true
	case ctx.Err() != nil:
		r.leave(probe)
	case e.Unserved():
		r.missed(e, probe)
		return true
	case e.Unreachable: // the server may have done the work
		r.doubt(ctx, probe, began, e)
	case e.Status != 0 || e.Kind == llm.KindMalformed:
		r.met(probe, began)
	default:
		r.leave(probe)
	}
	return false
}

// doubt looks whether the server is still there after a call that it may have begun. One look
// is enough for all calls that were cut off together.
func (r *reach) doubt(ctx context.Context, probe bool, began time.Time, e *llm.Error) {
	r.mu.Lock()
	known := r.down && !probe || r.doubting
	if !known {
		r.doubting = true
		r.cause = e
	}
	r.mu.Unlock()
	if known {
		return
	}
	there, gone := r.look(ctx)
	r.mu.Lock()
	r.doubting = false
	r.mu.Unlock()
	switch {
	case gone != nil:
		r.missed(llm.AsError(gone), probe)
	case there:
		r.met(probe, began)
	default:
		r.leave(probe)
	}
}

// missed notes that nobody was there.
func (r *reach) missed(e *llm.Error, probe bool) {
	now := time.Now()
	r.mu.Lock()
	begins, closes := r.since.IsZero(), !r.down
	if begins {
		r.since, r.pause = now, 0
		r.trouble.Store(true)
	}
	if probe || closes { // what was on its way before makes the pause no longer
		r.pause = min(max(2*r.pause, probePauseFirst), probePauseMax)
		r.probeAt = now.Add(r.pause)
	}
	r.down, r.cause, r.probing = true, e, r.probing && !probe
	o := r.state()
	r.change()
	r.mu.Unlock()
	if closes && r.recall != nil {
		r.recall()
	}
	if begins && r.tell != nil {
		r.tell(o)
	}
}

// met notes that a call that began then was answered, be it with a refusal. One that was sent
// before the server went away says nothing.
func (r *reach) met(probe bool, began time.Time) {
	if !r.trouble.Load() {
		return
	}
	r.mu.Lock()
	if r.since.IsZero() || !probe && began.Before(r.since) {
		r.mu.Unlock()
		return
	}
	o := r.state()
	o.Back = true
	r.down, r.probing, r.since, r.cause = false, false, time.Time{}, nil
	r.trouble.Store(false)
	r.change()
	r.mu.Unlock()
	if r.tell != nil {
		r.tell(o)
	}
}

// arrived lets the others go, since the call that tried was not refused. The provider counts as
// back once one of them is answered.
func (r *reach) arrived() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down, r.probing = false, false
	r.change()
}

// leave notes that a call that tried has found out nothing.
func (r *reach) leave(probe bool) {
	if !probe {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probing = false
	r.change()
}

// change wakes whoever waits. r.mu is held.
func (r *reach) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}
