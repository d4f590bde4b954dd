package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// Retry says how failures are retried.
type Retry struct {
	// Attempts is the maximum number of attempts at one model, not counting those that the provider
	// refused for now. Default: 5.
	Attempts int
	// Base and MaxPause bound the pause before attempt n: a random time up to min(MaxPause,
	// Base·2ⁿ). Defaults: 500ms and 60s.
	Base, MaxPause time.Duration
	// Deadline bounds a whole call, including queueing, pauses and fallbacks. A call that is
	// rate-limited or meets an overloaded provider is retried until then. Unreachable is added to
	// it. Default: 1 hour; negative: none.
	Deadline time.Duration
	// Unreachable is how long calls wait for a provider that cannot be reached, counted from the
	// first call that did not reach it. Meanwhile one call at a time tries, and the others wait. A
	// call with a model to fall back to does not wait. Default: 0, such a call fails like others.
	Unreachable time.Duration
}

func (r Retry) withDefaults() Retry {
	r.Attempts = cmp.Or(r.Attempts, 5)
	r.Base = cmp.Or(r.Base, 500*time.Millisecond)
	r.MaxPause = cmp.Or(r.MaxPause, time.Minute)
	r.Unreachable = max(0, r.Unreachable)
	if r.Deadline = cmp.Or(r.Deadline, time.Hour); r.Deadline > 0 && r.Deadline < math.MaxInt64-r.Unreachable {
		r.Deadline += r.Unreachable
	}
	return r
}

// retry retries what may succeed later, and then tries other models. It holds no permit while it
// waits: limit is inside it.
type retry struct {
	next  layer
	rule  Retry
	stats *Stats
	// jitter returns a number in [0,1). Pauses are random on purpose: they change when a call
	// happens, never its answer.
	jitter func() float64
	late   error // the error of a call whose deadline passes
	// continues reports whether a model can continue an answer exactly.
	continues func(model string) bool

	drained chan struct{} // closed by drain
	once    sync.Once
}

func newRetry(next layer, rule Retry, s *Stats) *retry {
	rule = rule.withDefaults()
	return &retry{next: next, rule: rule, stats: s, jitter: rand.Float64, late: deadlineError(rule.Deadline), drained: make(chan struct{})}
}

// drain refuses calls that wait between two attempts.
func (r *retry) drain() { r.once.Do(func() { close(r.drained) }) }

// ask tries the model of the request, and then its fallbacks, until one answers, the deadline
// passes, or nothing is left to try. It returns the error of the last attempt.
func (r *retry) ask(ctx context.Context, c *call) (*llm.Response, error) { //nolint:contextcheck // deadline's parent is ctx
	req := c.req
	deadline, late := r.rule.Deadline, r.late
	if req.Deadline > 0 {
		deadline, late = req.Deadline, deadlineError(req.Deadline)
	}
	if c.inWave != nil {
		deadline = 0 // waiting for a batch does not count: see inWave.live
	}
	if deadline > 0 {
		bounded := withDeadline(ctx, time.Now().Add(deadline), late)
		defer bounded.stop()
		ctx = bounded
	}
	tries := 0
	if len(req.Fallbacks) > 0 {
		c = c.with(req)
		c.hasty = true
	}
	resp, err := r.model(ctx, c, &tries)
	for i := 0; err != nil && i < len(req.Fallbacks) && fallsBack(err) && ctx.Err() == nil; i++ {
		other := *req
		other.Model, other.Begun = req.Fallbacks[i], nil
		next := c.with(&other)
		next.hasty = i+1 < len(req.Fallbacks)
		if resp, err = r.model(ctx, next, &tries); err != nil {
			e := *llm.AsError(err)
			e.Partial = nil // the tokens of another model cannot be continued
			err = &e
		}
	}
	if err != nil {
		e := *llm.AsError(err)
		e.Metadata.Attempts = tries
		return nil, &e
	}
	resp.Metadata.Attempts = tries
	return resp, nil
}

func deadlineError(d time.Duration) error {
	return &llm.Error{Kind: llm.KindTimeout, Message: fmt.Sprintf("the call's deadline of %v passed", d), Err: context.DeadlineExceeded}
}

