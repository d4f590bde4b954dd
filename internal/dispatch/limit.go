package dispatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/internal/provider"
	"parley/internal/queue"
	"parley/llm"
)

// limit paces the calls to one account before the server has to refuse them: by
// requests, input and output tokens a minute, and by calls in flight. Calls wait in
// one queue, lowest Order first and then first come first served, whatever their
// model, since they share the account.
//
// A call holds a permit from the moment it is sent until its answer is whole, and at
// no other time. What it takes from the buckets is an estimate, settled with the
// real usage; the headers of every answer correct the buckets themselves.
type limit struct {
	next     layer
	counting provider.Counting
	guess    *estimator
	stats    *Stats

	mu       sync.Mutex
	buckets  [buckets]bucket
	adapt    adapt
	inFlight int
	peak     int // the most in flight since the server was last looked at
	queue    queue.Queue[*permit]
	pause    time.Time  // nothing is sent before
	stopped  *llm.Error // nothing is sent until stopEnd
	stopEnd  time.Time
	draining bool
	timer    *time.Timer
}

// stopFor is how long an account that is out of credit, or whose key is refused, is
// left alone before one call tries again.
const stopFor = time.Minute

func newLimit(next layer, l provider.Limits, c provider.Counting, g *estimator, s *Stats) *limit {
	now := time.Now()
	lim := &limit{next: next, counting: c, guess: g, stats: s, adapt: newAdapt(l.Concurrency)}
	lim.queue.Track = func(p *permit, i int) { p.index = i }
	late := c == provider.CountUsed
	lim.buckets = [buckets]bucket{
		requests: newBucket(l.RPM, false, now),
		tokens:   newBucket(l.TPM, false, now),
		inputs:   newBucket(l.ITPM, false, now),
		outputs:  newBucket(l.OTPM, late, now),
	}
	return lim
}

// ask waits for a permit, then asks.
func (l *limit) ask(ctx context.Context, c *call) (*llm.Response, error) {
	req := c.req
	s := sizeOf(req)
	in, out := l.guess.tokens(req, s)
	p := permit{need: needOf(l.counting, req.MaxTokens, in, out), order: req.Order, arrived: time.Now()}
	if err := l.acquire(ctx, &p); err != nil {
		return nil, err
	}
	c.admit()
	resp, err := l.next.ask(ctx, c)
	var usage llm.Usage
	if resp != nil {
		resp.Metadata.Waited += p.sent.Sub(p.arrived)
		usage = resp.Usage
		l.guess.learn(req, s, usage)
	}
	l.release(&p, resp, err, usage)
	return resp, err
}

// permit is a call's place in the queue, and then its permit.
type permit struct {
	order   int64
	index   int // in the queue; -1 when it has left
	need    need
	arrived time.Time
	sent    time.Time
	sums    need          // what the buckets had given when it was sent, it included
	ready   chan struct{} // closed when it may go, or when err is set; nil if it never waited
	err     *llm.Error
}

func (l *limit) acquire(ctx context.Context, p *permit) error {
	l.mu.Lock()
	if err := l.refusal(p.arrived); err != nil {
		l.mu.Unlock()
		return err
	}
	if l.queue.Len() == 0 && l.blocked(p, p.arrived) == 0 {
		l.admit(p, p.arrived)
		l.mu.Unlock()
		return nil
	}
	p.ready = make(chan struct{})
	l.queue.Push(p, p.order)
	l.stats.waiting.Add(1)
	l.pump(p.arrived)
	l.mu.Unlock()

	select {
	case <-p.ready:
	case <-ctx.Done():
		l.mu.Lock()
		if p.index >= 0 {
			l.queue.Remove(p.index)
			l.pump(time.Now())
			l.mu.Unlock()
			l.stats.waiting.Add(-1)
			return queueError(ctx, p)
		}
		l.mu.Unlock() // it was let go at the same moment: the permit is ours to use or give back
	}
	l.stats.waiting.Add(-1)
	if p.err != nil {
		return p.err
	}
	return nil
}

func queueError(ctx context.Context, p *permit) error {
	e := *llm.ContextError(ctx)
	waited := time.Since(p.arrived).Round(time.Millisecond)
	e.Message = fmt.Sprintf("waited %v for the provider's limits, then: %s", waited, e.Message)
	return &e
}

const forever = time.Duration(1<<63 - 1)

// blocked returns how long p must wait: 0 to go at once, forever until another call ends.
func (l *limit) blocked(p *permit, now time.Time) time.Duration {
	if !l.adapt.allows(l.inFlight, l.pace(p)) {
		return forever
	}
	wait := l.pause.Sub(now)
	for i := range l.buckets {
		b := &l.buckets[i]
		b.refill(now)
		wait = max(wait, b.wait(p.need[i]))
	}
	return max(0, wait)
}

// pace returns how many calls like p must be in flight to use up the known rates, with
// as many again to spare; 0 where no rate or no latency is known.
func (l *limit) pace(p *permit) float64 {
	perSecond := 0.0
	for i := range l.buckets {
		b := &l.buckets[i]
		if b.rate <= 0 || p.need[i] <= 0 {
			continue
		}
		if r := b.rate / p.need[i]; perSecond == 0 || r < perSecond {
			perSecond = r
		}
	}
	return 2 * perSecond * l.adapt.mean
}

