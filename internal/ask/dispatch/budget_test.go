package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/llm"
)

// compatible is a provider at an unknown address.
func compatible() provider.Provider {
	return provider.Provider{Dialect: "openai", BaseURL: "https://lab.example/v1", Limits: provider.Limits{Concurrency: 50}}
}

// billing is what a scripted server billed, and the notices about it.
type billing struct {
	mu       sync.Mutex
	billed   llm.Money
	maxCost  llm.Money // for one answer
	answers  int
	inFlight int
	peak     int // in flight at once
	reported []Notice
}

// answering is a server that takes a second and answers with as many tokens as length returns.
func (l *billing) answering(p price.Price, length func(n, asked int) (tokens int, why llm.Finish)) llm.Model {
	return llm.Func(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
		l.mu.Lock()
		l.inFlight++
		l.peak = max(l.peak, l.inFlight)
		n := l.answers
		l.answers++
		l.mu.Unlock()
		time.Sleep(time.Second)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.inFlight--
		out, why := length(n, req.MaxTokens)
		u := llm.Usage{Input: 20, Output: out}
		cost := p.Cost(u, false)
		l.billed, l.maxCost = l.billed.Plus(cost), max(l.maxCost, cost)
		return &llm.Response{Text: strings.Repeat("word ", out), Usage: u, Finish: why}, nil
	})
}

// ask asks n requests for at most 50 tokens, with a budget, of a server that behaves as length
// says.
func (l *billing) ask(t *testing.T, prov provider.Provider, limit llm.Money, n int, length func(n, asked int) (int, llm.Finish)) (*Dispatcher, []llm.Result) {
	t.Helper()
	table := prices(t)
	p, _ := table.Find("lab/any")
	d := dispatcher(t, l.answering(p, length), prov, func(c *Config) {
		c.Budget, c.Prices = budget.New(limit, 0), table
		c.Events = onNotice(func(n Notice) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.reported = append(l.reported, n)
		})
	})
	return d, d.All(t.Context(), asked(n, 50, 50))
}

func ignores(int, int) (int, llm.Finish) { return 5000, llm.FinishStop }

// TestServerIgnoresLimits: a server that ignores limits makes a run overspend by one answer at
// most, and by nothing after that. One notice says so.
func TestServerIgnoresLimits(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{0.001, 0.005, 0.02, 0.05, 0.5} {
		synctest.Test(t, func(t *testing.T) {
			var l billing
			d, results := l.ask(t, compatible(), llm.Dollars(limit), 200, ignores)
			ok := 0
			for _, r := range results {
				switch {
				case r.Err == nil:
					ok++
				case llm.KindOf(r.Err) != llm.KindBudget:
					t.Fatal(r.Err)
				case !strings.Contains(r.Err.Error(), "has given longer answers than it was asked for") && ok > 0:
					t.Errorf("the refusal does not say why: %v", r.Err)
				}
			}
			spent, reserved := d.Budget().Spent()
			if ok == 0 || spent != l.billed || reserved != 0 {
				t.Errorf("%v: %d answered, spent %v, billed %v, %v set aside", limit, ok, spent, l.billed, reserved)
			}
			if spent > d.Budget().Limit()+l.maxCost {
				t.Errorf("%v: spent %v, more than one answer of %v too much", limit, spent, l.maxCost)
			}
			if spent > d.Budget().Limit() && ok > 1 {
				t.Errorf("%v: %d answers, and %v spent, after the first was too long", limit, ok, spent)
			}
			if len(l.reported) != 1 || !strings.Contains(l.reported[0].Text, "answered with 5000 tokens when asked for at most 50") {
				t.Errorf("%v: reported %+v", limit, l.reported)
			}
		})
	}
}

// TestServerIgnoresLimitsLater: short answers prove nothing. A server whose first answers happen to
// be short still makes a run overspend by one answer at most.
func TestServerIgnoresLimitsLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l billing
		d, _ := l.ask(t, compatible(), llm.Dollars(0.01), 200, func(n, _ int) (int, llm.Finish) {
			if n < 10 {
				return 10, llm.FinishStop
			}
			return 4000, llm.FinishStop
		})
		spent, reserved := d.Budget().Spent()
		if spent > d.Budget().Limit()+l.maxCost || spent != l.billed || reserved != 0 {
			t.Errorf("spent %v of %v, billed %v, %v set aside", spent, d.Budget().Limit(), l.billed, reserved)
		}
	})
}

