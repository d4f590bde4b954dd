package dispatch

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/dispatch/replica"
	"parley/llm"
)

const (
	firstPause   = 500 * time.Millisecond // after a call that reached nobody
	maxPause     = 5 * time.Second        // each pause is twice as long as the one before
	aliveTimeout = 5 * time.Second        // for the answer of Config.Alive
	probeSettles = time.Second            // a call that was not refused by then has arrived

	// A server that refuses so many calls in a row, for so long, refuses every call. It answers at once, so it is
	// probed more often than one that is not there.
	minRefused        = 3
	outageRefusedTime = time.Second
	maxRefusedWait    = time.Second
)

// OutageConfig describes a provider.
type OutageConfig struct {
	Provider, URL string
	// Limit is how long calls wait, counted from the first one that did not reach the provider.
	Limit time.Duration
	// Alive checks whether a server of the provider is there, without a call. Default: only calls
	// find out.
	Alive func(ctx context.Context) error
	// Recall makes the calls that wait to be sent fail with replica.ErrRecalled. Default: nothing.
	Recall func()
	// Arrived is called when the others continue after a probe. Default: nothing.
	Arrived func()
	// Report, if set, is called when an outage begins and when it ends, from any goroutine.
	Report func(Outage)
}

// Guard holds the calls of one provider back while it cannot be reached.
type Guard struct {
	OutageConfig

	draining context.Context //nolint:containedctx // a signal of its own, beside that of calls
	drain    context.CancelFunc
	trouble  atomic.Bool // since or refused is set: all that most calls need to know

	mu       sync.Mutex
	drained  *llm.Error
	down     bool       // calls wait
	since    time.Time  // of the first failure after the last answer; zero: it can be reached
	cause    *llm.Error // the last failure
	pause    time.Duration
	probeAt  time.Time     // no probe before
	probing  bool          // a call probes
	refused  int           // calls in a row that it refused because it is busy
	first    time.Time     // when it refused the first of them
	refuses  bool          // the outage is that it refuses every call
	checking bool          // a call checks whether the server is still there
	changed  chan struct{} // closed when any of this changes
}

// newOutage returns a Guard.
func newOutage(c OutageConfig) *Guard {
	r := &Guard{OutageConfig: c, changed: make(chan struct{})}
	r.draining, r.drain = context.WithCancel(context.Background())
	return r
}

// Drain refuses the calls that wait, and all later ones that would, with e.
func (r *Guard) Drain(e *llm.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drained = e
	r.drain()
}

// Do calls ask once the provider can be reached, and again if the call did not reach it. A call that
// is hasty does not wait.
func (r *Guard) Do(ctx context.Context, hasty bool, ask func() (*llm.Response, error)) (*llm.Response, error) {
	for {
		probe, err := r.enter(ctx, hasty)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		there := false
		if probe {
			if there, err = r.check(ctx); err != nil {
				r.missed(llm.AsError(err), probe)
				continue
			}
		}
		resp, err := r.try(ask, there)
		if !r.ended(ctx, probe, began, err) || hasty {
			return resp, err
		}
	}
}

// try asks. If the server is known to be there, the others need not wait for a slow answer: a call
// that was not refused soon has arrived.
func (r *Guard) try(ask func() (*llm.Response, error), there bool) (*llm.Response, error) {
	if there || r.refusing() {
		t := time.AfterFunc(probeSettles, r.arrived)
		defer t.Stop()
	}
	return ask()
}

