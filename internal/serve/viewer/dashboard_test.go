package viewer

import (
	"math"
	"strings"
	"testing"
	"time"

	"parley/internal/run/control"
	"parley/llm"
)

// TestMoney checks when the budget is spent, and whether it suffices.
func TestMoney(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		spent, budget   llm.Money
		burn, projected llm.Money
		exhausted       time.Duration
		share           float64
		short           bool
	}{
		{"no budget", llm.Dollar, 0, llm.Dollar, 9 * llm.Dollar, 0, 0, false},
		{"enough", llm.Dollar, 4 * llm.Dollar, llm.Dollar / 2, 4 * llm.Dollar, 6 * time.Minute, 0.25, false},
		{"too little", 3 * llm.Dollar, 4 * llm.Dollar, 2 * llm.Dollar, 5 * llm.Dollar, 30 * time.Second, 0.75, true},
		{"nothing is spent", 0, 4 * llm.Dollar, 0, 0, 0, 0, false},
		{"it is spent", 5 * llm.Dollar, 4 * llm.Dollar, llm.Dollar, 5 * llm.Dollar, 0, 1.25, true},
		{"in a thousand years", 0, llm.Money(math.MaxInt64), 1, 1, 0, 0, false},
		{"less than nothing", math.MinInt64, math.MaxInt64, math.MinInt64, math.MinInt64, 0, -1, false},
	} {
		d := newDashboard(&control.LiveState{Spent: c.spent, Budget: c.budget, Burn: c.burn, Projected: c.projected})
		if d.Exhausted != c.exhausted || math.Abs(d.Share-c.share) > 1e-9 || d.Short != c.short {
			t.Errorf("%s: in %v, %v, %v", c.name, d.Exhausted, d.Share, d.Short)
		}
	}
}

// TestRows checks that tables stay short, the busiest servers first, and that charts are drawn of what there was.
func TestRows(t *testing.T) {
	t.Parallel()
	s := &control.LiveState{History: control.History{Every: time.Second, Points: []control.Point{{1, 2, 0, 0, 0}, {3, 4, 0, 0, 0.5}, {2, 1, 0, 0, 1}}}}
	for i := range 3 * maxDashboardRows {
		s.Servers = append(s.Servers, control.Server{InFlight: i})
		s.Models = append(s.Models, control.Model{Errors: map[llm.Kind]control.LiveError{llm.KindServer: {Attempts: 1}}})
		s.Batches = append(s.Batches, control.Batch{})
	}
	d := newDashboard(s)
	if top := d.TopServers(); len(top) != maxDashboardRows || top[0].InFlight != 3*maxDashboardRows-1 || s.Servers[0].InFlight != 0 {
		t.Errorf("%+v", top)
	}
	if len(d.TopModels()) != maxDashboardRows || len(d.TopErrors()) != maxDashboardRows || len(d.TopBatches()) != maxDashboardRows || d.Unlisted(3*maxDashboardRows) != "40 more are not listed." || d.Unlisted(maxDashboardRows) != "" {
		t.Error("a table is not cut")
	}
	var names []string
	for _, one := range d.Trends {
		if names = append(names, one.Name+" "+one.Now); !strings.Contains(string(one.Drawing), `class="line`) || strings.Contains(string(one.Drawing), "dot") {
			t.Errorf("%s", one.Drawing)
		}
	}
	if got := strings.Join(names, ", "); got != "calls in flight 2, calls a second 1, dollars spent $1" { // nothing failed, no tokens
		t.Error(got)
	}
	if newDashboard(&control.LiveState{}).Trends != nil {
		t.Error("there are charts of nothing")
	}
}
