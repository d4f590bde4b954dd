package cli

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/run/cluster"
	"parley/internal/run/cluster/allot"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/share"
	"parley/internal/serve/telemetry"
	"parley/llm"
)

// TestDivided: how a run is divided among workers is on the page for Prometheus, and parley cluster prints it.
func TestDivided(t *testing.T) {
	t.Parallel()
	st := cluster.Status{
		Run: "r", Lots: cluster.Lots{Waiting: 5, Leased: 2, Done: 7}, Workers: 2, Lag: 9,
		Accounts: map[string]share.Account{"lab http://x *": {Rates: limiter.Units{Requests: 60, Output: 1000}, Shares: map[string]float64{"s1": 0.25, "s2": 0.75}, Waiting: 4}},
		Money:    &allot.Sums{Limit: 5 * llm.Dollar, Spent: llm.Dollar, Allotted: map[string]llm.Money{"s1": llm.Dollar, "s2": llm.Dollar}, AtRisk: llm.Dollar / 2},
	}
	c := &cluster.Coordinator{}
	d, page := divides(c), &telemetry.Page{}
	d.add(page) // nothing is divided yet
	if len(page.Families()) != 0 {
		t.Errorf("%v", page.Families())
	}
	c.Began(func() cluster.Status { return st })
	d.add(page)
	w := httptest.NewRecorder()
	page.Serve(w)
	for _, want := range []string{
		`parley_lots{state="waiting"} 5`, `parley_lots{state="leased"} 2`, `parley_lots{state="done"} 7`, "parley_workers 2", "parley_log_lag_messages 9",
		`parley_share{account="lab http://x *",worker="s1"} 0.25`, "parley_allotted_dollars 2", "parley_at_risk_dollars 0.5",
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
	var out bytes.Buffer
	printStatus(&out, st, []hub.Working{{Session: "s1", Run: "r", Process: 11}, {Session: "s2", Run: "r", Process: 12}, {Session: "s2", Run: "other", Process: 13}})
	want := `run r  lots: 5 waiting, 2 played, 7 done  the run file is 9 messages behind
run r  budget $5.00: $1.00 spent, $2.00 allotted, $0.50 at risk
run r  account lab http://x *: 4 calls wait, 60 requests a minute, 1000 output tokens a minute, worker 11 has 25%, worker 12 has 75%
`
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}