// TestServerKeepsLimits: calls are made one at a time until an answer has ended at the limit, and
// then twice as many as there were answers within it. A known provider, or a large budget, needs no
// proof.
func TestServerKeepsLimits(t *testing.T) {
	t.Parallel()
	cut := func(_, asked int) (int, llm.Finish) { return asked, llm.FinishLength }
	short := func(int, int) (int, llm.Finish) { return 10, llm.FinishStop }
	known := compatible()
	known.BaseURL = "https://api.groq.com/openai/v1"
	for _, tt := range []struct {
		name   string
		p      provider.Provider
		limit  float64
		length func(int, int) (int, llm.Finish)
		peak   int
		took   time.Duration
	}{
		{"proven by the first", compatible(), 1, cut, 45, 5 * time.Second},
		{"never proven", compatible(), 0.1, short, 1, 100 * time.Second},
		{"never proven, with room", compatible(), 1000, short, 50, 2 * time.Second},
		{"known", known, 1, short, 50, 2 * time.Second},
		{"of another dialect", provider.Provider{Dialect: "anthropic", BaseURL: "https://lab.example/v1", Limits: provider.Limits{Concurrency: 50}}, 0.1, short, 1, 100 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var l billing
				start := time.Now()
				_, results := l.ask(t, tt.p, llm.Dollars(tt.limit), 100, tt.length)
				for _, r := range results {
					if r.Err != nil {
						t.Fatal(r.Err)
					}
				}
				if l.peak != tt.peak || time.Since(start) != tt.took || len(l.reported) > 0 {
					t.Errorf("%d at once, in %v, reported %v", l.peak, time.Since(start), l.reported)
				}
			})
		})
	}
}

// TestOthersDoNotWait: calls to a known provider continue while those to an unknown one take turns.
func TestOthersDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, err := price.Read(strings.NewReader(`{"models": {"lab/*": {"input": 1, "output": 4}, "known/*": {"input": 1, "output": 4}}}`), "prices.json")
		if err != nil {
			t.Fatal(err)
		}
		lab := compatible()
		lab.Name = "lab"
		d, err := New(Config{Budget: budget.New(llm.Dollars(0.3), 0), Prices: table, Lanes: []Lane{
			{Provider: lab, Model: answersAfter(time.Second)},
			{Provider: provider.Provider{Name: "known", Dialect: "anthropic", Limits: provider.Limits{Concurrency: 50}}, Model: answersAfter(time.Second)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var reqs []*llm.Request
		for i, r := range asked(40, 50, 50) {
			if i%2 == 1 {
				r.Model = "known/any"
			}
			reqs = append(reqs, r)
		}
		var last atomic.Int64 // of the known provider's
		d.Each(t.Context(), func(yield func(*llm.Request) bool) {
			for _, r := range reqs {
				if !yield(r) {
					return
				}
			}
		}, func(i int, r llm.Result) {
			if r.Err != nil {
				t.Error(r.Err)
			}
			if i%2 == 1 {
				last.Store(int64(time.Since(start)))
			}
		})
		if time.Duration(last.Load()) != time.Second || time.Since(start) != 20*time.Second {
			t.Errorf("the known provider's calls took %v, all %v", time.Duration(last.Load()), time.Since(start))
		}
	})
}

// TestFallbackKeepsNoLimit: a fallback at an unknown address takes its turn too.
func TestFallbackKeepsNoLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, err := price.Read(strings.NewReader(`{"models": {"known/*": {"input": 1, "output": 4}, "lab/*": {"input": 1, "output": 4}}}`), "prices.json")
		if err != nil {
			t.Fatal(err)
		}
		p, _ := table.Find("lab/any")
		var l billing
		lab := compatible()
		lab.Name = "lab"
		budget := budget.New(llm.Dollars(0.05), 0)
		d, err := New(Config{Budget: budget, Prices: table, Settings: retries(never), Lanes: []Lane{
			{Provider: lab, Model: l.answering(p, ignores)},
			{Provider: provider.Provider{Name: "known", Dialect: "anthropic"}, Model: llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
				return nil, &llm.Error{Kind: llm.KindServer}
			})},
		}})
		if err != nil {
			t.Fatal(err)
		}
		reqs := asked(50, 50, 50)
		for _, r := range reqs {
			r.Model, r.Fallbacks = "known/any", []string{"lab/any"}
		}
		d.All(t.Context(), reqs)
		if spent, reserved := budget.Spent(); spent > budget.Limit()+l.maxCost || spent != l.billed || reserved != 0 || l.answers == 0 {
			t.Errorf("%d answers: spent %v of %v, billed %v, %v set aside", l.answers, spent, budget.Limit(), l.billed, reserved)
		}
	})
}

