package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/settings"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// retry retries what may succeed later, and then tries other models. It holds no permit while it
// waits: limit is inside it.
type retry struct {
	next  layer
	rule  *settings.Retry
	stats *counters
	// jitter returns a number in [0,1). Pauses are random on purpose: they change when a call
	// happens, never its answer.
	jitter    func() float64
	lateError error // the error of a call whose deadline passes
	// continues reports whether a model can continue an answer exactly.
	continues func(model string) bool

	drained chan struct{} // closed by drain
	once    sync.Once
}

func newRetry(next layer, rule *settings.Retry, s *counters) *retry {
	return &retry{next: next, rule: rule, stats: s, jitter: rand.Float64, lateError: deadlineError(rule.Longest()), drained: make(chan struct{})}
}

// drain refuses calls that wait between two attempts.
func (r *retry) drain() { r.once.Do(func() { close(r.drained) }) }

// ask tries the model of the request, and then its fallbacks, until one answers, the deadline
// passes, or nothing is left to try. It returns the error of the last attempt.
func (r *retry) ask(ctx context.Context, c *call) (*llm.Response, error) { //nolint:contextcheck // deadline's parent is ctx
	req := c.req
	deadline, late := r.rule.Longest(), r.lateError
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
	if len(req.Fallbacks) > 0 {
		c = c.with(req)
		c.hasty = true
	}
	resp, err := r.tryModel(ctx, c)
	for i := 0; err != nil && i < len(req.Fallbacks) && fallsBack(err) && ctx.Err() == nil; i++ {
		other := *req
		other.Model, other.Begun = req.Fallbacks[i], nil
		next := c.with(&other)
		next.hasty = i+1 < len(req.Fallbacks)
		if resp, err = r.tryModel(ctx, next); err != nil {
			e := *llm.AsError(err)
			e.Partial = nil // the tokens of another model cannot be continued
			err = &e
		}
	}
	return resp, err
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

// tryModel tries one model. If the call is hasty, a refusal counts as a failed attempt; otherwise it
// is waited out.
func (r *retry) tryModel(ctx context.Context, c *call) (*llm.Response, error) {
	model := c.req.Model
	failures, stale, waits := 0, 0, false
	defer func() {
		if waits {
			r.stats.count(model, func(m *ModelStats) { m.refusedCalls-- })
		}
	}()
	first := c
	for n := 0; ; n++ {
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
			if c = r.continued(c, first, resp); atTokenLimit(c) {
				return cutAtLimit(c), nil
			}
		}
		e := llm.AsError(err)
		if c.req.Begun != nil && !cut && continueFailed(e) && ctx.Err() == nil {
			c = first.continuing(nil)
			continue
		}
		if e.Stale && stale < staleAttempts(e) && ctx.Err() == nil {
			stale++
			r.stats.count(model, func(m *ModelStats) { m.Retried++ })
			continue
		}
		busy := refused(e.Kind)
		if !cut && (!busy || c.hasty) {
			failures++
		}
		if !e.Kind.Retryable() || e.Final || failures > r.rule.Retries || ctx.Err() != nil {
			return nil, withPartial(c, r.finalError(ctx, e, false))
		}
		if busy && !waits {
			waits = true
			r.stats.count(model, func(m *ModelStats) { m.refusedCalls++ })
		}
		began := time.Now()
		err = r.pause(ctx, e, n)
		c.waitedSince(began)
		if err != nil {
			return nil, withPartial(c, r.finalError(ctx, e, true))
		}
		r.stats.count(model, func(m *ModelStats) { m.Retried++ })
	}
}

