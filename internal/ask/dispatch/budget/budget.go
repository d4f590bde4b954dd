// Package budget keeps calls within an amount of money: what may be spent, what a call can cost at
// most, and what each attempt is charged.
//
// Before an attempt is made, the most that it can cost is set aside. When it has ended, its cost is
// spent and the rest is given back. It promises that a budget is never exceeded by servers that
// keep the limits of requests, and otherwise by one answer for each call that is trusted (see
// Terms); that what is set aside is given back exactly once; and that what a server reports is
// believed only as far as it is possible.
//
// budget.go is the amount itself, account.go one call's share of it, prices.go what an attempt can cost
// at most, settle.go what it did cost, and text.go how all of it is told. It is not for prices: package price knows them.
package budget

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

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
	// much: see stepOfStake. It is not called concurrently. Its error refuses the attempt, unless it is ErrPartFull and
	// less is needed meanwhile. Call Recorded for every call that is recorded.
	Expose func(ctx context.Context, worst llm.Money) error

	// Short, if set, is called when a call begins to wait for room, and no other waits.
	Short func(Shortage)

	exposing chan struct{} // has a value while Expose is called

	mu       sync.Mutex
	exposed  llm.Money // what Expose was last called with
	sent     llm.Money // the part of reserved that is for attempts which are being made, if there is an Expose
	unsent   llm.Money // the same for attempts that wait for Expose
	limit    llm.Money // 0: no limit
	spent    llm.Money
	lost     llm.Money // the part of spent that calls of earlier processes may have cost, or not
	reserved llm.Money // for live calls
	// unrecorded is spent on calls that may not be recorded yet.
	unrecorded llm.Money
	recorded   llm.Money // so far
	batched    llm.Money // for calls over a batch API, which are recorded with their batches
	risk       llm.Money // of batches of earlier processes, which no call accounts for yet
	queue      queue.Queue[*waiter]
	crowd      queue.Queue[*waiter] // calls from queue that have room once fewer calls are trusted
	trusted    int                  // calls in flight that may cost more than is set aside for them
	drained    *llm.Error
	part       *part // nil: it is not a part of a larger budget

	lowered atomic.Bool // the limit was lowered once
}

// ErrPartFull is an error of Expose: a larger budget, of which this is a part, has no room for it.
var ErrPartFull = errors.New("the budget has no room for it")

// New returns a budget of limit, of which spent is already gone. A limit of 0 is no limit: the
// budget only counts.
func New(limit, spent llm.Money) *Budget {
	b := &Budget{limit: max(0, limit), spent: max(0, spent), exposing: make(chan struct{}, 1)}
	track := func(w *waiter, i int) { w.index = i }
	b.queue.Track, b.crowd.Track = track, track
	return b
}

// Lost notes that calls of earlier processes may have cost a part of what New got as spent: it is at risk.
func (b *Budget) Lost(amount llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = min(b.spent, max(0, amount))
}

// Sums returns the sums. The limit of a part is that of the whole, and the rest its own.
func (b *Budget) Sums() Sums {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sums()
}

func (b *Budget) sums() Sums {
	s := Sums{Spent: b.spent.Minus(b.lost), AtRisk: b.lost, Aside: b.reserved.Plus(b.batched).Plus(b.risk), Limit: b.limit}
	if b.part != nil {
		s.Limit = b.part.whole
	}
	return s
}

// Spent returns what is spent or at risk, and what is set aside.
func (b *Budget) Spent() (spent, aside llm.Money) {
	s := b.Sums()
	return s.Spent.Plus(s.AtRisk), s.Aside
}

// Mirror makes the budget show what is spent and set aside elsewhere. Nothing may be taken from it here.
func (b *Budget) Mirror(spent, reserved llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent, b.reserved = spent, reserved
}

// Limit returns the limit; 0 is no limit. That of a part is the limit of the whole.
func (b *Budget) Limit() llm.Money { return b.Sums().Limit }

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
			b.setAside(h, w.Batched)
			return h, nil
		}
	}
	d := &waiter{Want: w, prices: prices, ready: make(chan struct{}), resumed: w.aside()}
	b.queue.Push(d, w.Sent.Order)
	b.pump()
	waits, short := d.index >= 0, b.shortage()
	b.mu.Unlock()
	if b.Short != nil && waits && short.Calls == 1 {
		b.Short(short)
	}
	if began := time.Now(); w.Waited != nil {
		defer func() { w.Waited.Add(int64(time.Since(began))) }()
	}
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
			t := w.terms(prices)
			q.Remove(d.index)
			d.resumed()
			b.pump()
			e := *llm.ContextError(ctx)
			amount, _ := t.Reserve()
			e.Message += fmt.Sprintf("; the call waited for room in the budget: %s sets aside %v, and there is %s", t.Why("max_tokens"), amount, b.sums().Text())
			return hold{}, &e
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

