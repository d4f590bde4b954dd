package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/provider"
	"parley/llm"
)

// TestMaxCostIsNeverExceeded: a call with its own limit never costs more, whatever fails and has to
// be repaired, with and without a budget for all calls. It reports its real cost.
func TestMaxCostIsNeverExceeded(t *testing.T) {
	t.Parallel()
	table := prices(t)
	p, _ := table.Find("lab/any")
	rapid.Check(t, func(r *rapid.T) {
		var billed atomic.Int64
		attempts := 0
		results := rapid.SliceOfN(rapid.SampledFrom([]string{"busy", "lost", "words", "answer"}), 1, 8).Draw(r, "results")
		m := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
			u := llm.Usage{Input: 30, Output: req.MaxTokens}
			result := results[min(attempts, len(results)-1)]
			attempts++
			switch result {
			case "busy":
				return nil, &llm.Error{Kind: llm.KindServer}
			case "lost":
				billed.Add(int64(p.Cost(u, false)))
				return nil, &llm.Error{Kind: llm.KindTransport, Uncertain: true}
			case "words":
				billed.Add(int64(p.Cost(u, false)))
				return &llm.Response{Text: "no JSON at all", Usage: u}, nil
			}
			billed.Add(int64(p.Cost(u, false)))
			return &llm.Response{Text: "{}", Usage: u}, nil
		})
		limit := rapid.SampledFrom([]llm.Money{0, llm.Dollar}).Draw(r, "budget")
		d := dispatcher(t, m, provider.Provider{}, func(c *Config) {
			c.Budget, c.Prices = budget.New(limit, 0), table
			c.Retry.Base, c.Retry.MaxPause = time.Nanosecond, time.Nanosecond
		})
		req := asked(1, 50, 50)[0]
		req.Schema = &llm.Schema{Name: "any", JSON: []byte(`{"type":"object"}`)}
		worst, err := d.Worst(req)
		if err != nil || worst <= 0 {
			r.Fatal(worst, err)
		}
		req.MaxCost = worst * llm.Money(rapid.IntRange(50, 400).Draw(r, "percent")) / 100
		resp, err := d.Ask(t.Context(), req)
		var cost llm.Money
		if err != nil {
			cost = llm.AsError(err).Metadata.Cost
		} else {
			cost = resp.Metadata.Cost
		}
		if cost > req.MaxCost || llm.Money(billed.Load()) > cost {
			r.Fatalf("may cost %v, says it cost %v, and %v was billed: %v", req.MaxCost, cost, llm.Money(billed.Load()), err)
		}
		if _, reserved := d.Budget().Spent(); reserved != 0 {
			r.Fatalf("%v is still set aside", reserved)
		}
		if req.MaxCost < worst && (attempts > 0 || !errors.Is(err, llm.ErrMaxCost)) {
			r.Fatalf("%d attempts were made of a call that does not fit: %v", attempts, err)
		}
		if errors.Is(err, llm.ErrMaxCost) && llm.KindOf(err) != llm.KindBudget {
			r.Fatal(err)
		}
		if req.MaxCost >= worst && results[0] == "answer" && err != nil {
			r.Fatalf("the first try fits: %v", err)
		}
	})
}

// TestWorst: the most expensive of a model and its fallbacks, and an error for an unknown price.
func TestWorst(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, patient(0), provider.Provider{}, func(c *Config) { c.Prices = prices(t) })
	req := asked(1, 50, 50)[0]
	small, err := d.Worst(req)
	if err != nil {
		t.Fatal(err)
	}
	req.MaxTokens = 500
	if large, err := d.Worst(req); err != nil || large <= small {
		t.Error(small, large, err)
	}
	req.Fallbacks = []string{"lab/unheard"}
	if _, err := d.Worst(req); llm.KindOf(err) != llm.KindBadRequest {
		t.Error(fmt.Errorf("an unknown price: %w", err))
	}
}
