package dispatch_test

import (
	"testing"

	"parley/internal/dialect/sim"
	"parley/internal/dispatch"
	"parley/llm"
)

// TestWaveBudget asks more than a budget holds, with lines that are paid for and never come:
// it is sent in as many batches as it takes, and not a billionth is spent over the budget.
func TestWaveBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		limit  float64
		faults sim.Faults
		all    bool // of the calls fit
	}{
		{"room for all, a part at a time", 0.04, nil, true},
		{"room for some", 0.005, nil, false},
		{"lines are missing", 0.02, sim.Faults{sim.FaultLineMissing: 0.3}, false},
		{"batches vanish", 0.02, sim.Faults{sim.FaultBatchVanishes: 0.5}, false},
		{"batches fail", 0.02, sim.Faults{sim.FaultBatchFails: 0.5}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, j, reqs := newLab(t, faults(c.faults)), &journal{left: -1}, questions(300)
			purse := dispatch.NewBudget(llm.Dollars(c.limit), 0)
			d := l.dispatcher(t, "openai", with(j), func(cfg *dispatch.Config) { cfg.Budget = purse })
			ok, refused := 0, 0
			for _, r := range wave(t, t.Context(), d, reqs) {
				switch llm.KindOf(r.Err) {
				case "":
					ok++
				case llm.KindBudget:
					refused++
				default:
					t.Error(r.Err)
				}
			}
			p, _ := table(t).Find("lab/any")
			worst := p.Worst(600, 40, true) * 300
			if worst < purse.Limit() {
				t.Fatalf("the budget was no limit: %v", worst)
			}
			st := l.Stats()
			billed := p.Cost(llm.Usage{Input: int(st.Tokens.Input), Output: int(st.Tokens.Output)}, true)
			if live := st.Endpoints["POST /v1/chat/completions"]; live > 0 && c.all {
				t.Errorf("%d were asked live", live)
			}
			spent, reserved := purse.Spent()
			if spent > purse.Limit() || billed > purse.Limit() || spent < billed || reserved != 0 {
				t.Errorf("spent %v of %v, at least %v billed, %v set aside", spent, purse.Limit(), billed, reserved)
			}
			if c.faults == nil && (ok == 300) != c.all || ok+refused != 300 {
				t.Errorf("%d answered, %d refused", ok, refused)
			}
			if p := d.Batches(); p.Created < 2 && c.all {
				t.Errorf("it all went in one batch: %+v", p)
			}
		})
	}
}
