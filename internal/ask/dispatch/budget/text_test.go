package budget

import (
	"errors"
	"strings"
	"testing"

	"parley/internal/ask/price"
	"parley/llm"
)

// TestSums: a text about money has every sum that is not 0, in the same words.
func TestSums(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Sums{
		"$0.00 spent":                      {},
		"$1.20 spent, $0.30 at risk":       {Spent: llm.Dollars(1.2), AtRisk: llm.Dollars(0.3)},
		"$5.00 spent, $0.00 left of $4.00": {Spent: 5 * llm.Dollar, Limit: 4 * llm.Dollar},
		"$1.20 spent, $0.30 at risk, $2.43 set aside, $1.07 left of $5.00": {Spent: llm.Dollars(1.2), AtRisk: llm.Dollars(0.3), Aside: llm.Dollars(2.43), Limit: 5 * llm.Dollar},
	} {
		if got := s.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	b := New(5*llm.Dollar, 2*llm.Dollar)
	b.Lost(llm.Dollar / 2)
	if got, want := b.Sums().Text(), "$1.50 spent, $0.50 at risk, $3.00 left of $5.00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWhy: the refusal of a call says what makes it expensive, and a limit on its output that would fit.
func TestWhy(t *testing.T) {
	t.Parallel()
	table, err := price.Read(strings.NewReader(`{"models":{"lab/m":{"input":1,"output":10,"context":50000},"lab/unknown":{"input":1,"output":10}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	prices := NewPrices(table, func(string) bool { return true })
	for name, c := range map[string]struct {
		req  llm.Request
		want string
	}{
		"a limit":    {llm.Request{Model: "lab/m", MaxTokens: 64000}, "$0.10 is left of $0.20 ($0.08 spent, $0.02 at risk), too little for the next call: max_tokens: 64000 sets aside $0.640512; set agents.x.max_tokens to at most "},
		"no limit":   {llm.Request{Model: "lab/unknown"}, "$0.10 is left of $0.20 ($0.08 spent, $0.02 at risk), too little for the next call: no max_tokens (an answer may have 128,000 tokens) sets aside $1.280512; set agents.x.max_tokens to at most "},
		"the prompt": {llm.Request{Model: "lab/unknown", MaxTokens: 10, Messages: []llm.Message{llm.User(strings.Repeat("word", 100_000))}}, "$0.10 is left of $0.20 ($0.08 spent, $0.02 at risk), too little for the next call: the prompt (it may have 400,"},
	} {
		b := New(llm.Dollars(0.2), llm.Dollars(0.1))
		b.Lost(llm.Dollars(0.02))
		_, err := b.Open(t.Context(), prices, Want{Request: &c.req, Sent: &c.req})
		e := llm.AsError(err)
		r, ok := errors.AsType[*RefusalError](e.Err)
		if !ok || e.Kind != llm.KindBudget || !strings.HasPrefix(r.Text("max_tokens", "agents.x.max_tokens"), c.want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// What it says would fit does fit, and one token more does not.
		if n := r.terms.longest(b.Sums().Left()); n > 0 {
			c.req.MaxTokens = n
			if _, err := b.Open(t.Context(), prices, Want{Request: &c.req, Sent: &c.req}); err != nil {
				t.Errorf("%s: %d tokens: %v", name, n, err)
			}
			more := c.req
			more.MaxTokens++
			if prices.Lookup(more.Model).Terms(&more, false).Worst <= llm.Dollars(0.1) {
				t.Errorf("%s: %d tokens fit too", name, more.MaxTokens)
			}
		}
	}
}
