package dispatch_test

import (
	"errors"
	"testing"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/sim"
	"parley/llm"
)

// TestWaveBudget asks more than a budget allows, with lines that are paid for and never answered.
// It takes several batches, and not a billionth is overspent.
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
			budget := budget.New(llm.Dollars(c.limit), 0)
			d := l.dispatcher(t, "openai", with(j), func(cfg *dispatch.Config) { cfg.Budget = budget })
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
			if worst < budget.Limit() {
				t.Fatalf("the budget was no limit: %v", worst)
			}
			st := l.Stats()
			billed := p.Cost(llm.Usage{Input: int(st.Tokens.Input), Output: int(st.Tokens.Output)}, true)
			if live := st.Endpoints["POST /v1/chat/completions"]; live > 0 && c.all {
				t.Errorf("%d were asked live", live)
			}
			spent, reserved := budget.Spent()
			if spent > budget.Limit() || billed > budget.Limit() || spent < billed || reserved != 0 {
				t.Errorf("spent %v of %v, at least %v billed, %v set aside", spent, budget.Limit(), billed, reserved)
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

// TestWaveMaxCost: a call of a wave with its own limit keeps it, over batches that lose lines and
// when it is asked live.
func TestWaveMaxCost(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]sim.Faults{
		"lines are missing": {sim.FaultLineMissing: 0.5},
		"batches fail":      {sim.FaultBatchFails: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, j, reqs := newLab(t, faults(f)), &journal{left: -1}, questions(100)
			d := l.dispatcher(t, "openai", with(j))
			for i, req := range reqs {
				worst, err := d.Worst(req)
				if err != nil {
					t.Fatal(err)
				}
				reqs[i].MaxCost = worst * llm.Money(i%5) / 4 // none, too little for a line, enough for a line, enough for a live try
			}
			ok, refused := 0, 0
			for i, r := range wave(t, t.Context(), d, reqs) {
				var cost llm.Money
				switch {
				case r.Err == nil:
					cost = r.Response.Metadata.Cost
					ok++
				case errors.Is(r.Err, llm.ErrMaxCost):
					cost = llm.AsError(r.Err).Metadata.Cost
					refused++
				default:
					t.Error(r.Err)
				}
				if reqs[i].MaxCost > 0 && cost > reqs[i].MaxCost {
					t.Errorf("request %d cost %v of %v", i, cost, reqs[i].MaxCost)
				}
			}
			if ok == 0 || refused == 0 {
				t.Errorf("%d answered, %d refused: this shows nothing", ok, refused)
			}
		})
	}
}
