// Package limiter paces the calls to one account of a provider before the server has to refuse
// them: by requests, input and output tokens a minute, and by calls in flight.
//
// It promises that calls are admitted lowest order first and then first come, first served,
// whatever their model, since they share the account; that a call holds a permit only from the
// moment it is sent until its answer is complete; and that the limits follow the server: a permit
// takes an estimate, its release settles the real usage, and the headers of every answer correct
// the rest. It sends nothing itself.
//
// bucket.go models one rate of the server; adapt.go and refusals.go find out how many calls it can
// handle at once; share.go divides the account between processes.
package limiter

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/provider"
	"parley/internal/kit/queue"
	"parley/llm"
)

// Limiter admits calls. It may be used from several goroutines.
type Limiter struct {
	counting provider.Counting
	gauge    *Gauge
	permits  sync.Pool // of *Permit, to be used again

	mu       sync.Mutex
	buckets  [buckets]bucket
	adapt    adapt
	shared   shared
	inFlight int
	peak     int // the largest inFlight since the server last reported its load
	queue    queue.Queue[*Permit]
	pause    time.Time  // nothing is sent before
	stopped  *llm.Error // nothing is sent until stopEnd
	stopEnd  time.Time
	drained  *llm.Error // nothing is sent any more
	held     *llm.Error // nothing is sent for now
	timer    *time.Timer
	landed   *time.Timer
}

// Gauge counts the calls of any number of limiters.
type Gauge struct {
	InFlight, Waiting, InFlightMax atomic.Int64
	unsaved                        atomic.Int64
	saves                          atomic.Bool // AddUnsaved is called for every answer
}

// AddUnsaved notes that so many answers more are not durable yet, or less if n is negative: then call Limiter.Saved. They count as calls in flight: if the process
// is killed, or cut off, they are lost as well.
func (g *Gauge) AddUnsaved(n int) {
	g.saves.Store(true)
	g.unsaved.Add(int64(n))
}

func (g *Gauge) sent() {
	n := g.InFlight.Add(1)
	for {
		m := g.InFlightMax.Load()
		if n <= m || g.InFlightMax.CompareAndSwap(m, n) {
			return
		}
	}
}

const (
	// stopFor is how long an account that is out of credit, or whose key is refused, is left alone
	// before one call tries again.
	stopFor = time.Minute
	// refusedPause is how long a server is left alone that refuses calls and reports no limits.
	refusedPause = 250 * time.Millisecond
	// maxDoublings bounds that pause if not even a single call is allowed.
	maxDoublings = 7
	// maxUnreachablePause bounds the pause after a call that did not reach the server.
	maxUnreachablePause = 5 * time.Second

	forever = time.Duration(math.MaxInt64)
)

// New returns a Limiter.
func New(l provider.Limits, c provider.Counting, g *Gauge, s Start) *Limiter {
	now := time.Now()
	lim := &Limiter{counting: c, gauge: g, adapt: newAdapt(l.Concurrency, s)}
	lim.queue.Track = func(p *Permit, i int) { p.index = i }
	lim.buckets = [buckets]bucket{
		requests: newBucket(l.RPM, false, now),
		tokens:   newBucket(l.TPM, false, now),
		inputs:   newBucket(l.ITPM, false, now),
		outputs:  newBucket(l.OTPM, c == provider.CountUsed, now),
	}
	return lim
}

// Permit allows one call. Release gives it back.
type Permit struct {
	need    need
	index   int // in the queue; -1 when it has left
	arrived time.Time
	sent    time.Time
	level   int           // calls in flight when it was sent, this call included
	room    float64       // of the whole account at that time: see latencies
	sums    need          // what the buckets had given when it was sent, this call included
	ready   chan struct{} // closed when the call may be sent, or when err is set; nil if it never waited
	err     *llm.Error
}

// Waited returns how long the call waited for its permit.
func (p *Permit) Waited() time.Duration { return p.sent.Sub(p.arrived) }

// Acquire waits until req, whose likely tokens are input and output, may be sent.
func (l *Limiter) Acquire(ctx context.Context, req *llm.Request, input, output float64) (*Permit, error) {
	p, ok := l.permits.Get().(*Permit)
	if !ok {
		p = new(Permit)
	}
	*p = Permit{need: needOf(l.counting, req.MaxTokens, input, output), arrived: time.Now()}
	l.mu.Lock()
	if err := l.refusal(p.arrived); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	if l.queue.Len() == 0 && l.blocked(p, p.arrived) == 0 {
		l.admit(p, p.arrived)
		l.mu.Unlock()
		return p, nil
	}
	p.ready = make(chan struct{})
	l.queue.Push(p, req.Order)
	l.shared.waiting = max(l.shared.waiting, l.queue.Len())
	l.gauge.Waiting.Add(1)
	defer l.gauge.Waiting.Add(-1)
	l.pump(p.arrived)
	l.mu.Unlock()

	select {
	case <-p.ready:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		if p.index >= 0 {
			l.queue.Remove(p.index)
			l.pump(time.Now())
			return nil, queueError(ctx, p)
		} // otherwise it was admitted at the same moment: the caller must use it or give it back
	}
	if p.err != nil {
		return nil, p.err
	}
	return p, nil
}