// TestDrainWhileCrowded: a call that waits for its turn is refused by a drain, and may be canceled.
func TestDrainWhileCrowded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := dispatcher(t, answersAfter(time.Hour), compatible(), func(c *Config) { c.Budget, c.Prices = budget.New(llm.Dollars(0.001), 0), prices(t) })
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		errs := make([]error, 3)
		for i, r := range asked(3, 50, 50) {
			c := t.Context()
			if i == 1 {
				c = ctx
			}
			wg.Go(func() { _, errs[i] = d.Ask(c, r) })
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		d.Drain()
		wg.Wait()
		if errs[0] != nil || llm.KindOf(errs[1]) != llm.KindCanceled || llm.KindOf(errs[2]) != llm.KindCanceled {
			t.Errorf("%v", errs)
		}
		if _, reserved := d.Budget().Spent(); reserved != 0 {
			t.Errorf("%v set aside", reserved)
		}
	})
}

// TestWaitsForMoney: what is reported says that calls wait for the budget, how much it sets aside for one, and why. The time
// is counted.
func TestWaitsForMoney(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keeps bool
		limit llm.Money
		lacks string
		room  int
		want  []string
	}{
		"a server that is not known":     {false, 3 * llm.Dollar, "", 6, []string{" calls wait for room in the budget: a server that is not known to stop at max_tokens (an answer may have 128,000 tokens) sets aside $", " for a call of lab/any"}},
		"a server that keeps its limits": {true, llm.Dollars(0.001), "max_tokens", 1, []string{" calls wait for room in the budget: the prompt (it may have ", " tokens) sets aside $", " for a call of lab/any"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				table := prices(t)
				p, _ := table.Find("lab/any")
				prov := compatible()
				if c.keeps {
					prov = provider.Provider{Limits: provider.Limits{Concurrency: 50}}
				}
				var l billing
				d := dispatcher(t, l.answering(p, func(int, int) (int, llm.Finish) { return 5, llm.FinishStop }), prov, func(cfg *Config) {
					cfg.Budget, cfg.Prices = budget.New(c.limit, 0), table
				})
				var wg sync.WaitGroup
				var longest time.Duration
				wg.Go(func() {
					for _, r := range d.All(t.Context(), asked(40, 50, 50)) {
						if r.Err == nil {
							longest = max(longest, r.Response.Metadata.Waited)
						}
					}
				})
				time.Sleep(time.Second / 2)
				got := strings.Join(WaitTexts(d.Waits(time.Now())), "|")
				if s := d.budget.Shortage(); s.Room != c.room {
					t.Errorf("%+v, want room for %d", s, c.room)
				}
				for _, want := range c.want {
					if !strings.Contains(got, want) {
						t.Errorf("%q lacks %q", got, want)
					}
				}
				if c.lacks != "" && strings.Contains(got, c.lacks) {
					t.Errorf("%q has %q", got, c.lacks)
				}
				wg.Wait()
				if got := d.Waits(time.Now()); len(got) > 0 {
					t.Errorf("nothing waits any more: %+v", got)
				}
				if longest < time.Second {
					t.Errorf("calls waited for room, and at most %v is counted", longest)
				}
			})
		})
	}
}

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
			c.Settings.Retry.Pause, c.Settings.Retry.MaxPause = time.Nanosecond, time.Nanosecond
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
	d := dispatcher(t, answersAfter(0), provider.Provider{}, func(c *Config) { c.Prices = prices(t) })
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
