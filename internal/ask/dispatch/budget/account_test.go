package budget

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/ask/price"
	"parley/llm"
)

// books is a budget with calls whose attempts are drawn at random.
type books struct {
	*rapid.T
	budget *Budget
	prices *Prices
	open   []*Account
	paid   llm.Money // by all calls
}

// TestAccountsAddUp makes attempts in any order, several of a call at once, with calls that begin
// while others are in flight, find no room, or change from a batch to a live price. At any time the
// budget has set aside exactly what the open calls hold, and a call that has ended holds nothing.
func TestAccountsAddUp(t *testing.T) {
	t.Parallel()
	table, err := price.Read(strings.NewReader(`{"lab/any": {"input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6, "max_output_tokens": 1000, "litellm_provider": "lab"}}`), "prices.json")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel() // so that a call for which there is no room does not wait for another in the same goroutine
	rapid.Check(t, func(r *rapid.T) {
		keeps := rapid.Bool().Draw(r, "keeps limits")
		l := &books{
			T:      r,
			budget: New(llm.Money(rapid.SampledFrom([]int64{0, 1, 1e6, 5e6, 1e12}).Draw(r, "budget")), 0),
			prices: NewPrices(table, func(string) bool { return keeps }),
		}
		for range rapid.IntRange(1, 4).Draw(r, "calls") {
			l.call(gone)
		}
	})
}

// call makes one call and checks what it leaves.
func (l *books) call(ctx context.Context) {
	before, paid := len(l.open), l.paid
	req := asked(50)
	req.MaxCost = llm.Money(rapid.SampledFrom([]int64{0, 0, 1e6}).Draw(l.T, "max cost"))
	a, err := l.budget.Open(ctx, l.prices, Want{Request: req, Sent: req, Batched: rapid.Bool().Draw(l.T, "batched")})
	if err != nil {
		l.check()
		return
	}
	l.open = append(l.open, a)
	l.attempts(ctx, a)
	l.open = l.open[:before]
	cost, _ := a.Close(ctx)
	l.check()
	if a.free != 0 || a.inUse != 0 || cost != a.cost || a.cost > l.paid-paid {
		l.Errorf("after the call: %v free, %v in use, cost %v of %v", a.free, a.inUse, a.cost, l.paid-paid)
	}
}

// attempts makes attempts of a call.
func (l *books) attempts(ctx context.Context, a *Account) {
	var held []llm.Money
	end := func(i int) {
		cost := llm.Money(rapid.SampledFrom([]int64{0, 1, 1e5, 3e6}).Draw(l.T, "cost"))
		a.End(held[i], Charge{Cost: cost})
		l.paid += cost
		held = slices.Delete(held, i, i+1)
	}
	amount := func() llm.Money { return llm.Money(rapid.SampledFrom([]int64{0, 1e3, 7e5, 2e6}).Draw(l.T, "worst")) }
	for range rapid.IntRange(0, 8).Draw(l.T, "steps") {
		switch step := rapid.IntRange(0, 3).Draw(l.T, "step"); {
		case step == 0:
			worst := amount()
			if took, err := a.Begin(ctx, Terms{Worst: worst, exceeding: worst * llm.Money(rapid.IntRange(0, 2).Draw(l.T, "exceeding"))}); err == nil {
				held = append(held, took)
			}
		case step == 1 && len(held) > 0:
			end(rapid.IntRange(0, len(held)-1).Draw(l.T, "which"))
		case step == 2 && len(held) == 0: // as enqueue does, between attempts
			a.GoLive(amount())
		case step == 3 && len(l.open) < 4:
			l.call(ctx)
		}
		l.check()
	}
	for len(held) > 0 {
		end(0)
	}
}

// check compares the budget with what the open calls hold.
func (l *books) check() {
	var reserved, batched llm.Money
	trusted := 0
	for _, a := range l.open {
		if a.batched {
			batched += a.free + a.inUse
		} else {
			reserved += a.free + a.inUse
		}
		if a.trusted {
			trusted++
		}
	}
	b := l.budget
	if b.reserved != reserved || b.batched != batched || b.spent != l.paid || b.trusted != trusted || b.queue.Len()+b.crowd.Len() > 0 {
		l.Fatalf("the budget has %v and %v set aside, %v spent, %d trusted; %d calls hold %v and %v, cost %v, %d trusted",
			b.reserved, b.batched, b.spent, b.trusted, len(l.open), reserved, batched, l.paid, trusted)
	}
}

// TestSecondAttemptThatMayExceed: an attempt at a server that may exceed the limit needs all that
// it may cost, or must be the only one.
func TestSecondAttemptThatMayExceed(t *testing.T) {
	t.Parallel()
	budget := New(15, 0)
	w := Terms{Worst: 1, exceeding: 10, maxTrusted: 1}
	if h, ok, _ := budget.room(w); !ok || h != (hold{amount: 10}) {
		t.Fatal(h, ok)
	}
	budget.setAside(hold{amount: 10}, false)
	a := &Account{budget: budget, free: 10}
	if held, err := a.Begin(t.Context(), w); held != 10 || err != nil {
		t.Error("the first attempt:", held, err)
	}
	if held, err := a.Begin(t.Context(), w); !errors.Is(err, ErrNoRoom) {
		t.Error("a second attempt beside it:", held)
	}
	h, ok, _ := budget.room(w)
	if !ok || h != (hold{amount: 1, trusted: true}) {
		t.Fatal(h, ok)
	}
	budget.setAside(h, false)
	alone := &Account{budget: budget, free: 1, trusted: true}
	if held, err := alone.Begin(t.Context(), w); held != 1 || err != nil {
		t.Error("the attempt of a call that is alone:", held, err)
	}
	if held, err := alone.Begin(t.Context(), w); !errors.Is(err, ErrNoRoom) {
		t.Error("another beside it:", held)
	}
	if _, ok, crowded := budget.room(w); ok || !crowded {
		t.Error("a third call is let in")
	}
	alone.End(1, Charge{Cost: 1})
	alone.Close(t.Context())
	a.End(10, Charge{Cost: 10})
	a.Close(t.Context())
	if spent, reserved := budget.Spent(); spent != 11 || reserved != 0 || budget.trusted != 0 {
		t.Error(spent, reserved, budget.trusted)
	}
}
