package budget

import (
	"context"

	"parley/llm"
)

// part is what a budget knows of the larger one that it is a part of. Its limit is what it was given of
// that, and begins at 0. A call that does not fit waits for more, until the larger budget has no more.
//
// The zero pointer is a budget that is no part.
type part struct {
	whole     llm.Money
	short     func()
	exhausted bool          // the larger budget has no more
	accounts  int           // open
	blocked   int           // of these, those that wait for more
	largest   llm.Money     // the most that one of them waits for
	news      chan struct{} // closed when the limit or exhausted changes
}

// NewPart returns a budget that is a part of one with a limit of whole, and has nothing yet. short is called
// when a call needs more than is left; it must return at once and not use the budget.
//
// Recorded must be called for every call, once the larger budget counts it as spent.
func NewPart(whole llm.Money, short func()) *Budget {
	b := New(0, 0)
	b.part = &part{whole: whole, short: short, news: make(chan struct{})}
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

// opened counts accounts.
func (p *part) opened(by int) {
	if p != nil {
		p.accounts += by
	}
}

// changed wakes the accounts that wait for more.
func (p *part) changed() {
	if p != nil {
		close(p.news)
		p.news = make(chan struct{})
	}
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
}

// Stake returns what is at stake.
func (b *Budget) Stake() Stake {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.left()
	s := Stake{AtStake: b.limit.Minus(b.spent).Plus(b.unrecorded), Spare: max(0, left)}
	s.Idle = b.part.accounts <= b.part.blocked
	need := llm.Money(0)
	if b.part.blocked > 0 {
		need = b.part.largest
	}
	if b.queue.Len() > 0 {
		d := b.queue.Head()
		t := d.terms(d.prices)
		need = max(need, t.Worst, t.exceeding)
	}
	s.Short = max(0, need.Minus(left))
	return s
}

// Grow adds to what the part was given.
func (b *Budget) Grow(more llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if more > 0 {
		b.limit = b.limit.Plus(more)
		b.part.exhausted = false
		b.part.changed()
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
	b.part.changed()
	b.pump()
}

// More waits until an attempt for which there was no room may be begun again. It returns false if there
// will be no room for it, or the context ends. Only a part can get more.
func (a *Account) More(ctx context.Context, t Terms) bool {
	a.mu.Lock()
	need := max(0, max(t.Worst, t.exceeding)-a.free)
	over := a.over || a.trusted && a.inUse > 0
	a.mu.Unlock()
	return !over && a.budget.await(ctx, need)
}

// await waits until more was given, or nothing will be.
func (b *Budget) await(ctx context.Context, need llm.Money) bool {
	b.mu.Lock()
	p := b.part
	switch {
	case p == nil || b.drained != nil || need == 0:
		b.mu.Unlock()
		return false
	case b.left() >= need: // it was given meanwhile
		b.mu.Unlock()
		return true
	case !p.more():
		b.mu.Unlock()
		return false
	}
	p.blocked++
	p.largest = max(p.largest, need)
	news := p.news
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if p.blocked--; p.blocked == 0 {
			p.largest = 0
		}
	}()
	select {
	case <-news:
		return true
	case <-ctx.Done():
		return false
	}
}