// setAside sets h aside.
func (b *Budget) setAside(h hold, batched bool) {
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
	b.recorded = b.recorded.Plus(cost)
}

// AddRisk changes what is at risk in batches of earlier processes.
func (b *Budget) AddRisk(more llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.risk = max(0, b.risk.Plus(more))
	b.pump()
}

// TakeRisk sets worst aside for a batch whose results somebody else collects, perhaps never, if there is room now. It is at risk until AddRisk
// gives it back, and calls do not wait for that.
func (b *Budget) TakeRisk(worst llm.Money) *llm.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fits(worst) {
		return &llm.Error{Kind: llm.KindBudget, Message: fmt.Sprintf("the batch sets aside %v, and there is %s: send fewer requests, limit their answers, or raise the budget", worst, b.sums().Text())}
	}
	b.risk = b.risk.Plus(worst)
	return nil
}

// Spend counts what a line of such a batch has cost. Call it before AddRisk gives back what was set aside for the line.
func (b *Budget) Spend(cost llm.Money) { b.settle(0, cost, true) }

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
		b.setAside(h, d.Batched)
	case crowded:
		return false, true
	case b.part.more():
		return false, false
	case b.idle():
		r := &RefusalError{terms: t, sums: b.sums(), part: b.part != nil}
		d.err = &llm.Error{Kind: llm.KindBudget, Message: r.Error(), Err: r}
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

// Drain refuses the calls that wait, and all later ones, with e.
func (b *Budget) Drain(e *llm.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drained = e
	b.pump()
}

// Shortage says that calls wait for room.
type Shortage struct {
	Calls  int       `json:"calls"`
	Model  string    `json:"model"`  // of the first
	Amount llm.Money `json:"amount"` // that is set aside for it
	// Why says what makes it expensive: see Terms.Why.
	Why string `json:"why,omitempty"`
	// Room is how many such calls the budget has room for at once. 0: not known, since it is a part of a larger one.
	Room int `json:"room,omitempty"`
}

// Shortage says how many calls wait for room. Calls is 0 if none does.
func (b *Budget) Shortage() Shortage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shortage()
}

func (b *Budget) shortage() (s Shortage) {
	n, q := b.queue.Len()+b.crowd.Len(), &b.crowd
	if n == 0 {
		return s
	}
	if b.crowd.Len() == 0 {
		q = &b.queue
	}
	d := q.Head()
	t := d.terms(d.prices)
	s = Shortage{Calls: n, Model: d.Sent.Model, Why: t.Why("max_tokens")}
	s.Amount, _ = t.Reserve()
	if b.part == nil {
		s.Room = t.AtOnce(b.left().Plus(b.reserved))
	}
	return s
}

// part is what a budget knows of the larger one that it is a part of. Its limit is what it was given of
// that, and begins at 0. A call that does not fit waits for more, until the larger budget has no more.
//
// A nil part is that of a budget which is not part of another.
type part struct {
	whole     llm.Money
	short     func()
	exhausted bool // the larger budget has no more
}

// NewPart returns a budget that is a part of one with a limit of whole, and has nothing yet. short is called
// when a call needs more than is left; it must return at once and not use the budget.
//
// Recorded must be called for every call, once the larger budget counts it as spent.
func NewPart(whole llm.Money, short func()) *Budget {
	b := New(0, 0)
	b.part = &part{whole: whole, short: short}
	return b
}

// more asks for more, and reports whether there may be some.
func (p *part) more() bool {
	if p == nil || p.exhausted {
		return false
	}
	p.short()
	return true
}

// Stake is what a part may still cost, and what it needs.
type Stake struct {
	// AtStake is the most that it can add to what the larger budget counts as spent.
	AtStake llm.Money
	// Spare is how much of it no call has set aside.
	Spare llm.Money
	// Short is how much more the next call needs. 0 if none waits.
	Short llm.Money
	// Idle means that nothing is in flight, so that nothing will be given back.
	Idle bool
	// Owed is the most that calls which are not recorded can cost: those in flight, and those that ended without a record.
	Owed llm.Money
	// Recorded is what calls have cost that are recorded.
	Recorded llm.Money
}

// Stake returns what is at stake.
func (b *Budget) Stake() Stake {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.left()
	s := Stake{AtStake: b.unspent(), Spare: max(0, left), Idle: b.idle(), Owed: b.owed(), Recorded: b.recorded}
	if b.queue.Len() > 0 {
		d := b.queue.Head()
		t := d.terms(d.prices)
		s.Short = max(0, max(t.Worst, t.exceeding).Minus(left))
	}
	return s
}

