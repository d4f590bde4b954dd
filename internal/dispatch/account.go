package dispatch

import (
	"fmt"
	"sync"

	"parley/llm"
)

// account is one call's share of a budget. Several attempts of the call may draw on it
// at once.
type account struct {
	budget  *Budget
	mu      sync.Mutex
	free    llm.Money // set aside and not in use by an attempt
	batched bool      // it was set aside for a batch
	alone   bool      // it may make one attempt at a time that can cost more than is set aside
	cost    llm.Money
	guess   bool // an attempt was charged by an estimate

	most  llm.Money // that the call may cost; 0: no limit of its own
	out   llm.Money // in use by attempts
	short bool      // most has kept an attempt from being made
}

// bounded says whether what attempts can cost has to be known.
func (a *account) bounded() bool { return a.budget.Limit() > 0 || a.most > 0 }

// allows says whether an attempt stays within what the call itself may cost.
func (a *account) allows(worst llm.Money) bool {
	if a.most > 0 && worst > a.most.Minus(a.cost).Minus(a.out) {
		a.short = true
		return false
	}
	return true
}

// noRoom is why an attempt was not begun.
func (a *account) noRoom() *llm.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.short {
		return &llm.Error{Kind: llm.KindBudget, Message: fmt.Sprintf("another attempt might cost more than the %v that this call may", a.most), Err: llm.ErrMaxCost}
	}
	return &llm.Error{Kind: llm.KindBudget, Message: "the budget has no room for another attempt"}
}

// begin takes for an attempt what t says, setting more aside if the account has too little.
// It returns what it took.
func (a *account) begin(t terms) (held llm.Money, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.allows(t.worst) {
		return 0, false
	}
	held = t.worst
	if t.unproven() && a.budget.Limit() > 0 && !a.alone {
		held = t.wide
	}
	if a.alone && a.out > 0 || !a.take(held) {
		return 0, false
	}
	a.out = a.out.Plus(held)
	return held, true
}

// take takes amount from what is set aside, setting more aside if that is too little.
func (a *account) take(amount llm.Money) bool {
	if more := amount - a.free; more > 0 {
		if !a.budget.tryReserve(more, a.batched) {
			return false
		}
		a.free = amount
	}
	a.free -= amount
	return true
}

// goLive makes room for an attempt at live prices, if there is some.
func (a *account) goLive(worst llm.Money) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.allows(worst) {
		return false
	}
	if a.batched {
		if a.budget.toLive(a.free) != nil {
			return false
		}
		a.batched = false
	}
	if more := worst - a.free; more > 0 {
		if !a.budget.tryReserve(more, false) {
			return false
		}
		a.free = worst
	}
	return true
}

// end returns what of held, which an attempt took, was not charged.
func (a *account) end(held llm.Money, c charge) {
	cost := c.total()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cost = a.cost.Plus(cost)
	a.guess = a.guess || c.verdict == usageMissing && cost > 0
	a.out -= held
	spare := max(0, held-cost)
	a.free = a.free.Plus(spare)
	a.budget.settle(held-spare, cost, a.batched)
}

// close gives back all that was not used. It returns what the call cost, and whether some of
// that is an estimate.
func (a *account) close() (cost llm.Money, estimated bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.budget.close(a.free, a.batched, a.alone)
	a.free, a.alone = 0, false
	return a.cost, a.guess
}
