package dispatch

import (
	"cmp"
	"fmt"

	"parley/internal/dispatch/tokens"
	"parley/internal/price"
	"parley/llm"
)

// verdict is how far the usage that a server reports can be believed.
type verdict int

const (
	usageOK         verdict = iota
	usageLonger             // an answer longer than was asked for, or a prompt than was sent: charged as reported
	usageMissing            // no usage, or none of one side: the most the attempt can cost is charged
	usageImpossible         // more than the model can have read or produced: the answer is malformed
)

// charge is what an attempt is charged.
type charge struct {
	cost      llm.Money // by the usage, or an estimate that is not below it
	uncertain llm.Money // that may have been billed besides
	verdict   verdict
	used      llm.Usage // what was charged for, as far as it is known
}

func (c charge) total() llm.Money { return c.cost.Plus(c.uncertain) }

// attempt is one try at a request, as it is charged.
type attempt struct {
	req     *llm.Request
	price   price.Price
	terms   // what had to be set aside for it; zero where nothing had to be
	batched bool
}

// settle decides what an attempt is charged that ended with resp or e. It is the only place
// that does. The error that it returns is e, or that of an answer with an impossible usage,
// or nil.
func (a attempt) settle(resp *llm.Response, e *llm.Error) (charge, *llm.Error) {
	if e != nil {
		return a.failed(e)
	}
	v, cost := a.judge(resp.Usage, resp), a.price.Cost(resp.Usage, a.batched)
	switch {
	case v == usageImpossible:
		return a.unknown(llm.Usage{}, visible(resp), v), a.impossible(resp)
	case v == usageMissing:
		used := resp.Usage
		used.Output = max(used.Output, visible(resp)/bytesPerToken)
		return charge{cost: max(a.estimate(resp), a.price.Cost(used, a.batched)), verdict: v, used: used}, nil
	case a.worst > 0 && cost > a.worst:
		v = usageLonger
	}
	return charge{cost: cost, verdict: v, used: resp.Usage}, nil
}

// failed is settle for an attempt that ended with e.
func (a attempt) failed(e *llm.Error) (charge, *llm.Error) {
	if a.judge(e.Usage, nil) == usageImpossible {
		c := *e
		c.Usage, c.Uncertain = llm.Usage{}, true
		e = &c
	}
	if e.Uncertain || e.Received > 0 {
		return a.unknown(e.Usage, e.Received, usageOK), e
	}
	return charge{cost: a.price.Cost(e.Usage, a.batched), used: e.Usage}, e
}

// unknown is the charge for an attempt of which more may be billed than u: all that was set
// aside, or what the received bytes of its answer cost at least where that is more.
func (a attempt) unknown(u llm.Usage, received int, v verdict) charge {
	out := charge{cost: a.price.Cost(u, a.batched), verdict: v, used: u}
	out.used.Output = max(u.Output, received/bytesPerToken)
	if a.overlong(out.used) {
		out.used.Input = max(u.Input, tokens.SizeOf(a.req).Bound())
		if v == usageOK {
			out.verdict = usageLonger
		}
	} else {
		out.used.Output = u.Output
	}
	out.uncertain = max(0, max(a.worst, a.price.Cost(out.used, a.batched))-out.cost)
	return out
}

// overlong says whether u has more output than was asked for.
func (a attempt) overlong(u llm.Usage) bool { return u.Output-endTokens > outputOf(a.price, a.req) }

// Bounds on what a server can truthfully report. They are far beyond what servers do, since
// prompts grow by hidden instructions, tools that run at the provider, files and images, and
// answers by thoughts that nobody sees.
const (
	// mostContext is the context of a model where it is not known.
	mostContext = 10_000_000
	// hiddenTokens is the instructions that a provider may add to a prompt.
	hiddenTokens = 20_000
	// bytesPerToken is how many bytes of an answer make at least one token.
	bytesPerToken = 8
	// mostUnasked is the output tokens of a request that does not limit them: 128 answers at
	// once of MaxUnboundedOutput each.
	mostUnasked = 128 * MaxUnboundedOutput
	// mostTokens is what no call takes in or produces, whatever it asks for.
	mostTokens = 1 << 28
	// endTokens is by how much servers count more than was asked for that keep the limit: the
	// tokens that end an answer.
	endTokens = 8
)

