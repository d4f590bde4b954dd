package dispatch

import (
	"cmp"
	"sync/atomic"

	"parley/internal/price"
	"parley/llm"
)

// conduct is what is known of how a model keeps to the limit that requests set on its output.
// A server that never heard of the limit answers at any length, and the cost of that is not
// set aside.
type conduct struct {
	proven atomic.Bool  // it was seen to stop at the limit, or is known to
	output atomic.Int64 // of the longest answer beyond what was asked for; 0: there was none
	input  atomic.Int64 // the most tokens it read beyond what was set aside for a prompt
}

// terms are what must be set aside for an attempt.
type terms struct {
	worst llm.Money // the most it can cost, if the limit on its output is kept
	wide  llm.Money // the most it can cost if not; 0 where that need not be reckoned with
}

// unproven says whether the attempt may cost more than worst, for all that is known.
func (t terms) unproven() bool { return t.wide > t.worst }

// terms returns those of an attempt at req.
func (e *entry) terms(req *llm.Request, batched bool) terms {
	t := terms{worst: worstOf(e.price, req, batched)}
	output, input := int(e.conduct.output.Load()), int(e.conduct.input.Load())
	switch {
	case output > 0 || input > 0:
		longest := outputOf(e.price, req)
		if output > 0 {
			longest = max(longest, unlimited(e.price, output))
		}
		t.worst = max(t.worst, e.price.Worst(sizeOf(req).bound()+2*input, longest, batched))
	case !batched && t.worst > 0 && !e.conduct.proven.Load():
		t.wide = e.price.Worst(sizeOf(req).bound(), max(outputOf(e.price, req), unlimited(e.price, 0)), false)
	}
	return t
}

// unlimited is the most output tokens that are reckoned with from a server that keeps no
// limit, after an answer of seen tokens: all of the context, where that is known.
func unlimited(p price.Price, seen int) int {
	return max(2*seen, p.MaxOutput, cmp.Or(p.Context, outputUnknown))
}

// observe learns from an answer.
func (e *entry) observe(req *llm.Request, resp *llm.Response, v verdict) {
	switch {
	case v == usageLonger:
		if u := resp.Usage; u.Output-endTokens > outputOf(e.price, req) {
			raise(&e.conduct.output, u.Output)
		} else {
			raise(&e.conduct.input, u.Input-sizeOf(req).bound())
		}
	case v == usageOK && !e.conduct.proven.Load() && resp.Finish == llm.FinishLength && resp.Usage.Output+endTokens >= req.MaxTokens && req.MaxTokens > 0:
		e.conduct.proven.Store(true)
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
