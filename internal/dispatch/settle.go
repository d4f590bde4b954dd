package dispatch

import (
	"fmt"

	"parley/internal/price"
	"parley/llm"
)

// verdict is how far the usage that a server reports can be believed.
type verdict int

const (
	usageOK         verdict = iota
	usageLonger             // an answer longer than was asked for, or a prompt than was sent: charged as reported
	usageMissing            // no usage, or none of one side: the most the attempt can cost is charged
	usageImpossible         // more than any model takes in or produces: the answer is malformed
)

// charge is what an attempt is charged.
type charge struct {
	cost      llm.Money // by the usage, or an estimate that is not below it
	uncertain llm.Money // that may have been billed besides
	verdict   verdict
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
	if e == nil {
		v, cost := a.judge(resp.Usage, resp), a.price.Cost(resp.Usage, a.batched)
		switch {
		case v == usageImpossible:
			return charge{uncertain: a.worst, verdict: v}, a.impossible(resp)
		case v == usageMissing:
			cost = a.estimate(resp)
		case a.worst > 0 && cost > a.worst:
			v = usageLonger
		}
		return charge{cost: cost, verdict: v}, nil
	}
	if a.judge(e.Usage, nil) == usageImpossible {
		c := *e
		c.Usage, c.Uncertain = llm.Usage{}, true
		e = &c
	}
	out := charge{cost: a.price.Cost(e.Usage, a.batched)}
	if e.Uncertain {
		out.uncertain = max(0, a.worst-out.cost)
	}
	return out, e
}

// Bounds on what a server can truthfully report. They are far beyond what servers do, since
// prompts grow by hidden instructions, tools that run at the provider, files and images, and
// answers by thoughts that nobody sees.
const (
	// mostContext is the input tokens that no bytes of the request need account for.
	mostContext = 10_000_000
	// mostUnasked is the output tokens of a request that does not limit them: 128 answers at
	// once of outputUnknown each.
	mostUnasked = 128 * outputUnknown
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
	if most := max(u.Input, u.Cached, u.CacheWrite, u.CacheWriteLong); most > mostContext && most > a.inputMost() {
		return usageImpossible
	}
	if most := max(u.Output, u.Reasoning); most > outputUnknown && most > a.outputMost(resp) {
		return usageImpossible
	}
	switch {
	case resp == nil:
		return usageOK
	case u.Input == 0, u.Output == 0 && visible(resp) > 0:
		return usageMissing
	case u.Output-endTokens > outputOf(a.price, a.req):
		return usageLonger
	default:
		return usageOK
	}
}

// inputMost is more input tokens than a server can have read.
func (a attempt) inputMost() int {
	return min(mostTokens, max(mostContext, a.price.Context)+2*sizeOf(a.req).bound())
}

// outputMost is more output tokens than a model can have produced.
func (a attempt) outputMost(resp *llm.Response) int {
	asked := a.req.MaxTokens
	if asked <= 0 {
		asked = mostUnasked
	}
	return min(mostTokens, 2*max(min(asked, mostTokens), a.price.MaxOutput, a.price.Context, outputUnknown)+visible(resp))
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
	u := llm.Usage{Input: max(resp.Usage.Input, sizeOf(a.req).bound()), Output: max(resp.Usage.Output, visible(resp))}
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
	msg := fmt.Sprintf("the server reports %d input and %d output tokens for an answer of %d bytes, which is impossible", u.Input, u.Output, visible(resp))
	if a.worst > 0 {
		msg += fmt.Sprintf("; the %v that the call can cost at most is charged", a.worst)
	}
	return &llm.Error{
		Kind: llm.KindMalformed, Code: codeUsage, Message: msg, Final: true, Uncertain: true,
		Provider: resp.Provider, Model: resp.Model, RequestID: resp.RequestID, Rate: resp.Rate, Trail: resp.Trail,
	}
}