// judge says how far u can be believed, as the usage of resp, or of a failure where that is nil.
func (a attempt) judge(u llm.Usage, resp *llm.Response) verdict {
	if min(u.Input, u.Cached, u.CacheWrite, u.CacheWriteLong, u.Output, u.Reasoning) < 0 {
		return usageImpossible
	}
	if max(u.Cached, u.CacheWrite, u.CacheWriteLong) > u.Input {
		return usageImpossible
	}
	if most := inputOf(u); most > hiddenTokens && most > readable(a.price, a.req) {
		return usageImpossible
	}
	if most := max(u.Output, u.Reasoning); most > MaxUnboundedOutput && most > a.outputMost(resp) {
		return usageImpossible
	}
	switch {
	case resp == nil:
		return usageOK
	case u.Input == 0, u.Output == 0 && visible(resp) > 0:
		return usageMissing
	case a.overlong(u):
		return usageLonger
	default:
		return usageOK
	}
}

// inputOf is the input tokens of u that are charged. The parts of a prompt may add up to more
// than it.
func inputOf(u llm.Usage) int {
	return max(u.Input, llm.AddTokens(u.Cached, llm.AddTokens(u.CacheWrite, u.CacheWriteLong)))
}

// readable is the most input tokens that a server can have read for req.
func readable(p price.Price, req *llm.Request) int {
	most := llm.AddTokens(llm.MulTokens(tokens.SizeOf(req).Bound(), 2), hiddenTokens)
	if refers(req) {
		most = max(most, cmp.Or(p.Context, mostContext))
	}
	return min(mostTokens, most)
}

// promptOf is the input tokens that are set aside for req.
func promptOf(p price.Price, req *llm.Request) int {
	n := tokens.SizeOf(req).Bound()
	if refers(req) {
		n = max(n, p.Context)
	}
	return n
}

// outputMost is more output tokens than a model can have produced.
func (a attempt) outputMost(resp *llm.Response) int {
	asked := a.req.MaxTokens
	if asked <= 0 {
		asked = mostUnasked
	}
	return min(mostTokens, 2*max(min(asked, mostTokens), a.price.MaxOutput, a.price.Context, MaxUnboundedOutput)+visible(resp))
}

// visible is the bytes of what a model said: no tokenizer makes more tokens of them.
func visible(resp *llm.Response) int {
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

// estimate is what an answer is charged whose usage is not known: all that was set aside. Where
// no budget is kept, or the server is not known to keep to what was asked for, it is at least
// what prompt and answer cost if every byte were a token.
func (a attempt) estimate(resp *llm.Response) llm.Money {
	u := llm.Usage{Input: max(resp.Usage.Input, tokens.SizeOf(a.req).Bound()), Output: max(resp.Usage.Output, visible(resp))}
	bytes := a.price.Cost(u, a.batched)
	if a.worst > 0 && !a.unproven() {
		bytes = 0
	}
	return max(a.price.Cost(resp.Usage, a.batched), a.worst, bytes)
}

// codeUsage is of an answer whose usage is impossible. It is not asked for again, nor is
// another model: it may have reached whoever asked.
const codeUsage = "impossible_usage"

func (a attempt) impossible(resp *llm.Response) *llm.Error {
	u := resp.Usage
	msg := fmt.Sprintf("the server reports %d input and %d output tokens for a prompt of %d bytes and an answer of %d bytes, which is impossible", inputOf(u), u.Output, tokens.SizeOf(a.req).Bytes, visible(resp))
	if a.worst > 0 {
		msg += fmt.Sprintf("; the %v that the call can cost at most is charged", a.worst)
	}
	return &llm.Error{
		Kind: llm.KindMalformed, Code: codeUsage, Message: msg, Final: true, Uncertain: true,
		Provider: resp.Provider, Model: resp.Model, RequestID: resp.RequestID, Rate: resp.Rate, Metadata: resp.Metadata,
	}
}
