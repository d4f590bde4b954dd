package budget

import (
	"fmt"
	"sort"
	"strings"

	"parley/internal/kit/text"
	"parley/llm"
)

// Sums are the sums of a budget. Every text about money shows them with Text.
type Sums struct {
	Spent  llm.Money `json:"spent_usd"`            // recorded
	AtRisk llm.Money `json:"at_risk_usd"`          // calls whose end is unknown may have cost it
	Aside  llm.Money `json:"set_aside_usd"`        // for calls that are open
	Limit  llm.Money `json:"budget_usd,omitempty"` // 0: there is no limit
}

// Left returns what calls may still take. Without a limit it is 0.
func (s Sums) Left() llm.Money {
	return max(0, s.Limit.Minus(s.Spent).Minus(s.AtRisk).Minus(s.Aside))
}

// Text returns the sums as "$1.20 spent, $0.30 at risk, $2.43 set aside, $1.07 left of $5.00", without those that are 0.
func (s Sums) Text() string {
	if s.Limit > 0 {
		return fmt.Sprintf("%s, %v left of %v", s.taken(), s.Left(), s.Limit)
	}
	return s.taken()
}

// taken returns all but what is left.
func (s Sums) taken() string {
	parts := []string{s.Spent.String() + " spent"}
	if s.AtRisk > 0 {
		parts = append(parts, s.AtRisk.String()+" at risk")
	}
	if s.Aside > 0 {
		parts = append(parts, s.Aside.String()+" set aside")
	}
	return strings.Join(parts, ", ")
}

// Why says what makes a call expensive, as the subject of "sets aside". limit is the name of the limit on output tokens for whoever can
// change it, such as max_tokens. It is "" if that is not known.
func (t Terms) Why(limit string) string {
	if t.model == nil {
		return ""
	}
	p, req := Reserved(t.model.Price, t.req), t.req
	input, output := reservedInput(p, req), MaxOutput(p, req)
	unkept := ""
	switch seen := int(t.model.conduct.output.Load()); {
	case seen > 0:
		unkept, output = "a model that has given longer answers than it was asked for", max(output, outputWithoutLimit(p, seen))
	case t.mayExceed() && !t.model.conduct.keepsLimit:
		unkept, input, output = "a server that is not known to stop at "+limit, MaxInput(p, req), max(output, outputWithoutLimit(p, 0))
	}
	switch {
	case p.Worst(input, 0, t.batched) > p.Worst(0, output, t.batched) && refers(req):
		return fmt.Sprintf("what the call refers to (its input may have %s tokens)", text.GroupDigits(input))
	case p.Worst(input, 0, t.batched) > p.Worst(0, output, t.batched):
		return fmt.Sprintf("the prompt (it may have %s tokens)", text.GroupDigits(input))
	case unkept != "":
		return fmt.Sprintf("%s (an answer may have %s tokens)", unkept, text.GroupDigits(output))
	case req.MaxTokens > 0:
		return fmt.Sprintf("%s: %d", limit, req.MaxTokens)
	default:
		return fmt.Sprintf("no %s (an answer may have %s tokens)", limit, text.GroupDigits(output))
	}
}

// WhyWorst is Why for Worst, which is all that is set aside if the server is trusted to keep the limit.
func (t Terms) WhyWorst(limit string) string {
	t.exceeding = 0
	return t.Why(limit)
}

// longest returns how many output tokens the call could ask for with an amount of money. 0: none, or it would not help.
func (t Terms) longest(left llm.Money) int {
	if t.model == nil || t.model.conduct.output.Load() > 0 {
		return 0
	}
	p := Reserved(t.model.Price, t.req)
	input := reservedInput(p, t.req)
	if p.Output == 0 {
		return 0
	}
	return sort.Search(MaxOutput(p, t.req), func(n int) bool { return p.Worst(input, n+1, t.batched) > left })
}

// RefusalError is why a call does not fit a budget.
type RefusalError struct {
	terms Terms
	sums  Sums
	part  bool // the budget is a part of one with the limit of sums, and does not know the rest
}

// Error implements error.
func (r *RefusalError) Error() string { return r.Text("max_tokens", "max_tokens") }

// Text says what makes the call expensive, what is left, and what to do. limit is the name of the limit on output tokens in the call, and
// set is what to set it with.
func (r *RefusalError) Text(limit, set string) string {
	why := r.terms.WhyWorst(limit) // not even that has room
	if why == "" {
		why = "the call"
	}
	if r.part {
		return fmt.Sprintf("%s sets aside %v, and less is left of %v", why, r.terms.Worst, r.sums.Limit)
	}
	s := fmt.Sprintf("%v is left of %v (%s), too little for the next call: %s sets aside %v", r.sums.Left(), r.sums.Limit, r.sums.taken(), why, r.terms.Worst)
	if n := r.terms.longest(r.sums.Left()); n > 0 {
		return fmt.Sprintf("%s; set %s to at most %d, or raise the budget", s, set, n)
	}
	return s + "; raise the budget"
}
