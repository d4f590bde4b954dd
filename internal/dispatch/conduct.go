package dispatch

import (
	"cmp"
	"sync/atomic"

	"parley/internal/dispatch/tokens"
	"parley/internal/price"
	"parley/llm"
)

// conduct is what is known of how a model keeps to the limit that requests set on its output.
// A server that never heard of the limit answers at any length, and the cost of that is not
// set aside.
type conduct struct {
	trusted bool // it is known to stop at the limit

	honest atomic.Int64 // answers within the limit, from the first on that ended there
	output atomic.Int64 // of the longest answer beyond what was asked for; 0: there was none
	input  atomic.Int64 // the most tokens it read beyond what was set aside for a prompt
}

// terms are what must be set aside for an attempt.
type terms struct {
	worst llm.Money // the most it can cost, if the limit on its output is kept
	wide  llm.Money // the most it can cost if not; 0 where that need not be reckoned with
	width int       // how many calls for which only worst is set aside may be in flight; 0: any number
}

// unproven says whether the attempt may cost more than worst, for all that is known.
func (t terms) unproven() bool { return t.wide > t.worst }

// beside returns t for a call that may come to be one of the terms u without waiting again.
func (t terms) beside(u terms) terms {
	t.wide = max(t.wide, u.wide)
	if t.width == 0 || u.width > 0 {
		t.width = cmp.Or(min(t.width, u.width), u.width, t.width)
	}
	return t
}

// terms returns those of an attempt at req.
func (e *entry) terms(req *llm.Request, batched bool) terms {
	t := terms{worst: worstOf(e.price, req, batched)}
	output, input := int(e.conduct.output.Load()), int(e.conduct.input.Load())
	longest := outputOf(e.price, req)
	if output > 0 {
		longest = max(longest, unlimited(e.price, output))
	}
	if output > 0 || input > 0 {
		prompt := min(readable(e.price, req), llm.AddTokens(promptOf(e.price, req), llm.MulTokens(input, 2)))
		t.worst = max(t.worst, e.price.Worst(prompt, longest, batched))
	}
	if t.worst == 0 {
		return t
	}
	if e.price.Context == 0 && refers(req) {
		most := e.price.Worst(readable(e.price, req), longest, batched)
		if batched { // its lines cannot take turns
			t.worst = max(t.worst, most)
		} else {
			t.wide, t.width = most, 1
		}
	}
	if !batched && output == 0 && !e.conduct.trusted {
		t.wide = max(t.wide, e.price.Worst(readable(e.price, req), max(longest, unlimited(e.price, 0)), false))
		t.width = e.conduct.width(t.width)
	}
	return t
}

// width is how many calls may be in flight at once that rest on trust, if they may be most
// otherwise; 0 is any number.
func (c *conduct) width(most int) int {
	now := max(1, 2*int(c.honest.Load()))
	if most > 0 {
		now = min(now, most)
	}
	return now
}

// unlimited is the most output tokens that are reckoned with from a server that keeps no
// limit, after an answer of seen tokens: all of the context, where that is known.
func unlimited(p price.Price, seen int) int {
	return max(2*seen, p.MaxOutput, cmp.Or(p.Context, MaxUnboundedOutput))
}

// observe learns from an attempt that was charged c, and from its answer, which is nil where
// it failed.
func (e *entry) observe(req *llm.Request, resp *llm.Response, c charge) {
	k := e.conduct
	over := c.used.Output-endTokens > outputOf(e.price, req)
	input := inputOf(c.used) - tokens.SizeOf(req).Bound()
	switch {
	case over:
		raise(&k.output, c.used.Output)
	case c.verdict == usageLonger:
		raise(&k.input, inputOf(c.used)-promptOf(e.price, req))
	case resp == nil || c.verdict != usageOK || k.trusted || input > 0:
	case k.honest.Load() > 0, resp.Finish == llm.FinishLength && resp.Usage.Output+endTokens >= req.MaxTokens && req.MaxTokens > 0:
		k.honest.Add(1)
	}
}

// raise sets n to at least v.
func raise(n *atomic.Int64, v int) {
	for {
		was := n.Load()
		if int64(v) <= was || n.CompareAndSwap(was, int64(v)) {
			return
		}
	}
}
