package price

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/llm"
)

func TestCost(t *testing.T) {
	t.Parallel()
	table := Embedded()
	tests := []struct {
		name  string
		model string
		usage llm.Usage
		batch bool
		want  llm.Money
	}{
		{"nothing", "openai/gpt-5", llm.Usage{}, false, 0},
		{"one token of each, rounded up once", "openai/gpt-5-nano", llm.Usage{Input: 1, Output: 1}, false, 450},
		{"a million of each", "openai/gpt-5", llm.Usage{Input: 1e6, Output: 1e6}, false, llm.Dollars(11.25)},
		{"half price in a batch", "openai/gpt-5", llm.Usage{Input: 1e6, Output: 1e6}, true, llm.Dollars(5.625)},
		{"cached input", "openai/gpt-5", llm.Usage{Input: 1e6, Cached: 4e5}, false, llm.Dollars(0.8)},
		{"cache writes", "anthropic/claude-opus-5-5", llm.Usage{Input: 300, Cached: 100, CacheWrite: 100, CacheWriteLong: 50}, false,
			llm.Dollars((50*4 + 100*0.2 + 100*5 + 50*8) / 1e6)},
		{"at the edge of the long tier", "openai/gpt-6.1-sol", llm.Usage{Input: 272_000, Output: 1000}, false, llm.Dollars(0.544 + 0.01)},
		{"over the edge, all of it", "openai/gpt-6.1-sol", llm.Usage{Input: 272_001, Output: 1000}, false, llm.Dollars(1.088004 + 0.015)},
		{"over the edge, in a batch", "openai/gpt-6.1-sol", llm.Usage{Input: 272_001, Output: 1000}, true, llm.Dollars((1.088004 + 0.015) / 2)},
		{"batch and cache do not add up", "gemini/gemini-2.5-flash", llm.Usage{Input: 2e6, Cached: 1e6}, true, llm.Dollars(0.15 + 0.03)},
		{"reasoning is part of output", "openai/gpt-5", llm.Usage{Output: 1e6, Reasoning: 9e5}, false, llm.Dollars(10)},
		{"parts beyond the whole", "openai/gpt-5", llm.Usage{Input: 1, Cached: 1e6}, false, llm.Dollars(0.125)},
		{"negative counts", "openai/gpt-5", llm.Usage{Input: -5, Cached: -7, Output: -1}, false, 0},
		{"free", "ollama/anything:7b", llm.Usage{Input: 1e9, Output: 1e9}, false, 0},
		{"simulated", "sim/fast", llm.Usage{Input: 1e6, Output: 1e6}, false, llm.Dollars(0.5)},
		{"absurd counts do not wrap around", "openai/gpt-5", llm.Usage{Input: math.MaxInt, Output: math.MaxInt}, false, math.MaxInt64},
		{"absurd parts do not wrap around", "openai/gpt-5", llm.Usage{Cached: math.MaxInt, CacheWrite: math.MaxInt}, false, math.MaxInt64},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, ok := table.Find(tt.model)
			if !ok {
				t.Fatalf("%s is not in the table", tt.model)
			}
			if got := p.Cost(tt.usage, tt.batch); got != tt.want {
				t.Errorf("cost is %d, want %d", got, tt.want)
			}
		})
	}
}

// genPrice draws prices that no provider has, such as long prompts that are cheaper.
func genPrice(t *rapid.T) Price {
	rate := rapid.Int64Range(0, int64(maxRate))
	rates := func(label string) Rates {
		draw := func(what string) llm.Money { return llm.Money(rate.Draw(t, label+what)) }
		return Rates{draw("input"), draw("cached"), draw("write"), draw("long"), draw("output"), draw("audio")}
	}
	p := Price{Rates: rates("live.")}
	if rapid.Bool().Draw(t, "batch") {
		p.Batch = rates("batch.")
	}
	over := 0
	for range rapid.IntRange(0, 3).Draw(t, "tiers") {
		over += rapid.IntRange(1, 300_000).Draw(t, "over")
		p.Above = append(p.Above, Tier{Over: over, Rates: rates("tier."), Batch: rates("tierbatch.")})
	}
	return p
}

func genUsage(t *rapid.T, input, output int) llm.Usage {
	var u llm.Usage
	u.Input = rapid.IntRange(0, input).Draw(t, "u.input")
	u.Cached = rapid.IntRange(0, u.Input).Draw(t, "u.cached")
	u.CacheWrite = rapid.IntRange(0, u.Input-u.Cached).Draw(t, "u.write")
	u.CacheWriteLong = rapid.IntRange(0, u.Input-u.Cached-u.CacheWrite).Draw(t, "u.long")
	u.Output = rapid.IntRange(0, output).Draw(t, "u.output")
	return u
}