// enter waits until a call may be sent, unless it is hasty. probe reports whether the call is the
// one that probes.
func (r *Guard) enter(ctx context.Context, hasty bool) (probe bool, err error) {
	if !r.trouble.Load() {
		return false, nil
	}
	for {
		r.mu.Lock()
		now, end := time.Now(), r.since.Add(r.Limit)
		if r.refuses {
			end = now.Add(r.Limit) // the call's own deadline bounds its wait
		}
		next := r.probeAt
		if r.probing || next.After(end) {
			next = end
		}
		switch {
		case !r.down:
			r.mu.Unlock()
			return false, nil
		case r.drained != nil:
			r.mu.Unlock()
			return false, r.drained
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
func (r *Guard) wait(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-r.draining.Done():
	case <-ctx.Done():
		e := *llm.ContextError(ctx)
		if o, ok := r.Outage(); ok {
			e.Message += "; " + o.Text(time.Now())
		}
		return &e
	}
	return nil
}

// check finds out whether the server is there, without a call. It returns an error if it is not, and
// false if that could not be found out.
func (r *Guard) check(ctx context.Context) (there bool, err error) {
	if r.Alive == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	defer context.AfterFunc(r.draining, cancel)() //nolint:contextcheck // the drain is for all calls
	e := llm.AsError(r.Alive(ctx))
	switch {
	case e == nil:
		return true, nil
	case ctx.Err() != nil, !e.Unreachable:
		return e.Status != 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A page that always fails says nothing. One that fails as a call did says that calls will fail.
	if e.Status != 0 && r.cause != nil && e.Status != r.cause.Status {
		return true, nil
	}
	return false, e
}

// ended learns from the result of a call that began at began. It reports whether to make the call
// again.
func (r *Guard) ended(ctx context.Context, probe bool, began time.Time, err error) (again bool) {
	e := llm.AsError(err)
	switch {
	case e == nil:
		r.met(probe, began)
	case r.Recall != nil && errors.Is(err, replica.ErrRecalled):
		r.leave(probe)
		return true
	case ctx.Err() != nil:
		r.leave(probe)
	case e.Unserved():
		r.missed(e, probe)
		return true
	case e.Kind == llm.KindOverloaded && e.Status == http.StatusServiceUnavailable && !e.Uncertain && r.refusedAll(e, probe):
		return true
	case e.Unreachable: // the server may have done the work
		r.verify(ctx, probe, began, e)
	case e.Kind == llm.KindOverloaded && e.Status == http.StatusServiceUnavailable:
		r.leave(probe)
	case e.Status != 0 || e.Kind == llm.KindMalformed:
		r.met(probe, began)
	default:
		r.leave(probe)
	}
	return false
}

// verify checks whether the server is still there after a call that it may have begun. One check is
// enough for all calls that were cut off together.
func (r *Guard) verify(ctx context.Context, probe bool, began time.Time, e *llm.Error) {
	r.mu.Lock()
	known := r.down && !probe || r.checking
	if !known {
		r.checking = true
		r.cause = e
	}
	r.mu.Unlock()
	if known {
		return
	}
	there, gone := r.check(ctx)
	r.mu.Lock()
	r.checking = false
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

// missed notes that the server was not there.
func (r *Guard) missed(e *llm.Error, probe bool) {
	now := time.Now()
	r.mu.Lock()
	begins, closes := r.since.IsZero(), !r.down
	if begins {
		r.since, r.pause = now, 0
		r.trouble.Store(true)
	}
	if probe || closes { // calls that were sent before do not lengthen the pause
		r.pause = min(max(2*r.pause, firstPause), maxPause)
		if r.refuses {
			r.pause = min(r.pause, maxRefusedWait)
		}
		r.probeAt = now.Add(r.pause)
	}
	r.down, r.cause, r.probing = true, e, r.probing && !probe
	o := r.state()
	r.change()
	r.mu.Unlock()
	if closes && r.Recall != nil {
		r.Recall()
	}
	if begins && r.Report != nil {
		r.Report(o)
	}
}

// met notes that a call that began at began was answered, even if with a refusal. A call that was sent
// before the server went away says nothing.
func (r *Guard) met(probe bool, began time.Time) {
	if !r.trouble.Load() {
		return
	}
	r.mu.Lock()
	since := r.since
	if r.refused > 0 && (since.IsZero() || r.refuses) {
		since = r.first
	}
	if !probe && began.Before(since) {
		r.mu.Unlock()
		return
	}
	o, down := r.state(), r.down
	o.Back = true
	reported := !r.since.IsZero()
	r.down, r.probing, r.since, r.cause, r.refused, r.refuses = false, false, time.Time{}, nil, 0, false
	r.trouble.Store(false)
	r.change()
	r.mu.Unlock()
	if down && r.Arrived != nil {
		r.Arrived()
	}
	if reported && r.Report != nil {
		r.Report(o)
	}
}

// arrived lets the others continue, since the probe was not refused. The provider counts as back
// once one of them is answered.
func (r *Guard) arrived() {
	r.mu.Lock()
	r.down, r.probing = false, false
	r.change()
	r.mu.Unlock()
	if r.Arrived != nil {
		r.Arrived()
	}
}

// leave notes that a probe has found out nothing.
func (r *Guard) leave(probe bool) {
	if !probe {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probing = false
	r.change()
}

// change wakes the calls that wait. r.mu is held.
func (r *Guard) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// Outage returns the outage, and false where calls need not wait.
func (r *Guard) Outage() (Outage, bool) {
	if !r.trouble.Load() {
		return Outage{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state(), r.down
}

// state describes the outage. r.mu is held.
func (r *Guard) state() Outage {
	o := Outage{Provider: r.Provider, URL: r.URL, Since: r.since, Limit: r.Limit, Refuses: r.refuses}
	if r.cause != nil {
		o.Why = outageWhy(r.cause)
	}
	return o
}

// code is the code of the error of a call that was not made, since its provider stayed unreachable.
const code = "unreachable"

// failure returns the error of a call that waited too long. r.mu is held.
func (r *Guard) failure(now time.Time) *llm.Error {
	return &llm.Error{
		Kind: llm.KindTransport, Code: code, Status: r.cause.Status, Final: true, Unreachable: true, Err: r.cause,
		Message: r.state().Text(now) + "; " + Remedy(r.Provider, hostOf(r.URL)) + ", then try again; " +
			"--unreachable, or retry: {unreachable: 10m} in a plan, says how long to wait",
	}
}
