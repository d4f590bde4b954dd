package price

import (
	"strings"
	"testing"

	"parley/llm"
)

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
