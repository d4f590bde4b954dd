package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"parley/internal/batch/batcher"
	"parley/internal/dispatch/budget"
	"parley/llm"
)

// Retry says how failures are tried again.
type Retry struct {
	// Attempts is the most tries at one model for failures other than a provider's
	// refusal to serve us now. Default: 5.
	Attempts int
	// Base and MaxPause bound the pause before try n: a random time up to
	// min(MaxPause, Base·2ⁿ). Defaults: 500ms and 60s.
	Base, MaxPause time.Duration
	// Deadline bounds a whole call, queueing, pauses and fallbacks included. A call that
	// is rate-limited or meets an overloaded provider is tried until then. Unreachable is added
	// to it. Default: 1 hour; negative: none.
	Deadline time.Duration
	// Unreachable is how long a provider that cannot be reached is waited for, counted from the
	// first call that did not reach it. Meanwhile one call at a time tries, and the others wait.
	// A call with a model to fall back to does not wait. Default: 0, a call that reaches nobody
	// is a failure like others.
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

// retry tries again what may succeed later, and then other models. It holds no permit
// while it waits: limit is inside it.
type retry struct {
	next  layer
	rule  Retry
	stats *Stats
	// jitter returns a number in [0,1). Pauses are the one thing random on purpose:
	// they change when a call happens, never what it says.
	jitter func() float64
	late   error // what a call fails with when the rule's deadline passes

	drained chan struct{} // closed by drain
	once    sync.Once
}

func newRetry(next layer, rule Retry, s *Stats) *retry {
	rule = rule.withDefaults()
	return &retry{next: next, rule: rule, stats: s, jitter: rand.Float64, late: deadlineError(rule.Deadline), drained: make(chan struct{})}
}

// drain refuses calls that wait between two tries.
func (r *retry) drain() { r.once.Do(func() { close(r.drained) }) }

// ask tries the model of the request, and then its fallbacks, until one answers, the deadline
// passes, or nothing is left to try. The error is that of the last try.
func (r *retry) ask(ctx context.Context, c *call) (*llm.Response, error) { //nolint:contextcheck // deadline's parent is ctx
	req := c.req
	deadline, late := r.rule.Deadline, r.late
	if req.Deadline > 0 {
		deadline, late = req.Deadline, deadlineError(req.Deadline)
	}
	if c.inWave != nil {
		deadline = 0 // time that a call waits for a batch does not count: see inWave.live
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
		other.Model = req.Fallbacks[i]
		next := c.with(&other)
		next.hasty = i+1 < len(req.Fallbacks)
		resp, err = r.model(ctx, next, &tries)
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

// fallsBack says whether another model may do better.
func fallsBack(err error) bool {
	e := llm.AsError(err)
	switch e.Kind {
	case llm.KindCanceled, llm.KindBudget:
		return false
	default:
		return e.Code != budget.CodeUsage
	}
}

// model tries one model. If the call is hasty, being refused service counts as a failed try;
// if not, it is waited out.
func (r *retry) model(ctx context.Context, c *call, tries *int) (*llm.Response, error) {
	model := c.req.Model
	failures, waits := 0, false
	defer func() {
		if waits {
			r.stats.count(model, func(m *ModelStats) { m.refusedCalls-- })
		}
	}()
	for n := 0; ; n++ {
		*tries++
		resp, err := r.next.ask(ctx, c)
		cut := err == nil && resp.Finish == llm.FinishAborted
		if err == nil && !cut {
			return resp, nil
		}
		if cut {
			err = aborted(resp)
		}
		e := llm.AsError(err)
		busy := refused(e.Kind)
		if !cut && (!busy || c.hasty) {
			failures++
		}
		if !e.Kind.Retryable() || e.Final || failures >= r.rule.Attempts || ctx.Err() != nil {
			return nil, r.last(ctx, e, false)
		}
		if busy && !waits {
			waits = true
			r.stats.count(model, func(m *ModelStats) { m.refusedCalls++ })
		}
		if err := r.rest(ctx, e, n); err != nil {
			return nil, r.last(ctx, e, true)
		}
		r.stats.count(model, func(m *ModelStats) { m.Retried++ })
	}
}

// aborted is an answer that the server cut off, as it does when it is paused or given new
// weights. It is asked for anew, whole, since what was said so far is another model's, and
// its tokens cannot be continued exactly.
func aborted(resp *llm.Response) *llm.Error {
	return &llm.Error{Kind: llm.KindOverloaded, Code: "aborted", Message: "the server cut the answer off", Usage: resp.Usage, RequestID: resp.RequestID}
}

// last makes the error a caller sees of the last failure: when time ran out in between, or the
// call was given up by a drain, it says so and what the failure was.
func (r *retry) last(ctx context.Context, e *llm.Error, drained bool) error {
	var cause *llm.Error
	switch {
	case ctx.Err() != nil:
		cause = llm.ContextError(ctx)
	case drained:
		cause = batcher.DrainError()
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

// rest waits before try n+1: as long as the server asks, and a random time on top that
// grows with n, so that a crowd of failures does not come back as a crowd.
func (r *retry) rest(ctx context.Context, e *llm.Error, n int) error {
	most := min(r.rule.MaxPause, r.rule.Base<<min(n, 20))
	wait := time.Duration(r.jitter() * float64(most))
	if e.Kind == llm.KindRateLimited && !e.Caller {
		// The limiter holds back the whole account for as long as the server asks; a call
		// that waits there keeps its place in the queue, and one that waits here loses it.
		wait = 0
		if n >= busyTries {
			wait = time.Duration(r.jitter() * float64(min(r.rule.MaxPause, r.rule.Base<<min(n-busyTries, 20))))
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
		return batcher.DrainError()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// busyTries is how often a rate-limited call goes straight back to the queue before it
// also rests by itself.
const busyTries = 3
