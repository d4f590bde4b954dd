package budget

import (
	"errors"
	"fmt"
	"sync"

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
	trusted   bool      // it may make one attempt at a time that can cost more than is set aside
	unlimited bool      // nothing was set aside for it, since there was no limit
	cost      llm.Money
	estimated bool      // an attempt was charged by an estimate
	maxCost   llm.Money // of the call; 0: no limit of its own
	over      bool      // maxCost has prevented an attempt
}

// Bounded reports whether the cost of attempts must be known in advance.
func (a *Account) Bounded() bool { return a.budget.Limit() > 0 || a.maxCost > 0 }

// ErrReopen is wrapped by the error of an attempt that was not begun because the budget has got a
// limit since the account was opened. The call needs a new account.
var ErrReopen = errors.New("the budget has a limit now")

// outdated reports whether the call needs a new account: see ErrReopen.
func (a *Account) outdated() bool { return a.unlimited && a.budget.Limit() > 0 }

// allows reports whether an attempt stays within the call's own limit.
func (a *Account) allows(worst llm.Money) bool {
	if a.maxCost > 0 && worst > a.maxCost.Minus(a.cost).Minus(a.inUse) {
		a.over = true
		return false
	}
	return true
}

// NoRoom returns why an attempt was not begun.
func (a *Account) NoRoom() *llm.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return &llm.Error{Kind: llm.KindBudget, Message: fmt.Sprintf("another attempt might cost more than the %v that this call may cost", a.maxCost), Err: llm.ErrMaxCost}
	}
	if a.outdated() {
		return &llm.Error{Kind: llm.KindCanceled, Message: ErrReopen.Error(), Err: ErrReopen}
	}
	return &llm.Error{Kind: llm.KindBudget, Message: "the budget has no room for another attempt"}
}

// Begin takes what t demands for an attempt. It sets more aside if the account has too little, and
// returns false if there is no room for that.
func (a *Account) Begin(t Terms) (held llm.Money, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.allows(t.Worst) || a.outdated() {
		return 0, false
	}
	held = t.Worst
	if t.mayExceed() && a.budget.Limit() > 0 && !a.trusted {
		held = t.exceeding
	}
	if !a.adopted && a.budget.exceeded() {
		a.budget.settle(a.free, 0, a.batched) // there may be no room for it any more
		a.free = 0
	}
	if a.trusted && a.inUse > 0 || !a.ensure(held) {
		return 0, false
	}
	a.free -= held
	a.inUse = a.inUse.Plus(held)
	return held, true
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

// GoLive makes room for an attempt at live prices. It returns false if the budget has no room.
func (a *Account) GoLive(worst llm.Money) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.allows(worst) || a.outdated() {
		return false
	}
	if a.batched {
		if a.budget.toLive(a.free) != nil {
			return false
		}
		a.batched = false
	}
	return a.ensure(worst)
}

// End ends an attempt that took held, and gives back what was not charged.
func (a *Account) End(held llm.Money, c Charge) {
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
func (a *Account) Close() (cost llm.Money, estimated bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.budget.close(a.free, a.batched, a.trusted)
	a.free, a.trusted = 0, false
	return a.cost, a.estimated
}