func TestWorstIsNeverBelowCost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genPrice(t)
		input, output := rapid.IntRange(0, 2_000_000).Draw(t, "input"), rapid.IntRange(0, 400_000).Draw(t, "output")
		batch := rapid.Bool().Draw(t, "lane")
		u := genUsage(t, input, output)
		if cost, worst := p.Cost(u, batch), p.Worst(input, output, batch); cost > worst {
			t.Fatalf("%+v costs %d, more than the worst %d", u, cost, worst)
		}
		u.Audio = rapid.IntRange(0, u.Input).Draw(t, "u.audio")
		if cost, worst := p.Cost(u, batch), p.WithAudio().Worst(input, output, batch); cost > worst {
			t.Fatalf("%+v costs %d, more than the worst %d with audio", u, cost, worst)
		}
	})
}

func TestWorstOfTheEmbeddedTable(t *testing.T) {
	t.Parallel()
	table := Embedded()
	for _, name := range table.Models() {
		p, _ := table.Find(name)
		for _, batch := range []bool{false, true} {
			for _, input := range []int{0, 1, 99_999, 100_001, 200_001, 272_001, 1_000_000} {
				u := llm.Usage{Input: input, CacheWriteLong: input, Output: 1000}
				if cost, worst := p.Cost(u, batch), p.Worst(input, 1000, batch); cost > worst {
					t.Errorf("%s: %d tokens cost %v, more than the worst %v", name, input, cost, worst)
				}
			}
		}
	}
}

// TestCostIsExact compares with arithmetic of unlimited size.
func TestCostIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Price{Rates: genPrice(t).Rates}
		u := genUsage(t, math.MaxInt32, math.MaxInt32)
		sum := new(big.Int)
		for _, part := range []struct {
			tokens int
			rate   llm.Money
		}{
			{u.Input - u.Cached - u.CacheWrite - u.CacheWriteLong, p.Input},
			{u.Cached, p.Cached}, {u.CacheWrite, p.CacheWrite}, {u.CacheWriteLong, p.CacheWriteLong}, {u.Output, p.Output},
		} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(int64(part.tokens)), big.NewInt(int64(part.rate))))
		}
		want := sum.Add(sum, big.NewInt(million-1)).Div(sum, big.NewInt(million))
		if !want.IsInt64() {
			want = big.NewInt(math.MaxInt64)
		}
		if got := p.Cost(u, false); int64(got) != want.Int64() {
			t.Fatalf("cost is %d, want %v", got, want)
		}
	})
}

// TestSaved: what a prompt cache saved is the difference to the same tokens without one.
func TestSaved(t *testing.T) {
	t.Parallel()
	p := Price{Rates: Rates{Input: 10 * llm.Dollar, Cached: llm.Dollar, CacheWrite: 12 * llm.Dollar, CacheWriteLong: 20 * llm.Dollar, Output: 40 * llm.Dollar}}
	p.Batch = p.Rates.times(0.5)
	for _, c := range []struct {
		u     llm.Usage
		batch bool
		want  llm.Money // micro-dollars
	}{
		{llm.Usage{Input: 100, Output: 10}, false, 0},
		{llm.Usage{Input: 100, Cached: 100, Output: 10}, false, 900},
		{llm.Usage{Input: 100, Cached: 100, Output: 10}, true, 450},
		{llm.Usage{Input: 100, CacheWrite: 100}, false, -200},
		{llm.Usage{Input: 100, CacheWriteLong: 50, Cached: 50}, false, -50},
		{llm.Usage{Input: 10, Cached: -5}, false, 0},
	} {
		if got := p.Saved(c.u, c.batch); got != c.want*llm.Dollar/1_000_000 {
			t.Errorf("%+v: %v, want %v", c.u, got, c.want)
		}
	}
}

// TestAudio checks that sound has its own price, and that of text where none is known.
func TestAudio(t *testing.T) {
	t.Parallel()
	p := Price{Rates: Rates{Input: d(1), Cached: d(0.1), CacheWrite: d(1), CacheWriteLong: d(1), Output: d(2), Audio: d(3)}}
	u := llm.Usage{Input: 1_000_000, Audio: 400_000}
	if got, want := p.Cost(u, false), d(0.6+1.2); got != want {
		t.Errorf("it costs %v, want %v", got, want)
	}
	p.Audio = 0
	if got, want := p.Cost(u, false), d(1); got != want {
		t.Errorf("without a price of audio it costs %v, want %v", got, want)
	}
	for name, want := range map[string]float64{"gemini/gemini-2.5-flash": 1, "gemini/gemini-2.5-pro": 1.25, "openai/gpt-audio": 32} {
		if p, ok := Embedded().Find(name); !ok || p.Audio != d(want) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

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
