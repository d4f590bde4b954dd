package journal

import "strings"

// Reason is why a run stopped before everything was played: a kind for programs, and a detail for
// readers. It is the zero value for a complete run.
type Reason struct {
	Kind ReasonKind
	// Detail is the text of what stopped the run, such as an error.
	Detail string
}

// ReasonKind is what sort of thing stopped a run.
type ReasonKind string

// The kinds of reasons.
const (
	// ByBudget: the next call might cost more than is left of the budget.
	ByBudget ReasonKind = "budget"
	// ByUser: the user asked the run to stop, for example with a signal.
	ByUser ReasonKind = "user"
	// ByCall: a call could not be made, and later calls would fail too.
	ByCall ReasonKind = "call"
	// ByError: the run cannot continue unchanged.
	ByError ReasonKind = "error"
	// ByGrowth: the run was complete, and its plan has grown since.
	ByGrowth ReasonKind = "growth"
)

const budgetIs = "budget: "

// String returns the reason in one line. It is empty for the zero value.
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

// MarshalText returns the text of String.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the text of a reason. If the text does not show the kind, it is ByCall.
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
