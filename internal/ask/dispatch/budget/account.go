package budget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"parley/llm"
)

// Account is one call's share of a budget. Several attempts of the call may draw on it at once.
type Account struct {
	budget    *Budget
	mu        sync.Mutex
	free      llm.Money // set aside and not in use by an attempt
	inUse     llm.Money // by attempts
	batched   bool      // it was set aside for a batch
	adopted   bool      // it was set aside by an earlier process, for a batch that may be paid for
	wave      Wave      // nil: the call is not part of a wave
	lacks     Terms     // of the last attempt for which there was no room
	trusted   bool      // it may make one attempt at a time that can cost more than is set aside
	unlimited bool      // nothing was set aside for it, since there was no limit
	cost      llm.Money
	estimated bool      // an attempt was charged by an estimate
	maxCost   llm.Money // of the call; 0: no limit of its own
	waited    *atomic.Int64
}

// Bounded reports whether the cost of attempts must be known in advance.
func (a *Account) Bounded() bool { return a.budget.Limit() > 0 || a.maxCost > 0 }

// ErrReopen is wrapped by the error of an attempt that was not begun because the budget has got a
// limit since the account was opened. The call needs a new account.
var ErrReopen = errors.New("the budget has a limit now")

// ErrNoRoom is wrapped by the error of an attempt that was not begun because the budget has no room
// for it beside other calls. Await waits for some.
var ErrNoRoom = errors.New("the budget has no room for another attempt")

// outdated reports whether the call needs a new account: see ErrReopen.
func (a *Account) outdated() bool { return a.unlimited && a.budget.Limit() > 0 }

// allows returns an error if no attempt that may cost worst can be begun, whatever room there is.
func (a *Account) allows(worst llm.Money) *llm.Error {
	if a.maxCost > 0 && worst > a.maxCost.Minus(a.cost).Minus(a.inUse) {
		return &llm.Error{Kind: llm.KindBudget, Message: fmt.Sprintf("another attempt might cost more than the %v that this call may cost", a.maxCost), Err: llm.ErrMaxCost}
	}
	if a.outdated() {
		return &llm.Error{Kind: llm.KindCanceled, Message: ErrReopen.Error(), Err: ErrReopen}
	}
	return nil
}

// noRoom returns the error of an attempt with the terms t.
func (a *Account) noRoom(t Terms) *llm.Error {
	e := &llm.Error{Kind: llm.KindBudget, Message: ErrNoRoom.Error()}
	if a.budget.Limit() > 0 { // otherwise it is more than Money can hold
		a.lacks, e.Err = t, ErrNoRoom
	}
	return e
}

// Begin takes what t demands for a live attempt. It sets more aside if the account has too little.
// What a killed process may owe for the attempt is durable when it returns.
func (a *Account) Begin(ctx context.Context, t Terms) (held llm.Money, err *llm.Error) {
	a.mu.Lock()
	if a.batched {
		a.goLive()
	}
	held, err = a.take(t)
	a.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if err = a.budget.exposeAttempt(ctx, held); err != nil {
		a.end(held, Charge{})
		return 0, err
	}
	return held, nil
}

// BeginLine takes worst for a line of a batch, which is recorded with its batch.
func (a *Account) BeginLine(worst llm.Money) *llm.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.take(Terms{Worst: worst})
	return err
}

// take takes what t demands for an attempt.
func (a *Account) take(t Terms) (held llm.Money, err *llm.Error) {
	if err := a.allows(t.Worst); err != nil {
		return 0, err
	}
	held = t.Worst
	if t.mayExceed() && !a.trusted && a.budget.Limit() > 0 {
		held = t.exceeding
	}
	if !a.adopted && a.budget.exceeded() {
		a.budget.settle(a.free, 0, a.batched) // there may be no room for it any more
		a.free = 0
	}
	if a.trusted && a.inUse > 0 || !a.ensure(held) {
		return 0, a.noRoom(t)
	}
	a.free -= held
	a.inUse = a.inUse.Plus(held)
	return held, nil
}

// ensure sets more aside if the account has less than amount.
func (a *Account) ensure(amount llm.Money) bool {
	if more := amount - a.free; more > 0 {
		if !a.budget.tryReserve(more, a.batched) {
			return false
		}
		a.free = amount
	}
	return true
}

// GoLive makes room for an attempt at live prices.
func (a *Account) GoLive(worst llm.Money) *llm.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.allows(worst); err != nil {
		return err
	}
	if a.batched {
		a.goLive()
	}
	if !a.ensure(worst) {
		return a.noRoom(Terms{Worst: worst})
	}
	return nil
}

// goLive moves what was set aside for a batch to live calls. No line is in use.
func (a *Account) goLive() {
	a.budget.toLive(a.free)
	a.batched = false
}

