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

	"parley/internal/queue"
	"parley/llm"
)

// Budget is an amount of money that calls draw on and do not exceed.
//
// A call that does not fit beside the calls in flight waits for them to end, since most cost less
// than they might. A call that does not fit although nothing is in flight is refused.
type Budget struct {
	// Expose, if set, is called before more is at stake than ever before: calls in flight, and those
	// that have ended and are not recorded yet, can now cost up to worst. It must make that durable,
	// so that it is known what a killed process may owe. Its error refuses the call. Call Recorded
	// for every call that is recorded.
	Expose func(worst llm.Money) error

	mu       sync.Mutex
	exposed  llm.Money // the largest amount that Expose was called with
	limit    llm.Money // 0: no limit
	spent    llm.Money
	reserved llm.Money // for live calls: these are what Expose is about
	// unrecorded is spent on calls that may not be recorded yet: Expose is about these too.
	unrecorded llm.Money
	batched    llm.Money // for calls over a batch API, which are recorded with their batches
	risk       llm.Money // of batches of earlier processes, which no call accounts for yet
	queue      queue.Queue[*waiter]
	crowd      queue.Queue[*waiter] // calls from queue that have room once fewer calls are trusted
	trusted    int                  // calls in flight that may cost more than is set aside for them
	drained    *llm.Error

	lowered atomic.Bool // the limit was lowered once
}

// New returns a budget of limit, of which spent is already gone. A limit of 0 is no limit: the
// budget only counts.
func New(limit, spent llm.Money) *Budget {
	b := &Budget{limit: max(0, limit), spent: max(0, spent)}
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

// Limit returns the limit; 0 is no limit.
func (b *Budget) Limit() llm.Money {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit
}

// SetLimit changes the limit to one that is not 0. Calls that wait are served under the new limit. An
// attempt that has begun is not affected; one that has not gives back what was set aside under the
// old limit, if that is too much now, and its call is refused with ErrReopen if there was no limit:
// see Account.Begin.
func (b *Budget) SetLimit(limit llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if limit > 0 {
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
	return b.limit > 0 && b.spent.Plus(b.reserved).Plus(b.batched).Plus(b.risk) > b.limit
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
	if b.limit == 0 {
		defer b.mu.Unlock()
		if b.drained != nil {
			return hold{}, b.drained
		}
		return hold{unlimited: true}, nil // attempts reserve what they need
	}
	if b.queue.Len() == 0 {
		if h, ok, _ := b.room(w.terms(prices)); ok {
			defer b.mu.Unlock()
			return h, b.give(h, w.Batched)
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
	if !t.mayExceed() || !b.fits(t.Worst) {
		return hold{}, false, false
	}
	full := t.maxTrusted > 0 && b.trusted >= t.maxTrusted
	return hold{amount: t.Worst, trusted: true}, !full, full
}

// give sets h aside.
func (b *Budget) give(h hold, batched bool) error {
	if err := b.grant(h.amount, batched); err != nil {
		return err
	}
	if h.trusted {
		b.trusted++
	}
	return nil
}

// tryReserve sets worst aside if there is room now.
func (b *Budget) tryReserve(worst llm.Money, batched bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fits(worst) && b.grant(worst, batched) == nil
}

// grant sets worst aside. The exposed amount grows in large steps, so that Expose is rarely called.
func (b *Budget) grant(worst llm.Money, batched bool) error {
	if batched {
		b.batched = b.batched.Plus(worst)
		return nil
	}
	if now := b.reserved.Plus(b.unrecorded).Plus(worst); b.Expose != nil && b.limit > 0 && now > b.exposed {
		step := max(now, min(max(now.Times(2), b.limit/64), b.limit))
		if err := b.Expose(step); err != nil {
			return &llm.Error{Kind: llm.KindBudget, Message: "what this call may cost cannot be recorded: " + err.Error(), Err: err}
		}
		b.exposed = step
	}
	b.reserved = b.reserved.Plus(worst)
	return nil
}

// fits reports whether worst can be set aside. Even without a limit, no more is set aside than Money
// holds, so that what is given back later is what was set aside.
func (b *Budget) fits(worst llm.Money) bool {
	limit := b.limit
	if limit == 0 {
		limit = math.MaxInt64
	}
	return b.drained == nil && (worst == 0 && b.limit == 0 ||
		worst <= limit.Minus(b.spent).Minus(b.reserved).Minus(b.batched).Minus(b.risk))
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
	if b.Expose != nil {
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
func (b *Budget) toLive(amount llm.Money) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.grant(amount, false); err != nil {
		return err
	}
	b.batched = b.batched.Minus(amount)
	return nil
}

// close gives back what a call has left.
func (b *Budget) close(free llm.Money, batched, trusted bool) {
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
		d.got, d.err = h, b.give(h, d.Batched)
	case crowded:
		return false, true
	case b.reserved == 0 && b.batched == 0:
		d.err = &llm.Error{Kind: llm.KindBudget, Message: fmt.Sprintf(
			"this call may cost up to %v; %v of the budget of %v is spent", t.Worst, b.spent, b.limit)}
	default:
		return false, false
	}
	q.Pop()
	d.resumed()
	close(d.ready)
	return true, false
}

// Drain refuses the calls that wait, and all later ones, with e.
func (b *Budget) Drain(e *llm.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drained = e
	b.pump()
}
