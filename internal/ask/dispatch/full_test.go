package dispatch

import (
	"context"
	"testing"
	"testing/synctest"

	"parley/internal/ask/provider"
	"parley/llm"
)

// TestFull: accounts are full when enough calls wait at all of them, and not when one has none.
func TestFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := llm.Func(func(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
			<-ctx.Done()
			return nil, llm.ContextError(ctx)
		})
		lane := func(name string) Lane {
			return Lane{Provider: provider.Provider{Name: name, Limits: provider.Limits{Concurrency: 1}}, Model: stuck}
		}
		d, err := New(Config{Lanes: []Lane{lane("a"), lane("b")}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ask := func(model string, n int) {
			reqs := make([]*llm.Request, n)
			for i := range reqs {
				reqs[i] = &llm.Request{Model: model, Sample: i}
			}
			go d.All(ctx, reqs)
			synctest.Wait()
		}
		for _, c := range []struct {
			model string
			calls int
			full  bool
		}{{"a/x", 1, false}, {"b/x", 1, false}, {"a/x", ahead, false}, {"b/x", ahead - 1, false}, {"b/x", 1, true}} {
			if ask(c.model, c.calls); d.Full() != c.full {
				t.Errorf("%d more calls of %s: full is %t", c.calls, c.model, !c.full)
			}
		}
		cancel()
		synctest.Wait()
	})
}
