package budget

import "parley/llm"

// part is what a budget knows of the larger one that it is a part of. Its limit is what it was given of
// that, and begins at 0. A call that does not fit waits for more, until the larger budget has no more.
//
// The zero pointer is a budget that is no part.
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
}

// Stake returns what is at stake.
func (b *Budget) Stake() Stake {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.left()
	s := Stake{AtStake: b.limit.Minus(b.spent).Plus(b.unrecorded), Spare: max(0, left), Idle: b.idle(), Owed: b.atStake()}
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
