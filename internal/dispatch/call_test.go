package dispatch

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/llm"
)

// books is a budget layer over calls whose attempts are drawn at random, and what must be in the
// books at any time.
type books struct {
	*rapid.T
	top  budget
	open []*account
	paid llm.Money // by all calls
}

// TestAccountsAddUp makes attempts in any order, several of a call at once, with calls that begin
// while others are in flight, find no room, change from a batch to a live price, or fail.
// At any time the budget has set aside exactly what the open calls hold, and a call that has ended
// holds nothing: whatever its way out, its reservation is settled once.
func TestAccountsAddUp(t *testing.T) {
	t.Parallel()
	table := prices(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel() // so that a call for which there is no room does not wait for another in the same goroutine
	rapid.Check(t, func(r *rapid.T) {
		keeps := rapid.Bool().Draw(r, "keeps limits")
		l := &books{T: r, top: budget{
			budget:  NewBudget(llm.Money(rapid.SampledFrom([]int64{0, 1, 1e6, 5e6, 1e12}).Draw(r, "budget")), 0),
			prices:  newPriceList(table),
			batched: func(*call) bool { return rapid.Bool().Draw(r, "batched") },
			asked:   func(req *llm.Request) *llm.Request { return req },
		}}
		l.top.prices.keeps = func(string) bool { return keeps }
		l.top.next = l
		for range rapid.IntRange(1, 4).Draw(r, "calls") {
			l.call(gone)
		}
	})
}

// call makes one call and checks what it leaves.
func (l *books) call(ctx context.Context) {
	before, paid := len(l.open), l.paid
	c := &call{req: asked(1, 50, 50)[0]}
	c.req.MaxCost = llm.Money(rapid.SampledFrom([]int64{0, 0, 1e6}).Draw(l.T, "most"))
	resp, err := l.top.ask(ctx, c)
	switch {
	case c.account == nil:
		if err == nil {
			l.Error("answered without an account")
		}
		l.check()
		return
	case len(l.open) != before+1:
		l.Fatalf("%d calls are open inside of %d", len(l.open), before)
	}
	l.open = l.open[:before]
	l.check()
	var trail llm.Metadata
	if err != nil {
		trail = llm.AsError(err).Metadata
	} else {
		trail = resp.Metadata
	}
	if a := c.account; a.free != 0 || a.out != 0 || trail.Cost != a.cost || a.cost > l.paid-paid {
		l.Errorf("after the call: %v free, %v out, cost %v of %v, trail %v", a.free, a.out, a.cost, l.paid-paid, trail.Cost)
	}
}

// ask is the layer below budget: it draws what attempts do.
func (l *books) ask(ctx context.Context, c *call) (*llm.Response, error) {
	a := c.account
	l.open = append(l.open, a)
	var held []llm.Money
	end := func(i int) {
		cost := llm.Money(rapid.SampledFrom([]int64{0, 1, 1e5, 3e6}).Draw(l.T, "cost"))
		a.end(held[i], charge{cost: cost})
		l.paid += cost
		held = slices.Delete(held, i, i+1)
	}
	amount := func() llm.Money { return llm.Money(rapid.SampledFrom([]int64{0, 1e3, 7e5, 2e6}).Draw(l.T, "worst")) }
	for range rapid.IntRange(0, 8).Draw(l.T, "steps") {
		switch step := rapid.IntRange(0, 3).Draw(l.T, "step"); {
		case step == 0:
			worst := amount()
			if took, ok := a.begin(terms{worst: worst, wide: worst * llm.Money(rapid.IntRange(0, 2).Draw(l.T, "wide"))}); ok {
				held = append(held, took)
			}
		case step == 1 && len(held) > 0:
			end(rapid.IntRange(0, len(held)-1).Draw(l.T, "which"))
		case step == 2 && len(held) == 0: // as enqueue does, between attempts
			a.goLive(amount())
		case step == 3 && len(l.open) < 4:
			l.call(ctx)
		}
		l.check()
	}
	for len(held) > 0 {
		end(0)
	}
	if rapid.Bool().Draw(l.T, "fails") {
		return nil, errors.New("failed")
	}
	return &llm.Response{}, nil
}

// check compares the books with what the open calls hold.
func (l *books) check() {
	var reserved, batched llm.Money
	alone := 0
	for _, a := range l.open {
		if a.batched {
			batched += a.free + a.out
		} else {
			reserved += a.free + a.out
		}
		if a.alone {
			alone++
		}
	}
	b := l.top.budget
	if b.reserved != reserved || b.batched != batched || b.spent != l.paid || b.alone != alone || b.queue.Len()+b.crowd.Len() > 0 {
		l.Fatalf("the budget has %v and %v set aside, %v spent, %d alone; %d calls hold %v and %v, cost %v, %d alone",
			b.reserved, b.batched, b.spent, b.alone, len(l.open), reserved, batched, l.paid, alone)
	}
}
