package price

import (
	"strings"
	"testing"

	"parley/llm"
)

// TestServiceTiers: a tier has its own rates, in our format and in LiteLLM's, for short prompts and long ones.
func TestServiceTiers(t *testing.T) {
	t.Parallel()
	own := `{"models": {"lab/m": {"input": 10, "cached": 1, "output": 40, "flex": 0.5, "priority": {"input": 25, "cached": 2, "output": 80},
		"above": [{"over": 1000, "input": 20, "output": 60, "flex": 0.5}]}}}`
	lite := `{"lab/m": {"litellm_provider": "lab", "mode": "chat", "input_cost_per_token": 10e-6, "cache_read_input_token_cost": 1e-6, "output_cost_per_token": 40e-6,
		"input_cost_per_token_flex": 5e-6, "cache_read_input_token_cost_flex": 5e-7, "output_cost_per_token_flex": 20e-6,
		"input_cost_per_token_priority": 25e-6, "cache_read_input_token_cost_priority": 2e-6, "output_cost_per_token_priority": 80e-6,
		"input_cost_per_token_above_1k_tokens": 20e-6, "cache_read_input_token_cost_above_1k_tokens": 20e-6, "output_cost_per_token_above_1k_tokens": 60e-6,
		"input_cost_per_token_above_1k_tokens_flex": 10e-6, "output_cost_per_token_above_1k_tokens_flex": 30e-6}}`
	for name, file := range map[string]string{"own": own, "LiteLLM's": lite} {
		table, err := Read(strings.NewReader(file), name)
		if err != nil {
			t.Fatal(err)
		}
		p, ok := table.Find("lab/m")
		if !ok || !p.Serves("flex") || !p.Serves("priority") || p.Serves("default") || p.Serves("") {
			t.Fatalf("%s: %+v", name, p)
		}
		short, long := llm.Usage{Input: 100, Cached: 50, Output: 10}, llm.Usage{Input: 2000, Output: 10}
		for tier, want := range map[string][2]llm.Money{
			// 50 tokens of input, 50 cached, 10 of output; then 2,000 of input and 10 of output: micro-dollars
			"":         {50*10 + 50*1 + 10*40, 2000*20 + 10*60},
			"default":  {50*10 + 50*1 + 10*40, 2000*20 + 10*60},
			"flex":     {(50*10 + 50*1 + 10*40) / 2, (2000*20 + 10*60) / 2},
			"priority": {50*25 + 50*2 + 10*80, 2000*25 + 10*80}, // a long prompt has no rates of its own there
		} {
			in := p.In(tier)
			if got := in.Cost(short, false); got != want[0]*llm.Dollar/1_000_000 {
				t.Errorf("%s %q: %v, want %v", name, tier, got, want[0])
			}
			if got := in.Cost(long, false); got != want[1]*llm.Dollar/1_000_000 {
				t.Errorf("%s %q, long: %v, want %v", name, tier, got, want[1])
			}
			if in.Worst(2000, 10, false) < in.Cost(long, false) {
				t.Errorf("%s %q: the reserve is too small", name, tier)
			}
		}
		if p.Cost(long, false) != 40_600*llm.Dollar/1_000_000 {
			t.Errorf("%s: In changed the price itself", name)
		}
	}
	for _, bad := range []string{`"flex": 2`, `"priority": 0.5`, `"priority": {"input": 1}`} {
		if _, err := Read(strings.NewReader(`{"models": {"lab/m": {"input": 1, "output": 2, `+bad+`}}}`), "p"); err == nil || !strings.Contains(err.Error(), strings.Split(bad, `"`)[1]) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
