package dispatch

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/llm"
)

// TestImpossibleUsage: an answer with an impossible usage is malformed, is not asked for again, and
// costs what was set aside, even if the usage comes with an error.
func TestImpossibleUsage(t *testing.T) {
	t.Parallel()
	table := prices(t)
	for _, failed := range []bool{false, true} {
		calls := 0
		m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			calls++
			u := llm.Usage{Input: 10, Output: 1e15}
			if failed {
				return nil, &llm.Error{Kind: llm.KindTooLong, Usage: u}
			}
			return &llm.Response{Text: "yes", Usage: u}, nil
		})
		budget := budget.New(llm.Dollars(0.05), 0)
		d := dispatcher(t, m, provider.Provider{}, func(c *Config) { c.Budget, c.Prices = budget, table })
		req := asked(1, 50, 50)[0]
		req.Fallbacks = []string{"lab/any"}
		worst, err := d.Worst(req)
		if err != nil {
			t.Fatal(err)
		}
		if failed {
			req.Fallbacks = nil
		}
		_, err = d.Ask(t.Context(), req)
		e := llm.AsError(err)
		if e == nil || (e.Kind == llm.KindMalformed) == failed || calls != 1 || e.Metadata.Cost != worst || e.Usage != (llm.Usage{}) {
			t.Errorf("%d calls, %+v", calls, e)
		}
		if spent, reserved := budget.Spent(); spent != worst || reserved != 0 {
			t.Errorf("spent %v, %v set aside, want %v and nothing", spent, reserved, worst)
		}
		if s := d.Stats(); s.Usage != (llm.Usage{}) || s.Cost != 0 || s.Uncertain != worst {
			t.Errorf("counted %+v, %v, %v", s.Usage, s.Cost, s.Uncertain)
		}
	}
}

// TestNoUsage: a provider that reports no usage is charged nevertheless, and one notice for each
// model says so.
func TestNoUsage(t *testing.T) {
	t.Parallel()
	for _, limit := range []llm.Money{0, llm.Dollars(0.01)} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
				return &llm.Response{Text: "yes"}, nil
			})
			var mu sync.Mutex
			var reported []Notice
			budget := budget.New(limit, 0)
			d := dispatcher(t, m, provider.Provider{}, func(c *Config) {
				c.Budget, c.Prices = budget, prices(t)
				c.Events = onNotice(func(n Notice) {
					mu.Lock()
					defer mu.Unlock()
					reported = append(reported, n)
				})
			})
			req := asked(1, 50, 50)[0]
			worst, err := d.Worst(req)
			if err != nil {
				t.Fatal(err)
			}
			ok := 0
			for _, r := range d.All(t.Context(), asked(100, 50, 50)) {
				switch {
				case r.Err == nil:
					ok++
					if !r.Response.Metadata.Estimated || r.Response.Metadata.Cost <= 0 || limit > 0 && r.Response.Metadata.Cost != worst {
						t.Fatalf("%+v", r.Response.Metadata)
					}
				case llm.KindOf(r.Err) != llm.KindBudget:
					t.Fatal(r.Err)
				}
			}
			spent, reserved := budget.Spent()
			want := 100
			if limit > 0 {
				want = int(limit / worst)
			}
			if ok != want || reserved != 0 || limit > 0 && (spent > limit || spent != worst.Times(ok)) {
				t.Errorf("%d answered, want %d; spent %v, %v set aside", ok, want, spent, reserved)
			}
			if len(reported) != 1 || reported[0].Model != "lab/any" || !strings.Contains(reported[0].Text, "lab/any reports no token usage") {
				t.Errorf("reported %+v", reported)
			}
			if s := d.Stats(); s.Estimated != int64(ok) || s.Cost != spent {
				t.Errorf("%d estimated, cost %v", s.Estimated, s.Cost)
			}
		})
	}
}

// TestFreeModelsNeedNoUsage: a free model is not estimated, and there is no notice.
func TestFreeModelsNeedNoUsage(t *testing.T) {
	t.Parallel()
	m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) { return &llm.Response{Text: "yes"}, nil })
	table, err := price.Read(strings.NewReader(`{"models": {"lab/*": {"input": 0, "output": 0}}}`), "prices.json")
	if err != nil {
		t.Fatal(err)
	}
	d := dispatcher(t, m, provider.Provider{}, func(c *Config) {
		c.Budget, c.Prices = budget.New(llm.Dollar, 0), table
		c.Events = onNotice(func(n Notice) { t.Errorf("reported %+v", n) })
	})
	if resp, err := d.Ask(t.Context(), asked(1, 50, 50)[0]); err != nil || resp.Metadata.Estimated || resp.Metadata.Cost != 0 {
		t.Errorf("%+v, %v", resp, err)
	}
}

// TestHugeRequests: a request that may cost more than Money holds is refused, however much of the
// budget is left.
func TestHugeRequests(t *testing.T) {
	t.Parallel()
	for _, spent := range []llm.Money{0, llm.Dollars(0.1), llm.Dollars(0.2), math.MaxInt64} {
		for _, limit := range []llm.Money{llm.Dollars(0.2), math.MaxInt64 - 1} {
			budget := budget.New(limit, spent)
			d := dispatcher(t, answersAfter(0), provider.Provider{}, func(c *Config) { c.Budget, c.Prices = budget, prices(t) })
			for _, max := range []int{9_000_000_000_000_000_000, math.MaxInt} {
				if _, err := d.Ask(t.Context(), asked(1, 50, max)[0]); llm.KindOf(err) != llm.KindBudget {
					t.Errorf("%d tokens, %v of %v spent: %v", max, spent, limit, err)
				}
			}
			if now, reserved := budget.Spent(); now != spent || reserved != 0 {
				t.Errorf("spent %v, %v set aside", now, reserved)
			}
		}
	}
}

