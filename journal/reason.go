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

// UnmarshalText reads the words of a reason. The kind is known only as far as they show it: see ParseReason.
func (r *Reason) UnmarshalText(text []byte) error {
	*r = ParseReason("", string(text))
	return nil
}

// ParseReason reads a reason in words, such as String makes and run files had before there were
// kinds. Where the words do not show the kind, the state decides: ByError for Failed, else ByCall.
func ParseReason(state State, text string) Reason {
	switch {
	case text == "":
		return Reason{}
	case text == (Reason{Kind: ByGrowth}).String():
		return Reason{Kind: ByGrowth}
	case state == Failed:
		return Reason{ByError, text}
	case strings.HasPrefix(text, budgetIs):
		return Reason{ByBudget, text[len(budgetIs):]}
	case text == "stopped by a signal", text == "aborted by a second signal":
		return Reason{ByUser, text}
	default:
		return Reason{ByCall, text}
	}
}
