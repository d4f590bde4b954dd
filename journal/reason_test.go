package journal_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"parley/journal"
)

// TestReason: every kind is worded, and read back as what it was, as far as the words show it.
func TestReason(t *testing.T) {
	t.Parallel()
	for text, test := range map[string]struct {
		state journal.State
		want  journal.Reason
	}{
		"":                           {journal.Complete, journal.Reason{}},
		"budget: $1.00 is spent":     {journal.Stopped, journal.Reason{Kind: journal.ByBudget, Detail: "$1.00 is spent"}},
		"stopped by a signal":        {journal.Stopped, journal.Reason{Kind: journal.ByUser, Detail: "stopped by a signal"}},
		"aborted by a second signal": {journal.Stopped, journal.Reason{Kind: journal.ByUser, Detail: "aborted by a second signal"}},
		"lab: auth: no":              {journal.Stopped, journal.Reason{Kind: journal.ByCall, Detail: "lab: auth: no"}},
		"the plan has grown":         {journal.Stopped, journal.Reason{Kind: journal.ByGrowth}},
		"budget: it is an error":     {journal.Failed, journal.Reason{Kind: journal.ByError, Detail: "budget: it is an error"}},
	} {
		got := journal.ParseReason(test.state, text)
		if got != test.want || got.String() != text {
			t.Errorf("%q: %+v, %q", text, got, got)
		}
		if b, err := json.Marshal(test.want); err != nil || string(b) != strconv.Quote(text) {
			t.Errorf("%q: %s, %v", text, b, err)
		}
	}
}
