package terminal

import (
	"slices"
	"testing"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// TestReasons: trouble is apart from money, which takes little room, however many models wait for it.
func TestReasons(t *testing.T) {
	t.Parallel()
	money := func(calls int, model string, dollars float64) dispatch.Wait {
		return dispatch.Wait{Money: &budget.Shortage{Calls: calls, Model: model, Amount: llm.Dollars(dollars)}}
	}
	away := dispatch.Wait{About: "lab", Says: "lab is\nunreachable \x1b[2J"}
	for name, c := range map[string]struct {
		waits          []dispatch.Wait
		trouble, money []string
	}{
		"nothing":       {},
		"trouble":       {waits: []dispatch.Wait{away}, trouble: []string{`lab is unreachable \u001b[2J`}},
		"one call":      {waits: []dispatch.Wait{money(1, "lab/a", 0.006828)}, money: []string{"1 waits for room in the budget ($0.0068 set aside for each)"}},
		"cents":         {waits: []dispatch.Wait{money(775, "lab/a", 12.3456)}, money: []string{"775 wait for room in the budget ($12.35 set aside for each)"}},
		"tiny":          {waits: []dispatch.Wait{money(2, "lab/a", 0.0000123)}, money: []string{"2 wait for room in the budget ($0.000012 set aside for each)"}},
		"equal amounts": {waits: []dispatch.Wait{money(1, "lab/a", 0.00682), money(1020, "lab/b", 0.00683)}, money: []string{"1,021 wait for room in the budget ($0.0068 set aside for each)"}},
		"why":           {waits: []dispatch.Wait{{Money: &budget.Shortage{Calls: 2, Amount: llm.Dollar, Why: "max_tokens: 64000\x1b"}}}, money: []string{`2 wait for room in the budget (max_tokens: 64000\u001b sets aside $1.00 for each)`}},
		"known room":    {waits: []dispatch.Wait{{Money: &budget.Shortage{Calls: 15, Amount: llm.Dollars(0.66), Room: 1}}}, money: []string{"15 wait: the budget has room for 1 call at a time ($0.66 set aside for each)"}},
		"all": {
			waits: []dispatch.Wait{money(20, "lab/a", 0.8), away, money(1, "lab/b", 0.0068)}, trouble: []string{`lab is unreachable \u001b[2J`},
			money: []string{"21 wait for room in the budget ($0.0068 to $0.80 set aside for each)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trouble, money := Reasons(func(time.Time) []dispatch.Wait { return c.waits }, time.Time{})
			if !slices.Equal(trouble, c.trouble) || !slices.Equal(money, c.money) {
				t.Errorf("%q and %q, want %q and %q", trouble, money, c.trouble, c.money)
			}
		})
	}
}