// fallsBack reports whether another model may succeed.
func fallsBack(err error) bool {
	e := llm.AsError(err)
	switch e.Kind {
	case llm.KindCanceled, llm.KindBudget:
		return false
	default:
		return e.Code != budget.CodeUsage && e.Code != batch.CodeOpen
	}
}

// model tries one model. If the call is hasty, a refusal counts as a failed attempt; otherwise it
// is waited out.
func (r *retry) model(ctx context.Context, c *call, tries *int) (*llm.Response, error) {
	model := c.req.Model
	failures, waits := 0, false
	defer func() {
		if waits {
			r.stats.count(model, func(m *ModelStats) { m.refusedCalls-- })
		}
	}()
	first := c
	for n := 0; ; n++ {
		*tries++
		resp, err := r.attempt(ctx, c)
		cut := err == nil && resp.Finish == llm.FinishAborted
		if err == nil && !cut {
			resp, err = complete(c.req, resp)
		}
		if err == nil && !cut {
			return resp, nil
		}
		if cut {
			err = aborted(resp)
			if c = r.goesOn(c, first, resp); full(c) {
				return limited(c), nil
			}
		}
		e := llm.AsError(err)
		if c.req.Begun != nil && !cut && notContinued(e) && ctx.Err() == nil {
			c = first.continuing(nil)
			continue
		}
		busy := refused(e.Kind)
		if !cut && (!busy || c.hasty) {
			failures++
		}
		if !e.Kind.Retryable() || e.Final || failures >= r.rule.Attempts || ctx.Err() != nil {
			return nil, kept(c, r.last(ctx, e, false))
		}
		if busy && !waits {
			waits = true
			r.stats.count(model, func(m *ModelStats) { m.refusedCalls++ })
		}
		if err := r.rest(ctx, e, n); err != nil {
			return nil, kept(c, r.last(ctx, e, true))
		}
		r.stats.count(model, func(m *ModelStats) { m.Retried++ })
	}
}

// attempt makes an attempt. If the budget has no room for it, it waits for some as a new call does.
func (r *retry) attempt(ctx context.Context, c *call) (*llm.Response, error) {
	for {
		resp, err := r.next.ask(ctx, c)
		if !errors.Is(err, budget.ErrNoRoom) {
			return resp, err
		}
		if err := c.account.Await(ctx, c.req); err != nil {
			return nil, err
		}
	}
}

// aborted returns the error of an answer that the server cut off, as it does when it is paused or
// gets new weights.
func aborted(resp *llm.Response) *llm.Error {
	return &llm.Error{Kind: llm.KindOverloaded, Code: "aborted", Message: "the server cut the answer off", Usage: resp.Usage, RequestID: resp.RequestID}
}

// last returns the error for the caller from the last failure. If time ran out or a drain ended the
// call, it says so too.
func (r *retry) last(ctx context.Context, e *llm.Error, drained bool) error {
	var cause *llm.Error
	switch {
	case ctx.Err() != nil:
		cause = llm.ContextError(ctx)
	case drained:
		cause = batch.DrainError()
	default:
		return e
	}
	if cause.Kind == e.Kind {
		return e
	}
	out := *e
	out.Message = fmt.Sprintf("%s; last: %s", cause.Message, e.Error())
	out.Kind, out.Err = cause.Kind, e
	return &out
}

// rest waits before attempt n+1: as long as the server asks, and a random time that grows with n,
// so that many failures do not return at once.
func (r *retry) rest(ctx context.Context, e *llm.Error, n int) error {
	wait := r.backoff(n)
	if e.Kind == llm.KindRateLimited && !e.Caller {
		// The limiter pauses the whole account for as long as the server asks. A call that waits
		// there keeps its position in the queue; one that waits here loses it.
		wait = 0
		if n >= busyTries {
			wait = r.backoff(n - busyTries)
		}
	} else {
		wait += e.RetryAfter
	}
	if wait == 0 {
		return ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.drained:
		return batch.DrainError()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// backoff returns a random pause that grows with n.
func (r *retry) backoff(n int) time.Duration {
	return time.Duration(r.jitter() * float64(min(r.rule.MaxPause, r.rule.Base<<min(n, 20))))
}

// busyTries is how often a rate-limited call returns to the queue at once before it also rests
// here.
const busyTries = 3