// Await waits until there is room for the attempt that ended with ErrNoRoom, as a new call would: it
// first gives back what the account has left, so that two calls cannot wait for each other.
// No attempt may be in use.
func (a *Account) Await(ctx context.Context, req *llm.Request) error {
	a.Release(ctx)
	a.mu.Lock()
	lacks := a.lacks
	w := Want{Request: req, Sent: req, Batched: a.batched, Wave: a.wave, Waited: a.waited, lacks: &lacks}
	a.mu.Unlock()
	h, err := a.budget.reserve(ctx, nil, w)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free, a.trusted = a.free.Plus(h.amount), h.trusted
	return nil
}

// Release gives back what no attempt uses. The next attempt needs room again.
func (a *Account) Release(ctx context.Context) {
	a.mu.Lock()
	a.budget.release(a.free, a.batched, a.trusted)
	a.free, a.trusted = 0, false
	a.mu.Unlock()
	a.budget.exposeLess(ctx)
}

// End ends a live attempt that took held, and gives back what was not charged.
func (a *Account) End(held llm.Money, c Charge) {
	a.end(held, c)
	a.budget.endAttempt(held)
}

// EndLine is End for a line of a batch.
func (a *Account) EndLine(held llm.Money, c Charge) { a.end(held, c) }

func (a *Account) end(held llm.Money, c Charge) {
	cost := c.total()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cost = a.cost.Plus(cost)
	a.estimated = a.estimated || c.verdict == usageMissing && cost > 0
	a.inUse -= held
	spare := max(0, held-cost)
	a.free = a.free.Plus(spare)
	a.budget.settle(held-spare, cost, a.batched)
}

// Close gives back all that was not used. It returns what the call cost, and whether some of that
// is an estimate.
func (a *Account) Close(ctx context.Context) (cost llm.Money, estimated bool) {
	a.Release(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cost, a.estimated
}

// Want is a call that needs an account.
type Want struct {
	Request *llm.Request
	Sent    *llm.Request // Request as it is first sent
	Batched bool         // it goes over a batch API
	Wave    Wave         // nil: the call is not part of a wave
	// Waited gets the nanoseconds that the call waits for room, those of Await included. nil: nobody counts them.
	Waited *atomic.Int64

	lacks *Terms // what an attempt after the first needs; nil: it is the first
}

// Wave is the wave that a call is part of.
type Wave interface {
	// Adopt reports whether an earlier process left the call in a batch. From then on the call, which
	// can cost worst there, accounts for the risk that is returned.
	Adopt(worst llm.Money) (risk llm.Money, ok bool)
	// Aside notes that the call waits for others, until back is called.
	Aside() (back func())
}

func (w Want) aside() (back func()) {
	if w.Wave != nil {
		return w.Wave.Aside()
	}
	return func() {}
}

// terms returns those of the call's next attempt. For the first, what its fallbacks may cost if they exceed the
// limit counts too, so that an attempt at one of them need not wait.
func (w Want) terms(prices *Prices) Terms {
	if w.lacks != nil {
		return *w.lacks
	}
	t := prices.Lookup(w.Sent.Model).Terms(w.Sent, w.Batched)
	for _, model := range w.Sent.Fallbacks {
		if m := prices.Lookup(model); m.OK {
			t = t.beside(m.Terms(w.Sent, false))
		}
	}
	return t
}

// Open returns the account of a call, with what its first attempt can cost. It waits for room if
// there may be some later. A call in a batch that an earlier process left needs no room: that was
// reserved before.
func (b *Budget) Open(ctx context.Context, prices *Prices, w Want) (*Account, error) {
	req := w.Request
	m := prices.Lookup(req.Model)
	limited := b.Limit() > 0
	if !m.OK && limited {
		return nil, prices.Unknown(req.Model)
	}
	if limited || req.MaxCost > 0 {
		if err := prices.unpricedError(req); err != nil {
			return nil, err
		}
	}
	if w.Wave != nil {
		var worst llm.Money
		if limited {
			worst = m.Terms(w.Sent, true).Worst
		}
		if risk, ok := w.Wave.Adopt(worst); ok {
			free := max(risk, worst) // several of its attempts may be in the batch
			b.adoptRisk(risk, free)
			return &Account{budget: b, free: free, batched: true, adopted: true, wave: w.Wave, maxCost: req.MaxCost, waited: w.Waited}, nil
		}
	}
	h, err := b.reserve(ctx, prices, w)
	if err != nil {
		return nil, err
	}
	return &Account{budget: b, free: h.amount, trusted: h.trusted, unlimited: h.unlimited, batched: w.Batched, wave: w.Wave, maxCost: req.MaxCost, waited: w.Waited}, nil
}