func queueError(ctx context.Context, p *Permit) error {
	e := *llm.ContextError(ctx)
	waited := time.Since(p.arrived).Round(time.Millisecond)
	e.Message = fmt.Sprintf("waited %v for the provider's limits, then: %s", waited, e.Message)
	return &e
}

// blocked returns how long p must wait: 0 to be sent at once, forever until another call ends.
func (l *Limiter) blocked(p *Permit, now time.Time) time.Duration {
	if l.shared.over(now) {
		return forever
	}
	if !l.adapt.allows(l.taken(), l.pace(p), now) {
		return l.adapt.next(now)
	}
	wait := l.pause.Sub(now)
	for i := range l.buckets {
		l.buckets[i].refill(now)
		wait = max(wait, l.buckets[i].wait(p.need[i]))
	}
	return max(0, wait)
}

// taken returns how many calls in flight count.
func (l *Limiter) taken() int {
	return l.inFlight + int(l.gauge.unsaved.Load())
}

// pace returns how many calls like p must be in flight to use up the known rates, with as many
// again to spare; 0 where no rate is known. Before the first answer it assumes a latency of a second.
func (l *Limiter) pace(p *Permit) float64 {
	perSecond := 0.0
	for i := range l.buckets {
		b := &l.buckets[i]
		if b.rate <= 0 || p.need[i] <= 0 { // without a share, nothing is sent anyway
			continue
		}
		if r := b.rate / p.need[i]; perSecond == 0 || r < perSecond {
			perSecond = r
		}
	}
	return 2 * perSecond * cmp.Or(l.adapt.mean, 1)
}

func (l *Limiter) admit(p *Permit, now time.Time) {
	for i := range l.buckets {
		l.buckets[i].take(p.need[i])
		p.sums[i] = l.buckets[i].sum
	}
	p.sent = now
	l.inFlight++
	p.level, p.room = l.inFlight, l.adapt.room
	l.peak = max(l.peak, l.inFlight)
	l.gauge.sent()
}