// staleAttempts is how many attempts over a connection that the server may have closed do not count as failures, since another connection may do. If the
// server may have seen the request, it is one, which is charged like any that may have been billed.
func staleAttempts(e *llm.Error) int {
	if e.Uncertain {
		return 1
	}
	return 3
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

// finalError returns the error for the caller from the last failure. If time ran out or a drain ended the
// call, it says so too.
func (r *retry) finalError(ctx context.Context, e *llm.Error, drained bool) error {
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

// pause waits before attempt n+1: as long as the server asks, and a random time that grows with n,
// so that many failures do not return at once.
func (r *retry) pause(ctx context.Context, e *llm.Error, n int) error {
	wait := r.backoff(n)
	if e.Kind == llm.KindRateLimited && !e.Caller {
		// The limiter pauses the whole account for as long as the server asks. A call that waits
		// there keeps its position in the queue; one that waits here loses it.
		wait = 0
		if n >= maxQuickRetries {
			wait = r.backoff(n - maxQuickRetries)
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
	return time.Duration(r.jitter() * float64(min(r.rule.MaxPause, r.rule.Pause<<min(n, 20))))
}

// maxQuickRetries is how often a rate-limited call returns to the queue at once before it also waits
// here.
const maxQuickRetries = 3

// An answer that a server cuts off, as it does when it gets new weights, is continued from its last token if that is exact:
// the server gave the ids of all tokens so far and takes them back, and nothing but the tokens decides how the answer
// continues. Otherwise the whole answer is asked for again.

// continued returns the call that continues the answer resp, which was cut off, if the model can do so. Otherwise the call asks
// for the whole answer. first is the call before its first attempt.
func (r *retry) continued(c, first *call, resp *llm.Response) *call {
	n := len(resp.TokenIDs)
	switch req := c.req; {
	case n == 0:
		return c
	case r.continues == nil || !r.continues(req.Model) || !decidedByTokens(req), resp.Refusal != "" || len(resp.Thoughts)+len(resp.ToolCalls) > 0,
		req.Logprobs && len(resp.Logprobs) != n, req.Begun == nil && len(resp.PromptTokenIDs) == 0:
		return first.continuing(nil)
	}
	return c.continuing(joined(c.req.Begun, resp))
}

// continuing returns a copy of the call that continues an answer, or begins one if begun is nil.
func (c *call) continuing(begun *llm.Response) *call {
	req := *c.req
	req.Begun = begun
	return c.with(&req)
}

// decidedByTokens reports whether the tokens of a prompt and of an answer so far decide how the answer continues.
func decidedByTokens(req *llm.Request) bool {
	for name := range req.Extra {
		if name != "chat_template_kwargs" { // it made the prompt
			return false
		}
	}
	return req.TokenIDs && req.MaxTokens > 0 && len(req.Tools)+len(req.Stop) == 0 && req.Schema == nil && req.Seed == nil && req.Effort == "" &&
		req.FrequencyPenalty == nil && req.PresencePenalty == nil && req.TopLogprobs == 0
}

// joined returns an answer of which begun, if not nil, was written before rest.
func joined(begun, rest *llm.Response) *llm.Response {
	out, span := *rest, llm.Span{Tokens: len(rest.TokenIDs), WeightVersion: rest.WeightVersion}
	if begun == nil {
		out.Spans = []llm.Span{span}
		return &out
	}
	out.Text = begun.Text + rest.Text
	out.TokenIDs, out.PromptTokenIDs = slices.Concat(begun.TokenIDs, rest.TokenIDs), begun.PromptTokenIDs
	out.Logprobs = slices.Concat(begun.Logprobs, rest.Logprobs)
	out.Spans, out.WeightVersion = append(slices.Clip(begun.Spans), span), begun.WeightVersion // the oldest
	out.Usage = llm.Usage{Input: begun.Usage.Input, Cached: begun.Usage.Cached, Output: llm.AddTokens(begun.Usage.Output, rest.Usage.Output)}
	return &out
}

// complete returns the whole answer to a call that may continue one.
func complete(req *llm.Request, resp *llm.Response) (*llm.Response, error) {
	n := len(resp.TokenIDs)
	switch {
	case req.Begun == nil:
		return resp, nil
	case n == 0 && resp.Text != "" || req.Logprobs && len(resp.Logprobs) != n:
		return nil, fault.Malformed("the server continued an answer without the ids of its tokens", nil)
	}
	return joined(req.Begun, resp), nil
}

// atTokenLimit reports whether an answer has all the tokens that it may have.
func atTokenLimit(c *call) bool {
	return c.req.Begun != nil && len(c.req.Begun.TokenIDs) >= c.req.MaxTokens
}

// cutAtLimit returns an answer that is at its token limit.
func cutAtLimit(c *call) *llm.Response {
	resp := *c.req.Begun
	resp.Finish = llm.FinishLength
	return &resp
}

// continueFailed reports whether an attempt to continue an answer failed in a way that asking for the whole one may not.
func continueFailed(e *llm.Error) bool {
	switch e.Kind {
	case llm.KindCanceled, llm.KindBudget, llm.KindAuth, llm.KindQuota:
		return false
	default:
		return e.Kind == llm.KindMalformed || !e.Kind.Retryable()
	}
}

// withPartial adds the part of the answer that the call has to an error.
func withPartial(c *call, err error) error {
	if c.req.Begun == nil {
		return err
	}
	e := *llm.AsError(err)
	e.Partial = c.req.Begun
	return &e
}

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