func (l *limit) admit(p *permit, now time.Time) {
	for i := range l.buckets {
		l.buckets[i].take(p.need[i])
		p.sums[i] = l.buckets[i].sum
	}
	p.sent = now
	l.inFlight++
	l.peak = max(l.peak, l.inFlight)
	l.stats.sent()
}

// pump lets go whoever may go, oldest first, and sets the timer for the next.
func (l *limit) pump(now time.Time) {
	for l.queue.Len() > 0 {
		p := l.queue.Head()
		if p.err = l.refusal(now); p.err == nil {
			if wait := l.blocked(p, now); wait > 0 {
				l.wake(wait)
				return
			}
			l.admit(p, now)
		}
		l.queue.Pop()
		close(p.ready)
	}
	if l.timer != nil {
		l.timer.Stop()
	}
}

func (l *limit) wake(wait time.Duration) {
	switch {
	case wait == forever:
	case l.timer == nil:
		l.timer = time.AfterFunc(wait, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.pump(time.Now())
		})
	default:
		l.timer.Reset(wait)
	}
}

// refusal returns why nothing may be sent at all, or nil.
func (l *limit) refusal(now time.Time) *llm.Error {
	switch {
	case l.draining:
		return drainError()
	case l.stopped != nil && now.Before(l.stopEnd):
		return l.stopped
	default:
		return nil
	}
}

// release gives the permit back and learns from how the call went.
func (l *limit) release(p *permit, resp *llm.Response, err error, u llm.Usage) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	real := p.need
	if err == nil {
		real = realOf(l.counting, p.need, u)
	}
	for i := range l.buckets {
		l.buckets[i].refill(now)
		l.buckets[i].settle(p.need[i], real[i])
	}
	if err == nil {
		l.stopped = nil
		l.adapt.succeeded(l.inFlight, now.Sub(p.sent), now)
		l.learn(resp.Rate, p, now)
	} else {
		l.failed(llm.AsError(err), p, now)
	}
	l.inFlight--
	l.stats.ended()
	l.pump(now)
}

func (l *limit) failed(e *llm.Error, p *permit, now time.Time) {
	if e.Caller { // it says nothing of other calls
		return
	}
	if e.Unreachable { // how many calls the server bears is as it was
		l.rest(now, min(e.RetryAfter, probePauseMost))
		return
	}
	switch e.Kind {
	case llm.KindRateLimited:
		for i := range l.buckets {
			l.buckets[i].refused()
		}
		l.learn(e.Rate, p, now)
		if !l.explained(e.Rate, p) {
			l.adapt.refused(p.sent, now)
		}
		l.rest(now, max(e.RetryAfter, l.emptyFor(e.Rate)))
	case llm.KindOverloaded:
		l.adapt.overloaded(now)
		l.rest(now, e.RetryAfter)
	case llm.KindTimeout:
		l.adapt.refused(p.sent, now)
	case llm.KindQuota:
		l.stop(e, now)
	case llm.KindAuth:
		if e.Status == 401 {
			l.stop(e, now)
		}
	default:
		l.learn(e.Rate, p, now)
	}
}

// explained says whether the server's own figures show that one of its rates was used
// up, so that pacing will mend it and fewer calls at once would not.
func (l *limit) explained(r *llm.Rate, p *permit) bool {
	if r == nil {
		return false
	}
	for i, w := range windows(r) {
		if w.Known && w.Remaining < max(1, p.need[i]) {
			return true
		}
	}
	return false
}

// emptyFor is how long a server that gave no Retry-After is left alone: a moment.
func (l *limit) emptyFor(r *llm.Rate) time.Duration {
	if r != nil {
		return 0 // its headers say what is left
	}
	return 250 * time.Millisecond
}

// rest pauses the whole account, never shortening a pause that is on.
func (l *limit) rest(now time.Time, d time.Duration) {
	if t := now.Add(d); d > 0 && t.After(l.pause) {
		l.pause = t
	}
}

// stop refuses everything for a while, the queue included: each of these calls would
// only be refused in its turn.
func (l *limit) stop(e *llm.Error, now time.Time) {
	stopped := *e
	stopped.Final = true
	l.stopped, l.stopEnd = &stopped, now.Add(stopFor)
}

func (l *limit) learn(r *llm.Rate, p *permit, now time.Time) {
	if r == nil {
		return
	}
	for i, w := range windows(r) {
		l.buckets[i].learn(w, p.need[i], p.sent, p.sums[i], now)
	}
}

func windows(r *llm.Rate) [buckets]llm.Window {
	w := [buckets]llm.Window{requests: r.Requests, tokens: r.Tokens, inputs: r.Input, outputs: r.Output}
	if r.Input.Known || r.Output.Known {
		w[tokens] = llm.Window{} // the same limits once more, whichever is nearest
	}
	return w
}

// drain refuses all that waits and all that comes; what is in flight goes on.
func (l *limit) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	l.pump(time.Now())
}
