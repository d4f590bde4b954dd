package price

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/llm"
)

func TestFind(t *testing.T) {
	t.Parallel()
	table := Embedded()
	tests := []struct {
		model string
		input float64 // dollars a million, -1 for unknown
	}{
		{"openai/gpt-6.1-sol", 2},
		{"openai/gpt-6.1-sol-2026-09-29", 2},
		{"openai/gpt-5-2025-08-07", 1.25},
		{"openai/gpt-4o-2024-11-20", 2.5},
		{"openai/gpt-4o-2024-05-13", 5},
		{"openai/GPT-5", 1.25},
		{"openai/gpt-4-turbo-2024-04-09", 10},
		{"openai/gpt-4-0613", 30},
		{"openai/gpt-3.5-turbo", 0.5},
		{"openai/gpt-3.5-turbo-instruct", -1},
		{"anthropic/claude-3-opus-20240229", 15},
		{"anthropic/claude-3-opus-latest", 15},
		{"anthropic/claude-3-5-sonnet-latest", 3},
		{"anthropic/claude-3-haiku-20240307", 0.25},
		{"openrouter/anthropic/claude-3.5-sonnet", 3},
		{"openai/gpt-4o-latest", -1},
		{"openai-responses/gpt-5", 1.25},
		{"anthropic/claude-sonnet-4-5-20250929", 3},
		{"anthropic/claude-sonnet-4-5@20250929", 3},
		{"anthropic/claude-sonnet-4-20250514", 3},
		{"openrouter/anthropic/claude-opus-5.5", 4},
		{"openrouter/anthropic/claude-opus-5-5", 4},
		{"openrouter/x-ai/grok-4.7", 2},
		{"openrouter/google/gemini-2.5-pro", 1.25},
		{"openrouter/mistralai/mistral-large-2512", 0.5},
		{"openrouter/deepseek/deepseek-v4-pro", 1.32},
		{"google/gemini-2.5-pro", 1.25},
		{"together/deepseek-ai/deepseek-v4.1-flash", 0.3},
		{"together_ai/deepseek-ai/DeepSeek-V4.1-Flash", 0.3},
		{"groq/openai/gpt-oss-120b", 0.15},
		{"ollama/llama3.3:70b", 0},
		{"vllm/Qwen/Qwen3-8B", 0},
		{"sglang/x", 0},
		{"sim/whatever", 0.1},

		{"openai/gpt-5-turbo", -1},
		{"openai/gpt-5.9", -1},
		{"openai/gpt", -1},
		{"openai/claude-opus-5-5", -1},
		{"anthropic/gpt-5", -1},
		{"mistral/mistral-large-2411", -1},
		{"openrouter/ollama/llama3", -1}, // a pattern of ours is not OpenRouter's vendor
		{"azure-responses/gpt-4.1", 2},
		{"bedrock/eu.anthropic.claude-opus-5", 5.5},
		{"bedrock/anthropic.claude-opus-5", 5},
		{"vertex/gemini-3.8-flash", 1.5},
		{"vertex-anthropic/claude-opus-5@20260801", 5},
		{"cohere/command-a-03-2025", 2.5},
		{"fireworks/accounts/fireworks/models/kimi-k2p5", 0.6},
		{"openrouter/openai", -1},
		{"openrouter/openai/gpt-5:free", -1},
		{"gpt-5", -1},
		{"ollama", -1},
		{"openai/", -1},
		{"/", -1},
		{"", -1},
		{"-2025-08-07", -1},
		{"@20250807", -1},
	}
	for _, tt := range tests {
		p, ok := table.Find(tt.model)
		if ok != (tt.input >= 0) {
			t.Errorf("%q: known is %v", tt.model, ok)
			continue
		}
		if ok && p.Input != llm.Dollars(tt.input) {
			t.Errorf("%q: input costs %v, want %v", tt.model, p.Input, tt.input)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	table := Embedded()
	tests := []struct{ model, want string }{
		{"openai/gpt-6.1-sool", "openai/gpt-6.1-sol"},
		{"gpt-6.1-sol", "openai/gpt-6.1-sol"},
		{"anthropic/claude-opos-5-5", "anthropic/claude-opus-5-5"},
		{"antropic/claude-opus-5-5", "anthropic/claude-opus-5-5"},
		{"openai/gpt5", "openai/gpt-5"},
		{"completely/different-thing-altogether", ""},
		{"", ""},
		{strings.Repeat("x", 1000), ""},
	}
	for _, tt := range tests {
		got, ok := table.Nearest(tt.model)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("nearest to %q is %q, want %q", tt.model, got, tt.want)
		}
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	table := Embedded()
	if got := table.AsOf(); got != "2026-11-15" {
		t.Errorf("as of %q", got)
	}
	models := table.Models()
	if !slices.IsSorted(models) {
		t.Error("models are not sorted")
	}
	providers := map[string]int{}
	for _, name := range models {
		provider, _ := llm.SplitModel(name)
		providers[provider]++
		p, ok := table.Find(name)
		if !ok {
			t.Errorf("%s: not found under its own name", name)
		}
		free := p.Rates == (Rates{})
		switch {
		case free:
		case p.Cached > p.Input, p.CacheWrite < p.Input && p.CacheWrite > 0, p.CacheWriteLong < p.CacheWrite, p.Output < p.Input:
			t.Errorf("%s: odd rates %+v", name, p.Rates)
		case p.Batch.Input > p.Input, p.Batch.Output > p.Output, p.Batch.Cached > p.Cached:
			t.Errorf("%s: a batch costs more: %+v", name, p)
		}
		for _, tier := range p.Above {
			if tier.Input < p.Input || tier.Output < p.Output || (p.Batch != Rates{}) != (tier.Batch != Rates{}) {
				t.Errorf("%s: odd tier %+v", name, tier)
			}
		}
	}
	for _, provider := range []string{"openai", "anthropic", "gemini", "deepseek", "mistral", "groq", "together", "xai", "ollama", "vllm", "sglang", "sim"} {
		if providers[provider] == 0 {
			t.Errorf("no model of %s", provider)
		}
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	read := func(s string) *Table {
		table, err := Read(strings.NewReader(s), "test")
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	over := read(`{"models": {"openai/gpt-5": {"input": 9, "output": 9}, "lab/*": {"input": 1, "output": 1}, "lab/big-*": {"input": 2, "output": 2}}}`)
	table := Embedded().With(over)
	for model, want := range map[string]float64{
		"openai/gpt-5": 9, "openai/gpt-5-2025-08-07": 9, "openai/gpt-5-mini": 0.25,
		"lab/x": 1, "lab/big-x": 2, "lab/big": 1, "sim/x": 0.1,
	} {
		if p, ok := table.Find(model); !ok || p.Input != llm.Dollars(want) {
			t.Errorf("%s: %v %v, want %v", model, p.Input, ok, want)
		}
	}
	if table.AsOf() != "2026-11-15" {
		t.Errorf("as of %q", table.AsOf())
	}
	if p, _ := Embedded().Find("openai/gpt-5"); p.Input != llm.Dollars(1.25) {
		t.Error("With changed the table below")
	}
	if n := len(table.Models()); n != len(Embedded().Models())+2 {
		t.Errorf("%d models", n)
	}
}

// TestSavings: it says what prompt caches saved, or cost, for models whose price is known.
func TestSavings(t *testing.T) {
	t.Parallel()
	table, err := Read(strings.NewReader(`{"as_of": "2026-11-15", "models": {"lab/*": {"input": 10, "cached": 1, "cache_write": 12.5, "output": 40, "batch": 0.5, "above": [{"over": 1000, "input": 20, "output": 80}]}}}`), "p")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		used map[string]llm.Usage
		want string
	}{
		{"nothing cached", map[string]llm.Usage{"lab/a": {Input: 5_000_000, Output: 100}}, ""},
		{"no price", map[string]llm.Usage{"other/a": {Input: 5_000_000, Cached: 1_000_000}}, ""},
		{
			"read", map[string]llm.Usage{"lab/a": {Input: 5_000_000, Cached: 1_000_000}, "other/a": {Input: 9, Cached: 9}},
			"held 1000000 tokens of the prompts. At the list prices of 2026-11-15, what was read from and written to them cost $1.00, and would have cost $10.00 otherwise: $9.00 less.",
		},
		{"written", map[string]llm.Usage{"lab/a": {Input: 5_000_000, Cached: 100_000, CacheWrite: 1_000_000}}, "$1.60 more, since writing"},
	} {
		if got := table.Savings(c.used); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// TestRecorded: a recorded price is the same price again, a change of it is noticed, and one that no file could have is refused.
func TestRecorded(t *testing.T) {
	t.Parallel()
	read := func(input string) *Table {
		table, err := Read(strings.NewReader(`{"models": {"lab/a": {"input": `+input+`, "output": 0.000000007, "batch": 0.5, "above": [{"over": 10, "input": 3, "output": 9}], "max_output": 60, "context": 100}}}`), "prices")
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	models := []string{"lab/a", "lab/unknown"}
	first := read("1")
	recorded := first.Of(models)
	again, err := Recorded(recorded)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := first.Find("lab/a")
	if got, ok := again.Find("lab/a"); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, ok := again.Find("lab/unknown"); ok {
		t.Error("a model without a price has one")
	}
	if same, other := first.Repriced(models, recorded), read("2").Repriced(models, recorded); len(same) > 0 || !slices.Equal(other, models[:1]) {
		t.Errorf("repriced: %v, want none; %v, want %v", same, other, models[:1])
	}
	for _, bad := range []string{`{"Input": -1}`, `{"Above": [{"Over": 0}]}`, `{"Output": 2000000}`, `{"MaxOutput": -5}`, `7`} {
		if table, err := Recorded(map[string]json.RawMessage{"lab/a": json.RawMessage(bad)}); err == nil {
			t.Errorf("%s: %v", bad, table)
		}
	}
}
