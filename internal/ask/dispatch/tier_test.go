package dispatch

import (
	"context"
	"strings"
	"testing"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/llm"
)

// TestServiceTiers: a call is charged by the tier that answered it, a dearer tier is set aside for
// before, and one without a price is refused where there is a budget.
func TestServiceTiers(t *testing.T) {
	t.Parallel()
	table, err := price.Read(strings.NewReader(`{"models": {"lab/*": {"input": 1, "output": 4, "flex": 0.5, "priority": 2, "max_output": 200}, "bare/*": {"input": 1, "output": 4}}}`), "p")
	if err != nil {
		t.Fatal(err)
	}
	used := llm.Usage{Input: 100, Output: 50}
	const plain = 300 * llm.Dollar / 1_000_000 // 100 tokens of input and 50 of output
	for _, c := range []struct {
		asked, said string
		want        llm.Money
	}{
		{"", "", plain},
		{"", "default", plain},
		{"flex", "flex", plain / 2},
		{"flex", "default", plain}, // the server did not do it
		{"flex", "", plain},        // it does not say
		{"priority", "priority", 2 * plain},
		{"priority", "default", plain},
		{"priority", "", 2 * plain},
		{"auto", "priority", 2 * plain},
	} {
		m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			return &llm.Response{Text: strings.Repeat("word ", 50), Usage: used, Tier: c.said}, nil
		})
		d := dispatcher(t, m, provider.Provider{}, func(cfg *Config) { cfg.Budget, cfg.Prices = budget.New(llm.Dollar, 0), table })
		req := asked(1, 100, 50)[0]
		req.Tier = c.asked
		resp, err := d.Ask(t.Context(), req)
		if err != nil || resp.Metadata.Cost != c.want {
			t.Errorf("asked %q, said %q: %v, want %v (%v)", c.asked, c.said, resp, c.want, err)
		}
		base := *req
		base.Tier = "default"
		at, _ := d.Worst(req)
		standard, _ := d.Worst(&base)
		if dear := c.asked != "flex"; dear && at != 2*standard || !dear && at != standard { // without a tier, the account decides
			t.Errorf("asked %q: %v is set aside, %v for the standard tier", c.asked, at, standard)
		}
	}
	d := dispatcher(t, llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) { return nil, nil }), provider.Provider{Name: "bare"},
		func(cfg *Config) { cfg.Budget, cfg.Prices = budget.New(llm.Dollar, 0), table })
	req := asked(1, 100, 50)[0]
	req.Model, req.Tier = "bare/any", "priority"
	if _, err := d.Ask(t.Context(), req); llm.AsError(err).Code != "price_unknown" {
		t.Error(err)
	}
}
