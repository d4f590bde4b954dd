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
// has a purse of its own. A fork divides what is in it among its strands, in equal parts,
// and joins what they leave. A strand whose part does not do waits until all beside it are
// done or wait too; then the first of these gets whatever is left. Where even that does not
// do, the episode ends.
//
// A call is made when the most that it can cost is there; then what its tokens cost by the
// list is taken out. Discounts depend on who else asked what before, so they do not count.
// So an episode ends at the same call at any concurrency and pace, with and without a cache,
// and when it is played again. What was paid is no more than that, unless something was paid
// for in vain: then that counts.

// purse is what a strand may spend.
type purse struct {
	left   llm.Money
	short  string    // why that does not do
	shorts []*strand // of its forks, those it does not do for
	ruined bool      // more would not help
}

// divide gives the strands of a fork their parts.
func (p *purse) divide(forks []*strand) {
	for i, f := range forks {
		f.left = p.left / llm.Money(len(forks)-i)
		p.left -= f.left
	}
}

// afford says how many of the calls that a strand has still to make can be paid for at once,
// and how much each of them may cost: its first try, and an equal part of what is then left
// for others. It is 0 where not even the first can be.
func (r *run) afford(s *strand) (n int, err error) {
	if r.EpisodeBudget <= 0 {
		return len(s.pending), nil
	}
	asks, rest := 0, s.left
	for _, c := range s.pending {
		if c.req != nil {
			if c.most, err = r.Prices.Worst(c.req); err != nil {
				return 0, fmt.Errorf("engine: a budget for each episode: %w", err)
			}
			if c.most > rest {
				break
			}
			rest -= c.most
			asks++
		}
		n++
	}
	for _, c := range s.pending[:n] {
		if c.req != nil {
			c.most += rest / llm.Money(asks)
		}
	}
	if n == 0 {
		s.short = r.tooDear(s.pending[0], s.left)
	}
	return n, nil
}

func (r *run) tooDear(c *call, left llm.Money) string {
	hint := ""
	if c.req.MaxTokens == 0 {
		hint = "; a limit on output tokens (max_tokens) would lower that"
	}
	return fmt.Sprintf("budget: an episode may cost %v: %v is left, and %s of %s in turn %s%d may cost up to %v%s", r.EpisodeBudget, left, c.label, c.seat, c.at.Strand, c.at.Turn, c.most, hint)
}

// refused says whether a call of the turn had to be given up for its cost, since what it was
// allowed did not do for another try.
func (r *run) refused(s *strand) bool {
	if r.EpisodeBudget <= 0 || !slices.ContainsFunc(s.replies, func(reply world.Reply) bool { return reply.Failed == llm.KindBudget }) {
		return false
	}
	s.short, s.ruined = fmt.Sprintf("budget: an episode may cost %v: what was left for a call did not do when it had to be made again", r.EpisodeBudget), true
	return true
}

// starve takes note of a strand that cannot go on with what it has.
func (r *run) starve(s *strand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starved(s)
	r.wake.Broadcast()
}

func (r *run) starved(s *strand) {
	if s.parent == nil {
		s.ruined = true
		r.ready.push(s, s.episode.number) // to its end
		return
	}
	s.parent.shorts = append(s.parent.shorts, s)
	r.arrived(s.parent)
}

// arrived notes that one more of the forks of s is done, or short. When all are, s goes on,
// or those that are short are fed, one after the other, as far as there is more than they had.
func (r *run) arrived(s *strand) {
	if s.missing--; s.missing > 0 {
		return
	}
	if len(s.shorts) == 0 {
		r.ready.push(s, s.episode.number)
		return
	}
	slices.SortFunc(s.shorts, func(a, b *strand) int { return cmp.Compare(a.number, b.number) })
	first := s.shorts[0]
	had := first.left
	for _, f := range s.shorts {
		s.left += f.left
		f.left = 0
	}
	if i := slices.IndexFunc(s.shorts, func(f *strand) bool { return f.ruined }); i >= 0 {
		s.short, s.ruined = s.shorts[i].short, true
	} else if s.left > had {
		r.feed(s)
		return
	} else {
		s.short = first.short
	}
	r.starved(s)
}

// feed gives all that s has to the first of its forks that are short.
func (r *run) feed(s *strand) {
	f := s.shorts[0]
	s.shorts, s.missing = s.shorts[1:], 1
	f.left, f.short, s.left = s.left, "", 0
	if len(f.shorts) > 0 {
		r.feed(f)
		return
	}
	r.ready.push(f, f.episode.number)
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

// charge takes a bill out of the purse of the strand that made the call.
func (r *run) charge(s *strand, c *call, b bill) {
	if r.EpisodeBudget > 0 && c.req != nil {
		s.left = s.left.Minus(max(b.cost, r.Prices.List(c.req, llm.Usage{Input: b.input, Output: b.output})))
	}
}

// sent is the request as it is handed over: what it may cost is of no interest to readers.
func (c *call) sent() *llm.Request {
	if c.most == 0 {
		return c.req
	}
	req := *c.req
	req.Most = c.most
	return &req
}
