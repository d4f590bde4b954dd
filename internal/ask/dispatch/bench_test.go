package dispatch

import (
	"context"
	"slices"
	"testing"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/provider"
	"parley/llm"
)

// BenchmarkAll measures dispatch itself: every layer, with a model that answers at
// once. The target is 200,000 calls a second on two cores.
func BenchmarkAll(b *testing.B) {
	answer := llm.Response{Text: "yes", Finish: llm.FinishStop, Usage: llm.Usage{Input: 20, Output: 1}}
	m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
		r := answer
		return &r, nil
	})
	for _, bm := range []struct {
		name   string
		limits provider.Limits
		budget llm.Money
	}{
		{"free", provider.Limits{Concurrency: 1000}, 0},
		{"paced", provider.Limits{Concurrency: 1000, RPM: 1e12, TPM: 1e15}, 0},
		{"budget", provider.Limits{Concurrency: 1000}, 1_000_000 * llm.Dollar},
	} {
		b.Run(bm.name, func(b *testing.B) {
			d, err := New(Config{
				Lanes:  []Lane{{Provider: provider.Provider{Name: "sim", Limits: bm.limits}, Model: m}},
				Budget: budget.New(bm.budget, 0),
			})
			if err != nil {
				b.Fatal(err)
			}
			reqs := slices.Repeat([]*llm.Request{{Model: "sim/small", MaxTokens: 10, Messages: []llm.Message{llm.User("Say yes.")}}}, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			for _, r := range d.All(b.Context(), reqs) {
				if r.Err != nil {
					b.Fatal(r.Err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
