// Package budget keeps calls within an amount of money: what may be spent, what a call can cost at
// most, and what each attempt is charged.
//
// Before a call is made, the most that it can cost is set aside. When it has ended, its cost is
// spent and the rest is given back. It promises that a budget is never exceeded by servers that
// keep the limits of requests, and otherwise by one answer for each call that is trusted (see
// Terms); that what is set aside is given back exactly once; and that what a server reports is
// believed only as far as it is possible.
//
// It is not for prices: package price knows them.
package budget

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"parley/internal/kit/queue"
	"parley/llm"
)

// Budget is an amount of money that calls draw on and do not exceed.
//
// A call that does not fit beside the calls in flight waits for them to end, since most cost less
// than they might. A call that does not fit although nothing is in flight is refused.
type Budget struct {
	// Expose, if set, makes durable how much a killed process may owe: what attempts that are being
	// made, and calls that have ended and are not recorded yet, can cost. It is called with more
	// before an attempt could exceed the last amount, and with less when that has become far too
	// much: see expose.go. It is not called concurrently. Its error refuses the attempt. Call
	// Recorded for every call that is recorded.
	Expose func(ctx context.Context, worst llm.Money) error

	exposing chan struct{} // has a value while Expose is called

	mu       sync.Mutex
	exposed  llm.Money // what Expose was last called with
	sent     llm.Money // the part of reserved that is for attempts which are being made, if there is an Expose
	limit    llm.Money // 0: no limit
	spent    llm.Money
	reserved llm.Money // for live calls
	// unrecorded is spent on calls that may not be recorded yet.
	unrecorded llm.Money
	batched    llm.Money // for calls over a batch API, which are recorded with their batches
	risk       llm.Money // of batches of earlier processes, which no call accounts for yet
	queue      queue.Queue[*waiter]
	crowd      queue.Queue[*waiter] // calls from queue that have room once fewer calls are trusted
	trusted    int                  // calls in flight that may cost more than is set aside for them
	drained    *llm.Error
	part       *part // nil: it is not a part of a larger budget

	lowered atomic.Bool // the limit was lowered once
}

// New returns a budget of limit, of which spent is already gone. A limit of 0 is no limit: the
// budget only counts.
func New(limit, spent llm.Money) *Budget {
	b := &Budget{limit: max(0, limit), spent: max(0, spent), exposing: make(chan struct{}, 1)}
	track := func(w *waiter, i int) { w.index = i }
	b.queue.Track, b.crowd.Track = track, track
	return b
}

// Spent returns what is spent for good, and what is set aside for calls in flight and open batches.
func (b *Budget) Spent() (spent, reserved llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent, b.reserved.Plus(b.batched).Plus(b.risk)
}

// Mirror makes the budget show what is spent and set aside elsewhere. Nothing may be taken from it here.
func (b *Budget) Mirror(spent, reserved llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent, b.reserved = spent, reserved
}

// Limit returns the limit; 0 is no limit. That of a part is the limit of the whole.
func (b *Budget) Limit() llm.Money {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.part != nil {
		return b.part.whole
	}
	return b.limit
}

// unlimited reports whether the budget only counts.
func (b *Budget) unlimited() bool { return b.limit == 0 && b.part == nil }

// left returns what is neither spent nor set aside.
func (b *Budget) left() llm.Money {
	limit := b.limit
	if b.unlimited() {
		limit = math.MaxInt64
	}
	return limit.Minus(b.spent).Minus(b.reserved).Minus(b.batched).Minus(b.risk)
}

// SetLimit changes the limit to one that is not 0. Calls that wait are served under the new limit. An
// attempt that has begun is not affected; one that has not gives back what was set aside under the
// old limit, if that is too much now, and its call is refused with ErrReopen if there was no limit:
// see Account.Begin. That of a part is the limit of the whole.
func (b *Budget) SetLimit(limit llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case limit <= 0:
	case b.part != nil:
		b.part.whole = limit
	default:
		if b.limit > 0 && limit < b.limit {
			b.lowered.Store(true)
		}
		b.limit = limit
		b.pump()
	}
}

// exceeded reports whether more is spent and set aside than there is, since the limit was lowered.
func (b *Budget) exceeded() bool {
	if !b.lowered.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit > 0 && b.left() < 0
}

// hold is what is set aside for a call.
type hold struct {
	amount    llm.Money
	trusted   bool // it is one of the few calls that may cost more
	unlimited bool // there was no limit
}

// waiter is a call that waits for room.
type waiter struct {
	Want
	prices  *Prices
	index   int  // in its queue; -1 when it has left
	crowded bool // it is in crowd
	ready   chan struct{}
	resumed func() // called when it does not wait any more
	got     hold
	err     error
}

// reserve sets aside what w needs, and waits for room if there may be some later.
func (b *Budget) reserve(ctx context.Context, prices *Prices, w Want) (hold, error) {
	b.mu.Lock()
	if b.unlimited() {
		defer b.mu.Unlock()
		if b.drained != nil {
			return hold{}, b.drained
		}
		return hold{unlimited: true}, nil // attempts reserve what they need
	}
	if b.queue.Len() == 0 {
		if h, ok, _ := b.room(w.terms(prices)); ok {
			defer b.mu.Unlock()
			b.give(h, w.Batched)
			return h, nil
		}
	}
	d := &waiter{Want: w, prices: prices, ready: make(chan struct{}), resumed: w.aside()}
	b.queue.Push(d, w.Sent.Order)
	b.pump()
	b.mu.Unlock()
	select {
	case <-d.ready:
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		q := &b.queue
		if d.crowded {
			q = &b.crowd
		}
		if d.index >= 0 {
			q.Remove(d.index)
			d.resumed()
			b.pump()
			return hold{}, llm.ContextError(ctx)
		}
	}
	return d.got, d.err
}

