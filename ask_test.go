package parley_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/llm"
)

// newAsker makes an Asker for a test.
func newAsker(t *testing.T, c parley.AskerConfig) *parley.Asker {
	t.Helper()
	a, err := parley.NewAsker(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// mine is a provider with a model of the test's.
func mine(m llm.Func) map[string]parley.Provider {
	return map[string]parley.Provider{"mine": {Model: m}}
}

// questions are n requests of a model.
func questions(model string, n int) iter.Seq[*llm.Request] {
	return func(yield func(*llm.Request) bool) {
		for i := range n {
			prompt := fmt.Sprintf("What is %d plus %d?", i, i)
			if !yield(&llm.Request{Model: model, Messages: []llm.Message{llm.User(prompt)}}) {
				return
			}
		}
	}
}

// TestAskStorm asks a server that allows less than is asked for, and fails now and then.
func TestAskStorm(t *testing.T) {
	t.Parallel()
	handler, err := simhttp.New(simhttp.Config{Sim: sim.Config{
		Limits: sim.Limits{RPM: 1800, Burst: time.Second, Concurrency: 8},
		Faults: sim.Faults{sim.FaultError500: 0.2, sim.FaultOverloaded: 0.1, sim.FaultReset: 0.1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	asker := newAsker(t, parley.AskerConfig{Providers: map[string]parley.Provider{"lab": {BaseURL: server.URL + "/v1"}}, Retries: 50})
	const n = 60
	var attempts int
	seen := map[int]bool{}
	for i, result := range asker.Each(t.Context(), questions("lab/small", n)) {
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		seen[i] = true
		attempts += result.Response.Metadata.Attempts
	}
	if len(seen) != n || attempts <= n { // some faults come at the first try, whatever the clock says
		t.Errorf("%d of %d answered in %d attempts: there was no storm", len(seen), n, attempts)
	}
}

// TestAskLeft leaves a loop early, and closes an Asker with calls in flight.
func TestAskLeft(t *testing.T) {
	t.Parallel()
	var began sync.WaitGroup
	began.Add(1)
	var first atomic.Bool
	asker := newAsker(t, parley.AskerConfig{Providers: mine(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
		if !first.Swap(true) {
			return &llm.Response{Text: "the first"}, nil
		}
		if req.Model == "mine/waits" {
			began.Done()
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})})
	for _, result := range asker.Each(t.Context(), questions("mine/any", 1000)) {
		if result.Err != nil || result.Response.Text != "the first" {
			t.Errorf("%+v", result)
		}
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := asker.Ask(ctx, &llm.Request{Model: "mine/waits", Messages: []llm.Message{llm.User("?")}})
		if llm.KindOf(err) != llm.KindCanceled {
			t.Errorf("in flight: %v", err)
		}
	})
	began.Wait()
	wg.Go(func() {
		if err := asker.Close(); err != nil { // waits for it
			t.Error(err)
		}
	})
	cancel()
	wg.Wait()
	if _, err := asker.Ask(t.Context(), &llm.Request{}); llm.KindOf(err) != llm.KindCanceled {
		t.Errorf("closed: %v", err)
	}
	for _, result := range asker.Each(t.Context(), questions("mine/any", 3)) {
		if llm.KindOf(result.Err) != llm.KindCanceled {
			t.Errorf("closed: %v", result.Err)
		}
	}
}

// TestAskSchema wants the Text of a model of one's own to be read as the answer to a Schema.
func TestAskSchema(t *testing.T) {
	t.Parallel()
	asker := newAsker(t, parley.AskerConfig{Providers: mine(func(context.Context, *llm.Request) (*llm.Response, error) {
		return &llm.Response{Text: `{"bid": 3}`}, nil
	})})
	for schema, ok := range map[string]bool{
		`{"type":"object","properties":{"bid":{"type":"integer"}},"required":["bid"]}`: true,
		`{"type":"object","properties":{"bid":{"type":"string"}},"required":["bid"]}`:  false,
	} {
		got, err := asker.Ask(t.Context(), &llm.Request{
			Model: "mine/any", Messages: []llm.Message{llm.User("?")}, Schema: &llm.Schema{Name: "bid", JSON: []byte(schema)},
		})
		if (err == nil) != ok || ok && string(got.JSON) != `{"bid":3}` && string(got.JSON) != `{"bid": 3}` {
			t.Errorf("%s: %+v, %v", schema, got, err)
		}
	}
}

// TestAskPanics panics in a loop: what is in flight is canceled, and the Asker can be closed.
func TestAskPanics(t *testing.T) {
	t.Parallel()
	asker := newAsker(t, parley.AskerConfig{})
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	for range asker.Each(t.Context(), questions("sim/small", 100)) {
		panic("in the loop")
	}
}

// TestAskBudget wants the budget to hold, and a cache to answer for nothing.
func TestAskBudget(t *testing.T) {
	t.Parallel()
	c := parley.AskerConfig{Budget: llm.Dollars(0.005), Cache: t.TempDir()}
	ask := func() (answered int, cost llm.Money) {
		asker := newAsker(t, c)
		for _, result := range asker.Each(t.Context(), limited(t, "sim/large", 400)) {
			switch llm.KindOf(result.Err) {
			case "":
				answered++
			case llm.KindBudget:
			default:
				t.Error(result.Err)
			}
		}
		return answered, asker.Cost()
	}
	some, cost := ask()
	if some == 0 || some == 400 || cost == 0 || cost > c.Budget {
		t.Errorf("%d answers for %v of %v", some, cost, c.Budget)
	}
	c.Budget = llm.Dollars(10)
	if all, more := ask(); all != 400 || more == 0 {
		t.Errorf("%d answers for %v with a larger budget", all, more)
	}
	if all, nothing := ask(); all != 400 || nothing != 0 {
		t.Errorf("%d answers for %v out of the cache", all, nothing)
	}
}

// limited are questions whose answers have a longest length, so that their price has a bound.
func limited(t *testing.T, model string, n int) func(func(*llm.Request) bool) {
	t.Helper()
	return func(yield func(*llm.Request) bool) {
		for req := range questions(model, n) {
			req.MaxTokens = 200
			if !yield(req) {
				return
			}
		}
	}
}

// TestAskRefuses wants errors and no panics for what cannot be asked.
func TestAskRefuses(t *testing.T) {
	t.Parallel()
	asker := newAsker(t, parley.AskerConfig{Providers: mine(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		if req.Model == "mine/refuses" {
			return nil, &llm.Error{Kind: llm.KindBadRequest, Provider: "another", Message: "not that"}
		}
		panic("boom")
	}), Retries: math.MaxInt})
	for name, c := range map[string]struct {
		req  *llm.Request
		want string
	}{
		"nil":              {nil, "provider/model, as sim/small; the providers are anthropic, azure, azure-responses, bedrock, deepseek, gemini, groq, mine, ollama"},
		"no provider":      {&llm.Request{Model: "small"}, "groq, mine, ollama"},
		"unknown provider": {&llm.Request{Model: "mni/small"}, `bad request: provider "mni" is not known; use one of anthropic`},
		"did you mean":     {&llm.Request{Model: "mni/small"}, "did you mean mine?"},
		"refuses":          {&llm.Request{Model: "mine/refuses"}, "not that"},
		"panics":           {&llm.Request{Model: "mine/any"}, "boom"},
	} {
		_, err := asker.Ask(t.Context(), c.req)
		if _, ok := errors.AsType[*llm.Error](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		for _, result := range asker.Each(t.Context(), func(yield func(*llm.Request) bool) { yield(c.req) }) {
			if result.Err == nil || !strings.Contains(result.Err.Error(), c.want) {
				t.Errorf("%s: from Each: %v", name, result.Err)
			}
		}
	}
	for name, c := range map[string]parley.AskerConfig{
		"budget":      {Budget: -1},
		"concurrency": {Concurrency: math.MinInt},
		"unreachable": {Unreachable: -time.Second},
		"trust":       {Trust: []string{"="}},
		"prices":      {Prices: "none.json"},
		"name":        {Providers: map[string]parley.Provider{"a b": {BaseURL: "http://127.0.0.1/v1"}}},
		"address":     {Providers: map[string]parley.Provider{"lab": {BaseURL: "ftp://x"}}},
		"nobody":      {Providers: map[string]parley.Provider{"lab": {}}},
		"dialect":     {Providers: map[string]parley.Provider{"lab": {Dialect: "klingon", BaseURL: "http://127.0.0.1/v1"}}},
		"limits":      {Providers: map[string]parley.Provider{"lab": {BaseURL: "http://127.0.0.1/v1", RPM: math.Inf(1)}}},
	} {
		a, err := parley.NewAsker(c)
		if err == nil || a != nil || !strings.HasPrefix(err.Error(), "parley: ") || commandLine.MatchString(err.Error()) || strings.Contains(err.Error(), "base_url") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
