package budget

import (
	"cmp"
	"fmt"

	"parley/internal/ask/dispatch/tokens"
	"parley/internal/ask/price"
	"parley/llm"
)

// verdict is how far the usage that a server reports can be believed.
type verdict int

const (
	usageOK         verdict = iota
	usageLonger             // an answer longer than was asked for, or a prompt longer than was sent: charged as reported
	usageMissing            // no usage of the prompt or of the answer: the most that the attempt can cost is charged
	usageImpossible         // more than the model can have read or produced: the answer is malformed
)

// Charge is what an attempt is charged.
type Charge struct {
	Cost      llm.Money // by the usage, or an estimate that is not below it
	Uncertain llm.Money // that may have been billed as well
	Saved     llm.Money // by the provider's prompt cache; negative where writing to it cost more
	verdict   verdict
	used      llm.Usage // what was charged for, as far as it is known
}

func (c Charge) total() llm.Money { return c.Cost.Plus(c.Uncertain) }

// Estimated reports whether Cost is an estimate, since the server reported no usage.
func (c Charge) Estimated() bool { return c.verdict == usageMissing && c.Cost > 0 }

// Attempt is one attempt at a request, as it is charged.
type Attempt struct {
	Request *llm.Request
	Price   price.Price
	Terms   // what had to be set aside for it; zero where nothing had to be
	Batched bool
}

// Settle decides what an attempt is charged that ended with resp or e. It is the only place that
// does. The error it returns is e, or that of an answer with an impossible usage, or nil.
func (a Attempt) Settle(resp *llm.Response, e *llm.Error) (Charge, *llm.Error) {
	if e != nil {
		return a.failed(e)
	}
	u := CountAudio(a.Request, resp.Usage)
	expected := a.cost(u)
	v, cost := a.judge(resp.Usage, resp), a.servedPrice(resp).Cost(u, a.Batched)
	switch {
	case v == usageImpossible:
		return a.unknown(llm.Usage{}, visibleBytes(resp), v), a.impossible(resp)
	case v == usageMissing:
		used := resp.Usage
		used.Output = max(used.Output, visibleBytes(resp)/bytesPerToken)
		return Charge{Cost: max(a.estimate(resp), a.servedPrice(resp).Cost(CountAudio(a.Request, used), a.Batched)), verdict: v, used: used}, nil
	case a.Worst > 0 && expected > a.Worst:
		v = usageLonger
	}
	return Charge{Cost: cost, Saved: a.servedPrice(resp).Saved(u, a.Batched), verdict: v, used: resp.Usage}, nil
}

// CountAudio returns u with all input counted as sound, if req has recordings and the server does not say how much of the input they
// are. It is for prices.
func CountAudio(req *llm.Request, u llm.Usage) llm.Usage {
	if u.Audio == 0 && price.HasAudio(req) {
		u.Audio = chargedInput(u)
	}
	return u
}

// cost returns what u costs in the tier that was asked for.
func (a Attempt) cost(u llm.Usage) llm.Money {
	return tierPrice(a.Price, a.Request).Cost(CountAudio(a.Request, u), a.Batched)
}

// servedPrice returns the price in the service tier of an answer: the one that the server names, or the
// one that was asked for if it names none and that costs more.
func (a Attempt) servedPrice(resp *llm.Response) price.Price {
	if resp.Tier == "" {
		return tierPrice(a.Price, a.Request)
	}
	return a.Price.In(resp.Tier)
}

// failed is Settle for an attempt that ended with e.
func (a Attempt) failed(e *llm.Error) (Charge, *llm.Error) {
	if a.judge(e.Usage, nil) == usageImpossible {
		c := *e
		c.Usage, c.Uncertain = llm.Usage{}, true
		e = &c
	}
	if e.Uncertain || e.Received > 0 {
		return a.unknown(e.Usage, e.Received, usageOK), e
	}
	return Charge{Cost: a.cost(e.Usage), used: e.Usage}, e
}