// room returns what can be set aside for t now. If there is room only for the cost at a server that
// keeps the limit on its output, the call may be one of t.maxTrusted that are let through on trust:
// each of them can overspend by one answer. crowded means that as many are already in flight.
func (b *Budget) room(t Terms) (h hold, ok, crowded bool) {
	if limit := max(t.Worst, t.exceeding); b.fits(limit) {
		return hold{amount: limit}, true, false
	}
	if !t.mayExceed() || !b.fits(t.Worst) || b.part.more() {
		return hold{}, false, false
	}
	full := t.maxTrusted > 0 && b.trusted >= t.maxTrusted
	return hold{amount: t.Worst, trusted: true}, !full, full
}

// give sets h aside.
func (b *Budget) give(h hold, batched bool) {
	b.grant(h.amount, batched)
	if h.trusted {
		b.trusted++
	}
}

// tryReserve sets worst aside if there is room now.
func (b *Budget) tryReserve(worst llm.Money, batched bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok := b.fits(worst)
	if ok {
		b.grant(worst, batched)
	}
	return ok
}

// grant sets worst aside.
func (b *Budget) grant(worst llm.Money, batched bool) {
	if batched {
		b.batched = b.batched.Plus(worst)
	} else {
		b.reserved = b.reserved.Plus(worst)
	}
}

// fits reports whether worst can be set aside. Even without a limit, no more is set aside than Money
// holds, so that what is given back later is what was set aside.
func (b *Budget) fits(worst llm.Money) bool {
	return b.drained == nil && (worst == 0 && b.unlimited() || worst <= b.left())
}

// settle gives back what was set aside and spends cost.
func (b *Budget) settle(reserved, cost llm.Money, batched bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if batched {
		b.batched = b.batched.Minus(reserved)
	} else {
		b.reserved = b.reserved.Minus(reserved)
	}
	b.spent = b.spent.Plus(max(0, cost))
	if b.Expose != nil || b.part != nil {
		b.unrecorded = b.unrecorded.Plus(max(0, cost))
	}
	b.pump()
}

// Recorded notes that a call is durably recorded which cost so much.
func (b *Budget) Recorded(cost llm.Money) {
	if cost <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unrecorded = max(0, b.unrecorded.Minus(cost))
}

// AddRisk changes what is at risk in batches of earlier processes.
func (b *Budget) AddRisk(more llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.risk = max(0, b.risk.Plus(more))
	b.pump()
}

// adoptRisk sets worst aside for a call that accounts for what was at risk from now on. There is
// always room: the money may already be spent.
func (b *Budget) adoptRisk(risk, worst llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.risk = max(0, b.risk.Minus(risk))
	b.batched = b.batched.Plus(worst)
	b.pump()
}

// toLive moves what was set aside for a batch to what is set aside for live calls.
func (b *Budget) toLive(amount llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.grant(amount, false)
	b.batched = b.batched.Minus(amount)
}

// release gives back what a call has left.
func (b *Budget) release(free llm.Money, batched, trusted bool) {
	if trusted {
		b.mu.Lock()
		b.trusted--
		b.mu.Unlock()
	}
	b.settle(free, 0, batched)
}

// pump lets in the calls that fit, in order: first those that wait until fewer calls are trusted.
func (b *Budget) pump() {
	for b.crowd.Len() > 0 {
		served, crowded := b.serve(&b.crowd)
		if crowded {
			break
		}
		if !served {
			return
		}
	}
	for b.queue.Len() > 0 {
		served, crowded := b.serve(&b.queue)
		switch {
		case crowded:
			d := b.queue.Pop()
			d.crowded = true
			b.crowd.Push(d, d.Sent.Order)
		case !served:
			return
		}
	}
}

// serve lets in or refuses the first call of a queue, unless it must wait. With nothing in flight no
// room will be given back, so a call that does not fit then is refused.
func (b *Budget) serve(q *queue.Queue[*waiter]) (served, crowded bool) {
	d := q.Head()
	t := d.terms(d.prices)
	h, ok, crowded := b.room(t)
	switch {
	case b.drained != nil:
		d.err = b.drained
	case ok:
		d.got = h
		b.give(h, d.Batched)
	case crowded:
		return false, true
	case b.part.more():
		return false, false
	case b.idle():
		d.err = b.refusal(t.Worst)
	default:
		return false, false
	}
	q.Pop()
	d.resumed()
	close(d.ready)
	return true, false
}

// idle reports whether no call has anything set aside that it could give back.
func (b *Budget) idle() bool { return b.reserved == 0 && b.batched == 0 }

// refusal returns the error for a call that does not fit.
func (b *Budget) refusal(worst llm.Money) *llm.Error {
	msg := fmt.Sprintf("this call may cost up to %v; %v of the budget of %v is spent", worst, b.spent, b.limit)
	if b.part != nil {
		msg = fmt.Sprintf("this call may cost up to %v, and the budget of %v has less left", worst, b.part.whole)
	}
	return &llm.Error{Kind: llm.KindBudget, Message: msg}
}

// Drain refuses the calls that wait, and all later ones, with e.
func (b *Budget) Drain(e *llm.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drained = e
	b.pump()
}
