package budget

import (
	"cmp"
	"sync/atomic"

	"parley/internal/ask/dispatch/tokens"
	"parley/internal/ask/price"
	"parley/llm"
)

// conduct is what is known of how a model keeps to the limit that requests set on its output. A
// server that does not know the limit answers at any length, and the cost of that is not set aside.
type conduct struct {
	keepsLimit bool // known before it was asked

	kept   atomic.Int64 // answers within the limit, from the first on that ended there
	output atomic.Int64 // of the longest answer beyond the limit; 0: no answer exceeded it
	input  atomic.Int64 // the most tokens read beyond what was set aside for a prompt
}

// Terms are what must be set aside for an attempt.
type Terms struct {
	// Worst is the most that the attempt can cost if the limit on its output is kept.
	Worst llm.Money

	exceeding  llm.Money // the most if the limit is exceeded; 0 where that is not possible
	maxTrusted int       // how many calls for which only Worst is set aside may be in flight; 0: any number
}

// mayExceed reports whether the attempt may cost more than Worst.
func (t Terms) mayExceed() bool { return t.exceeding > t.Worst }

// Aside returns what is set aside where there is room for it, and whether the server is not known to keep the limit on output.
func (t Terms) Aside() (amount llm.Money, exceeds bool) {
	return max(t.Worst, t.exceeding), t.mayExceed()
}

// AtOnce returns for how many calls with these terms an amount of money has room at once: see Budget.room.
func (t Terms) AtOnce(money llm.Money) int {
	each, exceeds := t.Aside()
	if each == 0 || money <= 0 {
		return 0
	}
	n := money / each
	if more := (money - n*each) / max(1, t.Worst); exceeds {
		n += min(more, cmp.Or(llm.Money(t.maxTrusted), more))
	}
	return int(n)
}

// beside returns t for a call that may continue with the terms u without waiting again.
func (t Terms) beside(u Terms) Terms {
	t.exceeding = max(t.exceeding, u.exceeding)
	if t.maxTrusted == 0 || u.maxTrusted > 0 {
		t.maxTrusted = cmp.Or(min(t.maxTrusted, u.maxTrusted), u.maxTrusted, t.maxTrusted)
	}
	return t
}

// Terms returns the terms of an attempt at req.
func (m *Model) Terms(req *llm.Request, batched bool) Terms {
	t, p := Terms{Worst: Worst(m.Price, req, batched)}, Reserved(m.Price, req)
	output, input := int(m.conduct.output.Load()), int(m.conduct.input.Load())
	longest := MaxOutput(m.Price, req)
	if output > 0 {
		longest = max(longest, unlimited(m.Price, output))
	}
	if output > 0 || input > 0 {
		prompt := min(MaxInput(m.Price, req), llm.AddTokens(promptOf(m.Price, req), llm.MulTokens(input, 2)))
		t.Worst = max(t.Worst, p.Worst(prompt, longest, batched))
	}
	if t.Worst == 0 {
		return t
	}
	if m.Price.Context == 0 && (tokens.SizeOf(req).Unbounded || refers(req)) {
		limit := p.Worst(MaxInput(m.Price, req), longest, batched)
		if batched { // its lines cannot take turns
			t.Worst = max(t.Worst, limit)
		} else {
			t.exceeding, t.maxTrusted = limit, 1
		}
	}
	if !batched && output == 0 && !m.conduct.keepsLimit {
		t.exceeding = max(t.exceeding, p.Worst(MaxInput(m.Price, req), max(longest, unlimited(m.Price, 0)), false))
		trusted := max(1, 2*int(m.conduct.kept.Load()))
		t.maxTrusted = min(trusted, cmp.Or(t.maxTrusted, trusted))
	}
	return t
}

// unlimited returns the most output tokens to expect of a server that does not keep limits, after an
// answer of seen tokens: all of the context, where that is known.
func unlimited(p price.Price, seen int) int {
	return max(2*seen, p.MaxOutput, cmp.Or(p.Context, maxUnboundedOutput))
}

// Observe learns from an attempt that was charged c, and from its answer, which is nil where it
// failed.
func (m *Model) Observe(req *llm.Request, resp *llm.Response, c Charge) {
	k := m.conduct
	over := c.used.Output-endTokens > MaxOutput(m.Price, req)
	input := inputOf(c.used) - bound(m.Price, req)
	switch {
	case over:
		raise(&k.output, c.used.Output)
	case c.verdict == usageLonger:
		raise(&k.input, inputOf(c.used)-promptOf(m.Price, req))
	case resp == nil || c.verdict != usageOK || k.keepsLimit || input > 0:
	case k.kept.Load() > 0, resp.Finish == llm.FinishLength && resp.Usage.Output+endTokens >= req.MaxTokens && req.MaxTokens > 0:
		k.kept.Add(1)
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