// unknown is the charge for an attempt that may be billed for more than u: all that was set aside,
// or the least that the received bytes of its answer cost, whichever is more.
func (a Attempt) unknown(u llm.Usage, received int, v verdict) Charge {
	out := Charge{Cost: a.cost(u), verdict: v, used: u}
	out.used.Output = max(u.Output, received/bytesPerToken)
	if a.overlong(out.used) {
		out.used.Input = max(u.Input, maxPrompt(a.Price, a.Request))
		if v == usageOK {
			out.verdict = usageLonger
		}
	} else {
		out.used.Output = u.Output
	}
	out.Uncertain = max(0, max(a.Worst, a.cost(out.used))-out.Cost)
	return out
}

// overlong reports whether u has more output than was asked for.
func (a Attempt) overlong(u llm.Usage) bool {
	return u.Output-endTokens > MaxOutput(a.Price, a.Request)
}

// Bounds on what a server can truthfully report. They are far beyond what servers do: prompts grow
// by hidden instructions, tools that run at the provider, files and images, and answers by hidden
// thoughts.
const (
	// maxContext is the context of a model where it is not known.
	maxContext = 10_000_000
	// hiddenTokens is the instructions that a provider may add to a prompt.
	hiddenTokens = 20_000
	// bytesPerToken is how many bytes of an answer make at least one token.
	bytesPerToken = 8
	// maxUnasked is the output tokens of a request that does not limit them: 128 answers at once of
	// maxUnboundedOutput each.
	maxUnasked = 128 * maxUnboundedOutput
	// maxTokens is what no call reads or produces, whatever it asks for.
	maxPossibleTokens = 1 << 28
	// endTokens is how many more tokens than asked for a server that keeps the limit may count: those
	// that end an answer.
	endTokens = 8
)

// judge returns how far u can be believed as the usage of resp, or of a failure where resp is nil.
func (a Attempt) judge(u llm.Usage, resp *llm.Response) verdict {
	if min(u.Input, u.Audio, u.Cached, u.CacheWrite, u.CacheWriteLong, u.Output, u.Reasoning) < 0 ||
		max(u.Audio, u.Cached, u.CacheWrite, u.CacheWriteLong) > u.Input {
		return usageImpossible
	}
	if n := chargedInput(u); n > hiddenTokens && n > MaxInput(a.Price, a.Request) {
		return usageImpossible
	}
	if n := max(u.Output, u.Reasoning); n > maxUnboundedOutput && n > a.maxOutput(resp) {
		return usageImpossible
	}
	switch {
	case resp == nil:
		return usageOK
	case u.Input == 0, u.Output == 0 && visibleBytes(resp) > 0:
		return usageMissing
	case a.overlong(u):
		return usageLonger
	default:
		return usageOK
	}
}

// chargedInput returns the input tokens of u that are charged. The parts of a prompt may add up to more
// than the prompt.
func chargedInput(u llm.Usage) int {
	return max(u.Input, llm.AddTokens(u.Cached, llm.AddTokens(u.CacheWrite, u.CacheWriteLong)))
}

// MaxInput returns the most input tokens that a server can have read for req.
func MaxInput(p price.Price, req *llm.Request) int {
	size := tokens.SizeOf(req)
	n := llm.AddTokens(llm.MulTokens(size.Bound(p.Context), 2), hiddenTokens)
	if refers(req) || size.HasFiles() {
		n = max(n, cmp.Or(p.Context, maxContext))
	}
	return min(maxPossibleTokens, n)
}

// reservedInput returns the input tokens that are set aside for req.
func reservedInput(p price.Price, req *llm.Request) int {
	size := tokens.SizeOf(req)
	n := size.Bound(p.Context)
	if size.Unbounded || refers(req) {
		n = max(n, p.Context)
	}
	return n
}

// maxPrompt returns the most tokens of what req itself holds.
func maxPrompt(p price.Price, req *llm.Request) int { return tokens.SizeOf(req).Bound(p.Context) }

