package engine

import (
	"cmp"
	"fmt"
	"slices"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// The budget of an episode. What a strand does may depend on replies only, so whether it continues
// must not depend on how fast other strands are: each strand has its own budget. A fork divides
// what is left among its strands in equal parts, and a join adds up what they leave. A strand that
// cannot afford its next call waits until all strands beside it are done or wait too. Then the
// first of these gets all that is left. If even that is not enough, the episode ends.
//
// A call is made when the strand has the most that the call can cost. Then the list price of its
// tokens is charged. Discounts do not count, since they depend on earlier calls of others. So an
// episode ends at the same call at any concurrency and pace, with and without a cache, and when it
// is replayed. The real cost is not higher, unless failed attempts were paid for: then that counts.

// budget is what a strand may spend. Money moves between the strands of an episode and is never
// created: what all of them have left and what was charged add up to the episode's budget.
type budget struct {
	left      llm.Money
	short     string    // why that is not enough
	blocked   []*strand // forks that cannot afford their next call
	exhausted bool      // more would not help
}

// divide divides the budget among the strands of a fork.
func (b *budget) divide(forks []*strand) {
	for i, f := range forks {
		f.left = b.left / llm.Money(len(forks)-i)
		b.left -= f.left
	}
}

// block notes that s cannot afford its next call, and returns the strand that continues: s itself,
// to end the episode, if it has no parent to get more from; nil if other strands must finish first.
func (s *strand) block() *strand {
	if s.parent == nil {
		s.exhausted = true
		return s
	}
	s.parent.blocked = append(s.parent.blocked, s)
	return s.parent.arrive()
}

// arrive notes that one more fork of s is done or blocked, and returns the strand that continues.
// When all are done, that is s. If some are blocked, they get what is left, one after the other, as
// long as it is more than they had.
func (s *strand) arrive() *strand {
	if s.missing--; s.missing > 0 {
		return nil
	}
	if len(s.blocked) == 0 {
		return s
	}
	slices.SortFunc(s.blocked, func(a, b *strand) int { return cmp.Compare(a.number, b.number) })
	first := s.blocked[0]
	had := first.left
	for _, f := range s.blocked {
		s.left += f.left
		f.left = 0
	}
	if i := slices.IndexFunc(s.blocked, func(f *strand) bool { return f.exhausted }); i >= 0 {
		s.short, s.exhausted = s.blocked[i].short, true
	} else if s.left > had {
		return s.refill()
	} else {
		s.short = first.short
	}
	return s.block()
}

// refill gives all that s has to the first of its blocked forks, and returns the strand that
// continues.
func (s *strand) refill() *strand {
	f := s.blocked[0]
	s.blocked, s.missing = s.blocked[1:], 1
	f.left, f.short, s.left = s.left, "", 0
	if len(f.blocked) > 0 {
		return f.refill()
	}
	return f
}

// budgets is the limit for each episode, and the prices it is counted in; 0 is no limit. A call may
// cost no more than its strand has left, so no episode is charged more than the limit.
type budgets struct {
	each   llm.Money
	prices Prices
}

// afford returns how many of the pending calls of a strand can be paid for at once, and sets the
// limit of each: the cost of its first attempt, and an equal share of the rest for further
// attempts. It returns 0 if not even the first call can be paid for.
func (b budgets) afford(s *strand) (n int, err error) {
	if b.each <= 0 {
		return len(s.pending), nil
	}
	asks, rest := 0, s.left
	for _, c := range s.pending {
		if c.inner != nil { // its calls share what is left, and are refused when it is used up
			asks++
		} else if req := c.billed(); req != nil {
			if c.maxCost, err = b.prices.Worst(req); err != nil {
				return 0, fmt.Errorf("a budget for each episode: %w", err)
			}
			if c.maxCost > rest {
				break
			}
			rest -= c.maxCost
			asks++
		}
		n++
	}
	for _, c := range s.pending[:n] {
		if c.inner != nil || c.billed() != nil {
			c.maxCost += rest / llm.Money(asks)
		}
	}
	if n == 0 {
		s.short = b.tooExpensive(s.pending[0], s.left)
	}
	return n, nil
}

func (b budgets) tooExpensive(c *call, left llm.Money) string {
	hint := ""
	if c.billed().MaxTokens == 0 {
		hint = ": it has no max_tokens; set agents." + c.agent + ".max_tokens"
	}
	return fmt.Sprintf("budget: an episode may cost %v: %v is left, and %s of %s in turn %s%d sets aside %v%s", b.each, left, c.label, c.seat, c.at.Strand, c.at.Turn, c.maxCost, hint)
}

// refused reports whether a call of the turn was given up because its limit was too low for another
// attempt.
func (b budgets) refused(s *strand) bool {
	if b.each <= 0 || !slices.ContainsFunc(s.replies, func(reply world.Reply) bool { return reply.Failed == llm.KindBudget }) {
		return false
	}
	s.short, s.exhausted = fmt.Sprintf("budget: an episode may cost %v: not enough was left for another attempt at a call", b.each), true
	return true
}

// charge charges a bill to the strand that made the call.
func (b budgets) charge(s *strand, c *call, x bill) {
	if b.each > 0 && c.inner != nil {
		s.left = s.left.Minus(b.innerCost(c.inner))
		return
	}
	if req := c.billed(); b.each > 0 && req != nil {
		s.left = s.left.Minus(max(x.cost, b.prices.List(req, llm.Usage{Input: x.input, Output: x.output})))
	}
}

// bill is the cost of a reply.
type bill struct {
	input, output int
	cost          llm.Money
}

// billOf returns the bill of a reply. A reply that a fork copied was paid for elsewhere.
func billOf(e *journal.Replied) (b bill) {
	switch {
	case e.Copied:
	case e.Error != nil:
		b = bill{e.Error.Usage.Input, e.Error.Usage.Output, e.Cost()}
	case e.Response != nil:
		b = bill{e.Response.Usage.Input, e.Response.Usage.Output, e.Cost()}
	}
	return b
}