// Grow adds to what the part was given.
func (b *Budget) Grow(more llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if more > 0 {
		b.limit = b.limit.Plus(more)
		b.part.exhausted = false
		b.pump()
	}
}

// GiveBack takes away what no call has set aside.
func (b *Budget) GiveBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = b.limit.Minus(max(0, b.left()))
}

// Exhaust notes that the larger budget has no more, and nothing in flight that could give some back. Calls
// that do not fit are refused.
func (b *Budget) Exhaust() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.part.exhausted = true
	b.pump()
}

// What a killed process may owe is made durable before it can be owed. That happens in steps, so that few attempts
// wait for the disk. The steps are small beside what is at stake and beside what is not spent, so that a run which was
// killed, even often, can be resumed with the rest of its budget.
const (
	stepOfStake   = 8    // 1/stepOfStake of what is at stake is exposed beside it, and no more than
	stepOfUnspent = 128  // 1/stepOfUnspent of what is not spent
	largeSlack    = 32   // less is exposed as soon as 1/largeSlack of what is not spent is too much, or
	smallSlack    = 1024 // if it is twice what is at stake, 1/smallSlack
)

// owed returns what a process that is killed now may owe.
func (b *Budget) owed() llm.Money { return b.sent.Plus(b.unrecorded) }

// atStake returns what it may owe when the attempts are made that wait for Expose.
func (b *Budget) atStake() llm.Money { return b.owed().Plus(b.unsent) }

// unspent returns what is not recorded as spent.
func (b *Budget) unspent() llm.Money { return b.limit.Minus(b.spent).Plus(b.unrecorded) }

// toExpose returns what is at stake and a step more, within what the budget has.
func (b *Budget) toExpose() llm.Money {
	need := b.atStake()
	return max(need, min(need.Plus(min(need/stepOfStake, b.unspent()/stepOfUnspent)), b.unspent()))
}

// exposureIsOff reports whether less is exposed than is at stake, or far more.
func (b *Budget) exposureIsOff() bool {
	need, unspent := b.atStake(), max(0, b.unspent())
	over := b.exposed.Minus(need)
	return b.limit > 0 && (over < 0 || over > min(max(need, unspent/smallSlack), unspent/largeSlack))
}

// exposeAttempt notes that an attempt is about to be sent which can cost held.
func (b *Budget) exposeAttempt(ctx context.Context, held llm.Money) *llm.Error {
	if b.Expose == nil {
		return nil
	}
	b.mu.Lock()
	b.unsent = b.unsent.Plus(held)
	off := b.exposureIsOff()
	if !off {
		b.unsent, b.sent = b.unsent.Minus(held), b.sent.Plus(held)
	}
	b.mu.Unlock()
	if !off {
		return nil
	}
	// One attempt exposes what is at stake for all that wait here.
	var err error
	select {
	case b.exposing <- struct{}{}:
		err = b.expose(ctx)
		<-b.exposing
	case <-ctx.Done():
		err = ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unsent = b.unsent.Minus(held)
	switch {
	case err == nil:
		b.sent = b.sent.Plus(held)
		return nil
	case ctx.Err() != nil:
		return llm.ContextError(ctx)
	default:
		return &llm.Error{Kind: llm.KindBudget, Message: "what this call may cost cannot be recorded: " + err.Error(), Err: err}
	}
}

// endAttempt notes that an attempt has ended which could cost held.
func (b *Budget) endAttempt(held llm.Money) {
	if b.Expose == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = b.sent.Minus(held)
}

// exposeLess exposes less after a call has ended, unless others are about to be sent: these do so where it is due.
func (b *Budget) exposeLess(ctx context.Context) {
	if b.Expose == nil {
		return
	}
	b.mu.Lock()
	due := b.reserved <= b.sent && b.exposureIsOff()
	b.mu.Unlock()
	if !due {
		return
	}
	select {
	case b.exposing <- struct{}{}:
		_ = b.expose(ctx) // what is exposed is too much, which does no harm
		<-b.exposing
	default:
	}
}

// expose makes durable what is at stake, if what is exposed is unsuitable.
func (b *Budget) expose(ctx context.Context) error {
	b.mu.Lock()
	amount, unsuitable := b.toExpose(), b.exposureIsOff()
	if unsuitable && amount < b.exposed {
		b.exposed = amount // first, so that whatever begins now exposes more again
	}
	b.mu.Unlock()
	if !unsuitable {
		return nil
	}
	for {
		err := b.Expose(ctx, amount)
		b.mu.Lock()
		need := b.atStake()
		if err == nil {
			b.exposed = amount
		}
		b.mu.Unlock()
		if !errors.Is(err, ErrPartFull) || need >= amount {
			return err
		}
		amount = need
	}
}