// maxOutput returns more output tokens than a model can have produced.
func (a Attempt) maxOutput(resp *llm.Response) int {
	asked := a.Request.MaxTokens
	if asked <= 0 {
		asked = maxUnasked
	}
	return min(maxPossibleTokens, 2*max(min(asked, maxPossibleTokens), a.Price.MaxOutput, a.Price.Context, maxUnboundedOutput)+visibleBytes(resp))
}

// visibleBytes returns the bytes of what a model said: no tokenizer makes more tokens of them.
func visibleBytes(resp *llm.Response) int {
	if resp == nil {
		return 0
	}
	n := len(resp.Text) + len(resp.Refusal)
	for i := range resp.Thoughts {
		n += len(resp.Thoughts[i].Text) + len(resp.Thoughts[i].Opaque)
	}
	for i := range resp.ToolCalls {
		n += len(resp.ToolCalls[i].Name) + len(resp.ToolCalls[i].Arguments)
	}
	return n
}

// estimate is the charge for an answer without a usage: all that was set aside. Without a budget, or
// if the server may exceed the limit, it is at least the cost of prompt and answer if every byte
// were a token.
func (a Attempt) estimate(resp *llm.Response) llm.Money {
	u := llm.Usage{Input: max(resp.Usage.Input, maxPrompt(a.Price, a.Request)), Output: max(resp.Usage.Output, visibleBytes(resp))}
	bytes := a.cost(u)
	if a.Worst > 0 && !a.mayExceed() {
		bytes = 0
	}
	return max(a.servedPrice(resp).Cost(CountAudio(a.Request, resp.Usage), a.Batched), a.Worst, bytes)
}

// CodeUsage is the code of the error for an answer with an impossible usage. Neither its model nor
// another is asked again: the answer may have reached the client.
const CodeUsage = "impossible_usage"

func (a Attempt) impossible(resp *llm.Response) *llm.Error {
	u := resp.Usage
	msg := fmt.Sprintf("the server reports %d input and %d output tokens for a prompt of %d bytes and an answer of %d bytes, which is impossible", chargedInput(u), u.Output, tokens.SizeOf(a.Request).Bytes, visibleBytes(resp))
	if a.Worst > 0 {
		msg += fmt.Sprintf("; the %v that the call can cost at most is charged", a.Worst)
	}
	return &llm.Error{
		Kind: llm.KindMalformed, Code: CodeUsage, Message: msg, Final: true, Uncertain: true,
		Provider: resp.Provider, Model: resp.Model, RequestID: resp.RequestID, Rate: resp.Rate, Metadata: resp.Metadata,
	}
}

// Oddity describes, for the person who pays, what is odd about the usage of an attempt for which
// worst was set aside. It is empty if nothing is. Texts about the same thing have the same about.
func (m *Model) Oddity(req *llm.Request, worst llm.Money, c Charge) (about int, text string) {
	switch {
	case c.Estimated() && worst > 0:
		text = fmt.Sprintf("%s reports no token usage, so each of its calls is charged the most that it can cost; a lower max_tokens lowers that", req.Model)
	case c.Estimated():
		text = fmt.Sprintf("%s reports no token usage, so the cost of its calls is estimated from the size of prompts and answers", req.Model)
	case c.verdict == usageLonger && worst > 0:
		if limit := MaxOutput(m.Price, req); c.used.Output-endTokens > limit {
			text = fmt.Sprintf("%s answered with %d tokens when asked for at most %d: it does not keep the limit. From now on the price of %d tokens is set aside for each of its calls, and the budget may be used up sooner",
				req.Model, c.used.Output, limit, outputWithoutLimit(m.Price, c.used.Output))
		} else {
			text = fmt.Sprintf("%s counted %d input tokens for a prompt of %d bytes, so that a call cost more than was set aside for it. From now on more is set aside",
				req.Model, chargedInput(c.used), tokens.SizeOf(req).Bytes)
		}
	}
	return int(c.verdict), text
}
