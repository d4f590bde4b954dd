package price

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/llm"
)

func d(dollars float64) llm.Money { return llm.Dollars(dollars) }

func TestOwnFormat(t *testing.T) {
	t.Parallel()
	table, err := Read(strings.NewReader(`{"as_of": "2027-01-01", "source": "mine", "models": {
		"lab/a": {"input": 2, "output": 8},
		"lab/heard": {"input": 2, "output": 8, "audio": 6, "batch": {"input": 1, "output": 4}, "flex": 0.5, "above": [{"over": 9, "input": 4, "output": 16}]},
		"lab/b": {"input": 2, "cached": 0.2, "cache_write": 2.5, "output": 8, "batch": 0.5, "max_output": 8192, "context": 128000, "note": "x",
			"above": [{"over": 100000, "input": 4, "output": 16, "batch": {"input": 1, "output": 3}}]}}}`), "mine.json")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := table.Find("lab/a")
	if want := (Rates{d(2), d(2), d(2), d(2), d(8), 0}); a.Rates != want || a.Batch != (Rates{}) {
		t.Errorf("a is %+v", a)
	}
	heard, _ := table.Find("lab/heard")
	if heard.Audio != d(6) || heard.Batch.Audio != d(6) || heard.Flex.Audio != d(3) || heard.Above[0].Audio != d(6) || heard.Priority.Audio != 0 {
		t.Errorf("the prices of audio are %+v", heard)
	}
	b, _ := table.Find("lab/b")
	if want := (Rates{d(2), d(0.2), d(2.5), d(2.5), d(8), 0}); b.Rates != want {
		t.Errorf("b is %+v", b.Rates)
	}
	if want := (Rates{d(1), d(0.1), d(1.25), d(1.25), d(4), 0}); b.Batch != want {
		t.Errorf("b's batch is %+v", b.Batch)
	}
	if want := (Rates{d(1), d(1), d(1), d(1), d(3), 0}); len(b.Above) != 1 || b.Above[0].Over != 100_000 || b.Above[0].Batch != want {
		t.Errorf("b's tiers are %+v", b.Above)
	}
	if b.MaxOutput != 8192 || b.Context != 128_000 || table.AsOf() != "2027-01-01" {
		t.Errorf("limits are %d %d, as of %s", b.MaxOutput, b.Context, table.AsOf())
	}
}

const liteLLM = `{
	"sample_spec": {"input_cost_per_token": 0.0, "max_input_tokens": "words", "mode": "one of: chat"},
	"gpt-x": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05,
		"cache_read_input_token_cost": 1.25e-07, "input_cost_per_token_batches": 6.25e-07, "output_cost_per_token_batches": 5e-06,
		"input_cost_per_audio_token": 3.2e-05, "max_input_tokens": 272000, "max_output_tokens": 128000, "supports_vision": true},
	"claude-x": {"litellm_provider": "anthropic", "mode": "chat", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05,
		"cache_creation_input_token_cost": 3.75e-06, "cache_creation_input_token_cost_above_1hr": 6e-06, "cache_read_input_token_cost": 3e-07,
		"input_cost_per_token_above_200k_tokens": 6e-06, "output_cost_per_token_above_200k_tokens": 2.25e-05,
		"cache_creation_input_token_cost_above_1hr_above_200k_tokens": 1.2e-05, "max_output_tokens": "many"},
	"gemini/gemini-x": {"litellm_provider": "gemini", "input_cost_per_token": 1e-07, "output_cost_per_token": 4e-07, "mode": "chat",
		"input_cost_per_token_above_128k_tokens": 2e-07, "output_cost_per_token_above_128k_tokens": 5e-07, "input_cost_per_token_above_272k_tokens": 3e-07},
	"together_ai/meta/x": {"litellm_provider": "together_ai", "mode": "chat", "input_cost_per_token": 2e-07, "output_cost_per_token": 2e-07},
	"lab/own": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06},
	"embed-x": {"litellm_provider": "openai", "mode": "embedding", "input_cost_per_token": 1e-07, "output_cost_per_token": 0.0},
	"eu.anthropic.claude-x-v1:0": {"litellm_provider": "bedrock_converse", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06},
	"vertex_ai/claude-x": {"litellm_provider": "vertex_ai-anthropic_models", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06},
	"fireworks_ai/accounts/fireworks/models/x": {"litellm_provider": "fireworks_ai", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06},
	"image-x": {"litellm_provider": "openai", "mode": "image_generation", "output_cost_per_image": 0.04}
}`

func TestLiteLLMFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model_prices_and_context_window.json")
	if err := os.WriteFile(path, []byte(liteLLM), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(table.Models(), " "); got != "anthropic/claude-x bedrock/eu.anthropic.claude-x-v1:0 fireworks/accounts/fireworks/models/x gemini/gemini-x lab/own openai/gpt-x together_ai/meta/x vertex-anthropic/claude-x" {
		t.Errorf("models are %s", got)
	}
	gpt, _ := table.Find("openai/gpt-x")
	if want := (Rates{d(1.25), d(0.125), d(1.25), d(1.25), d(10), d(32)}); gpt.Rates != want || gpt.MaxOutput != 128_000 || gpt.Context != 272_000 {
		t.Errorf("gpt-x is %+v", gpt)
	}
	if want := (Rates{d(0.625), d(0.125), d(0.625), d(0.625), d(5), d(32)}); gpt.Batch != want {
		t.Errorf("gpt-x's batch is %+v", gpt.Batch)
	}
	claude, _ := table.Find("anthropic/claude-x-20270101")
	if want := (Tier{Over: 200_000, Rates: Rates{d(6), d(0.3), d(3.75), d(12), d(22.5), 0}}); len(claude.Above) != 1 || claude.Above[0] != want {
		t.Errorf("claude-x's tiers are %+v", claude.Above)
	}
	gemini, _ := table.Find("gemini/gemini-x")
	if len(gemini.Above) != 2 || gemini.Above[1].Input != d(0.3) || gemini.Above[1].Output != d(0.5) {
		t.Errorf("gemini-x's tiers are %+v", gemini.Above)
	}
	if _, ok := table.Find("together/meta/x"); !ok {
		t.Error("together's model is not found under our name for it")
	}
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"not JSON", `prices:`, "f.json: want a JSON object"},
		{"a list", `[]`, "want a JSON object"},
		{"nothing in it", `{}`, "no prices"},
		{"something else", `{"name": "x"}`, `"name": want a JSON object`},
		{"objects, but no prices", `{"a": {"b": 1}}`, "no prices"},
		{"unknown key at the top", `{"models": {}, "model": 1}`, "model: unknown key"},
		{"models is a list", `{"models": []}`, "models: want a JSON object"},
		{"as_of is a number", `{"as_of": 3, "models": {}}`, "as_of: want a day"},
		{"no provider", `{"models": {"gpt-5": {"input": 1, "output": 1}}}`, `models."gpt-5": a model is written provider/model`},
		{"misspelt rate", `{"models": {"a/b": {"input": 1, "outptu": 1}}}`, `models."a/b": outptu: unknown key`},
		{"no output", `{"models": {"a/b": {"input": 1}}}`, `models."a/b": output: missing`},
		{"a word for a price", `{"models": {"a/b": {"input": "free", "output": 1}}}`, `input: want a price in dollars, not "free"`},
		{"a negative price", `{"models": {"a/b": {"input": -1, "output": 1}}}`, "input: -1 is not a price"},
		{"an absurd price", `{"models": {"a/b": {"input": 1e300, "output": 1}}}`, "input: 1e300 is not a price"},
		{"batch above one", `{"models": {"a/b": {"input": 1, "output": 1, "batch": 2}}}`, "batch: 2 is not a part"},
		{"batch is a word", `{"models": {"a/b": {"input": 1, "output": 1, "batch": "half"}}}`, "batch: want a part"},
		{"batch with an unknown key", `{"models": {"a/b": {"input": 1, "output": 1, "batch": {"in": 1}}}}`, "in: unknown key"},
		{"above is an object", `{"models": {"a/b": {"input": 1, "output": 1, "above": {}}}}`, "above: want a list"},
		{"tier without over", `{"models": {"a/b": {"input": 1, "output": 1, "above": [{"input": 1, "output": 1}]}}}`, "above[0].over"},
		{"tiers out of order", `{"models": {"a/b": {"input": 1, "output": 1, "above": [{"over": 2, "input": 1, "output": 1}, {"over": 2, "input": 1, "output": 1}]}}}`, "above[1].over: 2"},
		{"half a token", `{"models": {"a/b": {"input": 1, "output": 1, "max_output": 1.5}}}`, "max_output: want a number of tokens, not 1.5"},
		{"LiteLLM with a word", `{"gpt-x": {"litellm_provider": "openai", "input_cost_per_token": "x", "output_cost_per_token": 1}}`, `"gpt-x": input_cost_per_token: want a price`},
		{"LiteLLM by the million", `{"gpt-x": {"litellm_provider": "openai", "input_cost_per_token": 2.5, "output_cost_per_token": 10}}`, `"gpt-x": input_cost_per_token: 2.5 is not a price`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(strings.NewReader(tt.in), "f.json")
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "f.json: ") {
				t.Errorf("error is %v, want it to say %q", err, tt.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("a missing file gives %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(liteLLM)
	f.Add(string(embedded[:0]))
	f.Add(`{"models": {"a/b": {"input": 1, "output": 1, "batch": 0.5, "above": [{"over": 1, "input": 2, "output": 2}]}}}`)
	f.Fuzz(func(t *testing.T, in string) {
		table, err := Read(strings.NewReader(in), "fuzz")
		if err != nil {
			return
		}
		for _, name := range table.Models() {
			p, ok := table.Find(name)
			if !ok {
				t.Fatalf("%q is not found under its own name", name)
			}
			u := llm.Usage{Input: 300_000, Cached: 1000, CacheWrite: 1000, CacheWriteLong: 1000, Output: 1000}
			if p.Cost(u, true) > p.Worst(300_000, 1000, true) {
				t.Fatalf("%q costs more than its worst", name)
			}
		}
	})
}
