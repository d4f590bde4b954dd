package journal

import "strings"

// Reason is why a run stopped before everything was played: a kind to decide by, and a detail to
// read. It is the zero value where the run is complete.
type Reason struct {
	Kind ReasonKind
	// Detail is in the words of whoever stopped the run, such as an error's.
	Detail string
}

// ReasonKind is what sort of thing stopped a run.
type ReasonKind string

// The kinds of reasons.
const (
	// ByBudget: the next call might cost more than is left of the budget.
	ByBudget ReasonKind = "budget"
	// ByUser: whoever plays the run asked it to stop, with a signal for example.
	ByUser ReasonKind = "user"
	// ByCall: a call could not be made, and the calls after it would fare no better.
	ByCall ReasonKind = "call"
	// ByError: the run cannot go on as it is.
	ByError ReasonKind = "error"
	// ByGrowth: the run was complete, and its plan has grown since.
	ByGrowth ReasonKind = "growth"
)

const budgetIs = "budget: "

// String words the reason in one line. It is empty for the zero value.
func (r Reason) String() string {
	switch r.Kind {
	case ByBudget:
		return budgetIs + r.Detail
	case ByGrowth:
		return "the plan has grown"
	default:
		return r.Detail
	}
}

// MarshalText writes the reason as String words it.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText writes. It recognizes ByBudget and ByGrowth by their words,
// and reads every other reason as ByCall.
func (r *Reason) UnmarshalText(text []byte) error {
	detail, budget := strings.CutPrefix(string(text), budgetIs)
	switch {
	case detail == "":
		*r = Reason{}
	case detail == (Reason{Kind: ByGrowth}).String():
		*r = Reason{Kind: ByGrowth}
	case budget:
		*r = Reason{ByBudget, detail}
	default:
		*r = Reason{ByCall, detail}
	}
	return nil
}
