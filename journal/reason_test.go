package journal_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"parley/journal"
)

// TestReason: every kind has its words, and is read back from them where they show it.
func TestReason(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]journal.Reason{
		"":                       {},
		"budget: $1.00 is spent": {Kind: journal.ByBudget, Detail: "$1.00 is spent"},
		"lab: auth: no":          {Kind: journal.ByCall, Detail: "lab: auth: no"},
		"the plan has grown":     {Kind: journal.ByGrowth},
	} {
		b, err := json.Marshal(want)
		if err != nil || string(b) != strconv.Quote(text) {
			t.Errorf("%+v is written as %s, %v; want %q", want, b, err, text)
		}
		var got journal.Reason
		if err := json.Unmarshal(b, &got); err != nil || got != want {
			t.Errorf("%s is read as %+v, %v", b, got, err)
		}
	}
	for _, kind := range []journal.ReasonKind{journal.ByUser, journal.ByError} {
		if r := (journal.Reason{Kind: kind, Detail: "why"}); r.String() != "why" {
			t.Errorf("%+v is %q", r, r)
		}
	}
}