// TestHugeCostWithoutABudget: calls that may cost nearly all that Money holds, at once and without
// a budget, leave nothing set aside.
func TestHugeCostWithoutABudget(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, answersAfter(time.Microsecond), provider.Provider{}, func(c *Config) { c.Prices = prices(t) })
	reqs := asked(50, 50, math.MaxInt/4)
	for _, r := range reqs {
		r.MaxCost = math.MaxInt64
	}
	d.All(t.Context(), reqs)
	if spent, reserved := d.Budget().Spent(); reserved != 0 || spent < 0 {
		t.Errorf("spent %v, %v set aside", spent, reserved)
	}
}

// TestAbsurdPrompts: servers that report impossible prompts cost no more than was set aside,
// however many calls are in flight.
func TestAbsurdPrompts(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]llm.Usage{
		"input":  {Input: 9_900_000, Output: 5},
		"cached": {Input: 10, Cached: 9_000_000, Output: 5},
	} {
		for _, prov := range []provider.Provider{{}, compatible()} {
			prov.Limits.Concurrency = 20
			m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
				return &llm.Response{Text: "yes", Usage: u}, nil
			})
			budget := budget.New(llm.Dollars(0.01), 0)
			d := dispatcher(t, m, prov, func(c *Config) { c.Budget, c.Prices = budget, prices(t) })
			for _, r := range d.All(t.Context(), asked(100, 50, 50)) {
				if e := llm.AsError(r.Err); e == nil || e.Code != "impossible_usage" && e.Kind != llm.KindBudget {
					t.Fatalf("%s: %v", name, r.Err)
				}
			}
			if spent, reserved := budget.Spent(); spent > budget.Limit() || spent == 0 || reserved != 0 {
				t.Errorf("%s: spent %v of %v, %v set aside", name, spent, budget.Limit(), reserved)
			}
		}
	}
}

// TestDroppedStreams: if the reader of an answer stops, the bytes received are charged. A server
// that sent more than it was asked for is treated as such from then on.
func TestDroppedStreams(t *testing.T) {
	t.Parallel()
	m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
		return nil, &llm.Error{Kind: llm.KindCanceled, Uncertain: true, Received: 1 << 20}
	})
	table := prices(t)
	p, _ := table.Find("lab/any")
	for _, prov := range []provider.Provider{{}, compatible()} {
		budget := budget.New(llm.Dollar, 0)
		d := dispatcher(t, m, prov, func(c *Config) { c.Budget, c.Prices = budget, table })
		req := asked(1, 50, 50)[0]
		before := d.prices.Lookup(req.Model).Terms(req, false).Worst
		_, err := d.Ask(t.Context(), req)
		least := p.Cost(llm.Usage{Output: 1 << 20 / bytesPerToken}, false)
		if e := llm.AsError(err); e == nil || e.Metadata.Cost < least {
			t.Errorf("charged %v, want at least %v", e, least)
		}
		if after := d.prices.Lookup(req.Model).Terms(req, false).Worst; after < least || before >= least {
			t.Errorf("%v set aside before and %v after, want at least %v", before, after, least)
		}
	}
}

// TestServerStopsKeepingLimits: a server that stops keeping limits after n answers makes a run overspend by 2n
// answers at most.
func TestServerStopsKeepingLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l billing
		const honest = 3
		d, _ := l.ask(t, compatible(), llm.Dollars(0.1), 200, func(n, asked int) (int, llm.Finish) {
			if n < honest {
				return asked, llm.FinishLength
			}
			return 100_000, llm.FinishStop
		})
		spent, reserved := d.Budget().Spent()
		if spent > d.Budget().Limit()+l.maxCost.Times(2*honest) || l.peak > 2*honest || reserved != 0 {
			t.Errorf("spent %v of %v, %v for one answer, %d at once, %v set aside", spent, d.Budget().Limit(), l.maxCost, l.peak, reserved)
		}
	})
}

// TestNoTokens: one notice says what a model leaves out of the token ids and log probabilities that were asked for.
func TestNoTokens(t *testing.T) {
	t.Parallel()
	one, two := []llm.Logprob{{Logprob: -1}}, []llm.Logprob{{Logprob: -1}, {Logprob: -1}}
	for _, c := range []struct {
		asked       bool
		ids, prompt []int
		logprobs    []llm.Logprob
		want        string
	}{
		{true, nil, nil, nil, "returns no token ids, although"}, {false, nil, nil, nil, ""}, {true, []int{1}, []int{1}, one, ""},
		{true, []int{1}, nil, one, "returns no token ids of the prompt"}, {true, []int{-1}, []int{1}, one, "returns negative token ids"},
		{true, []int{1}, []int{1}, nil, "returns no log probabilities"}, {true, []int{1}, []int{1}, two, "does not return one log probability for each token"},
	} {
		m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			return &llm.Response{Text: "yes", TokenIDs: c.ids, PromptTokenIDs: c.prompt, Logprobs: c.logprobs, Finish: llm.FinishStop, Usage: llm.Usage{Input: 1, Output: 1}}, nil
		})
		var reported []string
		d := dispatcher(t, m, provider.Provider{}, func(c *Config) { c.Events = onNotice(func(n Notice) { reported = append(reported, n.Text) }) })
		for range 3 {
			req := asked(1, 10, 10)[0]
			req.TokenIDs, req.Logprobs = c.asked, c.asked
			if _, err := d.Ask(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		if c.want == "" && len(reported) > 0 || c.want != "" && (len(reported) != 1 || !strings.HasPrefix(reported[0], "lab/any "+c.want)) {
			t.Errorf("%+v: reported %q", c, reported)
		}
	}
}
