package engine

import (
	"cmp"
	"fmt"
	"slices"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// The budget of an episode. What a strand does may depend on replies and on nothing else, so
// whether it may go on must not depend on how far others have come by chance: each strand
// has a budget of its own. A fork divides what is left of it among its strands, in equal parts,
// and joins what they leave. A strand that cannot afford its next call waits until all strands
// beside it are done or wait too; then the first of these gets whatever is left. Where even that
// is not enough, the episode ends.
//
// A call is made when the most that it can cost is there; then what its tokens cost by the
// list is taken out. Discounts depend on who else asked what before, so they do not count.
// So an episode ends at the same call at any concurrency and pace, with and without a cache,
// and when it is played again. What was paid is no more than that, unless something was paid
// for in vain: then that counts.

// budget is what a strand may spend. Money is moved between the strands of an episode and never
// made: what is left to all of them and what was charged add up to what the episode began with.
type budget struct {
	left      llm.Money
	short     string    // why that is not enough
	blocked   []*strand // of its forks, those that cannot afford their next call
	exhausted bool      // more would not help
}

// divide gives the strands of a fork their parts.
func (b *budget) divide(forks []*strand) {
	for i, f := range forks {
		f.left = b.left / llm.Money(len(forks)-i)
		b.left -= f.left
	}
}

// block takes note that s cannot go on with what it has, and returns the strand that goes on
// instead: s itself, to its end, where there is nobody to get more from; nil, where others are to
// be waited for.
func (s *strand) block() *strand {
	if s.parent == nil {
		s.exhausted = true
		return s
	}
	s.parent.blocked = append(s.parent.blocked, s)
	return s.parent.arrive()
}

// arrive takes note that one more of the forks of s is done or blocked, and returns the strand that
// goes on. When all are done, that is s; when some are blocked, they get what is left, one after the
// other, as far as it is more than they had.
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

// refill gives all that s has to the first of its blocked forks, and returns the strand that goes on.
func (s *strand) refill() *strand {
	f := s.blocked[0]
	s.blocked, s.missing = s.blocked[1:], 1
	f.left, f.short, s.left = s.left, "", 0
	if len(f.blocked) > 0 {
		return f.refill()
	}
	return f
}

// budgets is what each episode may cost, and by which prices; 0 is no limit. A call is allowed no
// more than its strand has left, so no episode is charged more than each, whatever it is answered.
type budgets struct {
	each   llm.Money
	prices Prices
}

// afford says how many of the calls that a strand has still to make can be paid for at once,
// and sets how much each of them may cost: its first try, and an equal part of what is then left
// for others. It is 0 where not even the first can be.
func (b budgets) afford(s *strand) (n int, err error) {
	if b.each <= 0 {
		return len(s.pending), nil
	}
	asks, rest := 0, s.left
	for _, c := range s.pending {
		if c.req != nil {
			if c.maxCost, err = b.prices.Worst(c.req); err != nil {
				return 0, fmt.Errorf("engine: a budget for each episode: %w", err)
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
		if c.req != nil {
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
	if c.req.MaxTokens == 0 {
		hint = "; a limit on output tokens (max_tokens) would lower that"
	}
	return fmt.Sprintf("budget: an episode may cost %v: %v is left, and %s of %s in turn %s%d may cost up to %v%s", b.each, left, c.label, c.seat, c.at.Strand, c.at.Turn, c.maxCost, hint)
}

// refused says whether a call of the turn had to be given up for its cost, since what it was
// allowed was not enough for another try.
func (b budgets) refused(s *strand) bool {
	if b.each <= 0 || !slices.ContainsFunc(s.replies, func(reply world.Reply) bool { return reply.Failed == llm.KindBudget }) {
		return false
	}
	s.short, s.exhausted = fmt.Sprintf("budget: an episode may cost %v: what was left for a call did not do when it had to be made again", b.each), true
	return true
}

// charge takes a bill out of the budget of the strand that made the call.
func (b budgets) charge(s *strand, c *call, x bill) {
	if b.each > 0 && c.req != nil {
		s.left = s.left.Minus(max(x.cost, b.prices.List(c.req, llm.Usage{Input: x.input, Output: x.output})))
	}
}

// bill is what a reply took.
type bill struct {
	input, output int
	cost          llm.Money
}

// billOf is the bill of a reply. What a fork copied was paid for elsewhere.
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

// sent is the request as it is handed over: what it may cost is of no interest to readers.
func (c *call) sent() *llm.Request {
	if c.maxCost == 0 {
		return c.req
	}
	req := *c.req
	req.MaxCost = c.maxCost
	return &req
}