// pump admits the calls that need not wait any longer, in order, and sets the timer for the next.
func (l *Limiter) pump(now time.Time) {
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

func (l *Limiter) wake(wait time.Duration) {
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
func (l *Limiter) refusal(now time.Time) *llm.Error {
	switch {
	case l.drained != nil:
		return l.drained
	case l.held != nil:
		return l.held
	case l.stopped != nil && now.Before(l.stopEnd):
		return l.stopped
	default:
		return nil
	}
}

// Release gives a permit back and learns from the result of its call. The permit must not be used
// after that.
func (l *Limiter) Release(p *Permit, resp *llm.Response, err error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	real := p.need
	switch {
	case err == nil:
		real = chargedFor(l.counting, p.need, resp.Usage)
	case llm.KindOf(err) == llm.KindBudget:
		real = need{} // nothing was sent
	}
	for i := range l.buckets {
		l.buckets[i].refill(now)
		l.buckets[i].settle(p.need[i], real[i])
	}
	if err == nil {
		l.stopped = nil
		l.adapt.succeeded(p, l.inFlight, now)
		l.learn(resp.Rate, p, now)
	} else {
		l.adapt.firstDone(p, 0, now)
		l.failed(llm.AsError(err), p, now)
	}
	l.inFlight--
	l.gauge.InFlight.Add(-1)
	l.permits.Put(p)
	if err == nil && l.gauge.saves.Load() {
		l.lands() // the next call is sent when the answer is durable: see Saved
		return
	}
	l.pump(now)
}

// landing is how long it takes at most until AddUnsaved is called for an answer.
const landing = 100 * time.Millisecond

// lands pumps in a while. Most answers are saved sooner, but nobody saves that of an attempt which is not the last.
func (l *Limiter) lands() {
	if l.landed != nil {
		l.landed.Reset(landing)
		return
	}
	l.landed = time.AfterFunc(landing, l.Saved)
}

// Saved notes that answers became durable.
func (l *Limiter) Saved() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pump(time.Now())
}

func (l *Limiter) failed(e *llm.Error, p *Permit, now time.Time) {
	if e.Caller { // it says nothing about other calls
		return
	}
	if e.Unreachable {
		l.adapt.failed(p, l.inFlight, now)
		l.rest(now, min(e.RetryAfter, maxUnreachablePause))
		return
	}
	switch e.Kind {
	case llm.KindRateLimited:
		for i := range l.buckets {
			l.buckets[i].refused()
		}
		l.learn(e.Rate, p, now)
		if !explained(e.Rate, p) {
			l.adapt.refuse(p, l.inFlight, now)
		}
		pause := e.RetryAfter
		if e.Rate == nil {
			pause = max(pause, refusedPause<<min(l.adapt.denied, maxDoublings))
		}
		l.rest(now, pause)
	case llm.KindOverloaded:
		l.adapt.overloaded(p, l.inFlight, now)
		l.rest(now, e.RetryAfter)
	case llm.KindTimeout:
		l.adapt.late(p.sent, now)
	case llm.KindQuota:
		l.stop(e, now)
	case llm.KindAuth:
		if e.Status == http.StatusUnauthorized {
			l.stop(e, now)
		}
	case llm.KindServer:
		l.adapt.failed(p, l.inFlight, now)
		l.learn(e.Rate, p, now)
	default:
		l.learn(e.Rate, p, now)
	}
}

// explained reports whether the server's own figures show that one of its rates was used up. Then
// pacing will fix it, and fewer calls at once would not.
func explained(r *llm.Rate, p *Permit) bool {
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

// rest pauses the whole account. It never shortens a pause.
func (l *Limiter) rest(now time.Time, d time.Duration) {
	if t := now.Add(d); d > 0 && t.After(l.pause) {
		l.pause = t
	}
}

// stop refuses everything for a while, the queue included: the server would only refuse each of
// these calls in turn.
func (l *Limiter) stop(e *llm.Error, now time.Time) {
	stopped := *e
	stopped.Final = true
	l.stopped, l.stopEnd = &stopped, now.Add(stopFor)
}

func (l *Limiter) learn(r *llm.Rate, p *Permit, now time.Time) {
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
		w[tokens] = llm.Window{} // it repeats whichever of these limits is nearest
	}
	return w
}

// Drain refuses the calls that wait, and all later ones, with e. Calls in flight continue.
func (l *Limiter) Drain(e *llm.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drained = e
	l.pump(time.Now())
}

// Steer adapts the calls in flight to the load that the server reports.
func (l *Limiter) Steer(load replica.Load) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adapt.steer(load, l.peak, l.inFlight, now)
	l.peak = l.inFlight
	l.pump(now)
}

// Recall makes the calls that wait fail with replica.ErrRecalled: another server may have room.
func (l *Limiter) Recall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.Len() > 0 {
		p := l.queue.Pop()
		p.err = &llm.Error{Kind: llm.KindOverloaded, Message: "its server is out of service", Err: replica.ErrRecalled}
		close(p.ready)
	}
}

// Hold refuses the calls that wait, and all later ones, with e, until it is called with nil. Calls in
// flight continue.
func (l *Limiter) Hold(e *llm.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = e
	l.pump(time.Now())
}

// SetConcurrency sets the maximum number of calls in flight.
func (l *Limiter) SetConcurrency(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adapt.setConcurrency(n)
	l.pump(time.Now())
}

// Bounds are the limits in force. Rates are a minute; 0 means that none is known.
type Bounds struct {
	InFlight, Concurrency           int
	Requests, Tokens, Input, Output float64
	// Charged is what all calls that ended have cost, as the server counts.
	Charged Units
}

// Units are what a server limits.
type Units struct {
	Requests float64 `json:"requests,omitzero"`
	Tokens   float64 `json:"tokens,omitzero"`
	Input    float64 `json:"input,omitzero"`
	Output   float64 `json:"output,omitzero"`
}

// Bounds returns the limits in force, how many calls are in flight, and what was charged so far.
func (l *Limiter) Bounds() Bounds {
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := func(i int) float64 { return l.buckets[i].rate * 60 }
	sum := func(i int) float64 { return l.buckets[i].charged }
	return Bounds{
		InFlight: l.inFlight, Concurrency: max(1, int(l.adapt.limit)),
		Requests: rate(requests), Tokens: rate(tokens), Input: rate(inputs), Output: rate(outputs),
		Charged: Units{Requests: sum(requests), Tokens: sum(tokens), Input: sum(inputs), Output: sum(outputs)},
	}
}

// Arrived notes that a call was not refused, after a time in which the server refused all calls or was not there.
func (l *Limiter) Arrived() {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adapt.arrived()
	l.pump(now)
}
