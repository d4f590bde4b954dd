package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/llm"
)

func prices(t *testing.T) *price.Table {
	t.Helper()
	p, err := price.Read(strings.NewReader(`{"lab/any": {"input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6, "max_output_tokens": 1000, "litellm_provider": "lab"}}`), "prices.json")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBudgetIsNeverExceeded asks far more than a budget allows, at any concurrency and with every
// kind of failure: not a billionth may be overspent.
func TestBudgetIsNeverExceeded(t *testing.T) {
	t.Parallel()
	for _, width := range []int{1, 7, 1000} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			var billed atomic.Int64
			table := prices(t)
			p, _ := table.Find("lab/any")
			m := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
				u := llm.Usage{Input: 20 + rand.IntN(30), Output: rand.IntN(req.MaxTokens + 1)}
				switch rand.IntN(6) {
				case 0:
					return nil, &llm.Error{Kind: llm.KindServer}
				case 1:
					billed.Add(int64(p.Cost(u, false))) // the work was done, and then the connection broke
					return nil, &llm.Error{Kind: llm.KindTransport, Uncertain: true}
				}
				billed.Add(int64(p.Cost(u, false)))
				return &llm.Response{Usage: u}, nil
			})
			budget := budget.New(llm.Dollars(0.05), 0)
			d := dispatcher(t, m, provider.Provider{Limits: provider.Limits{Concurrency: width}}, func(c *Config) {
				c.Budget, c.Prices = budget, table
				c.Settings.Retry.Pause = time.Nanosecond
			})
			ok, refused := 0, 0
			for _, r := range d.All(t.Context(), asked(1000, 50, 50)) {
				switch llm.KindOf(r.Err) {
				case "":
					ok++
				case llm.KindBudget:
					refused++
				}
			}
			spent, reserved := budget.Spent()
			if llm.Money(billed.Load()) > budget.Limit() || spent > budget.Limit() {
				t.Errorf("billed %v, counted %v, of a budget of %v", llm.Money(billed.Load()), spent, budget.Limit())
			}
			if spent < llm.Money(billed.Load()) {
				t.Errorf("counted %v, but %v was billed", spent, llm.Money(billed.Load()))
			}
			if reserved != 0 {
				t.Errorf("%v is still set aside", reserved)
			}
			if ok == 0 || refused == 0 {
				t.Errorf("%d answered, %d refused: the budget was no limit", ok, refused)
			}
			if left := budget.Limit() - spent; left > llm.Dollars(0.002) {
				t.Errorf("%v was left unspent", left)
			}
		})
	}
}

func TestBudgetNeedsAPrice(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, answersAfter(0), provider.Provider{}, func(c *Config) {
		c.Budget, c.Prices = budget.New(llm.Dollar, 0), prices(t)
	})
	_, err := d.Ask(t.Context(), &llm.Request{Model: "lab/other"})
	if llm.KindOf(err) != llm.KindBadRequest || !strings.Contains(err.Error(), "no price is known for lab/other") {
		t.Errorf("got %v", err)
	}
}

func TestCoalesceJoinsOnlyAtTemperatureZero(t *testing.T) {
	t.Parallel()
	zero, one := 0.0, 1.0
	for _, tt := range []struct {
		temperature *float64
		calls       int64
	}{{&zero, 1}, {&one, 10}, {nil, 10}} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			m := llm.Func(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
				calls.Add(1)
				return answersAfter(time.Second).Ask(ctx, req)
			})
			d := dispatcher(t, m, provider.Provider{})
			req := llm.Request{Model: "lab/any", Temperature: tt.temperature}
			for _, r := range d.All(t.Context(), slices.Repeat([]*llm.Request{&req}, 10)) {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
			if calls.Load() != tt.calls {
				t.Errorf("temperature %v: %d calls, want %d", tt.temperature, calls.Load(), tt.calls)
			}
			if got := d.Stats().Coalesced; got != 10-tt.calls {
				t.Errorf("coalesced %d", got)
			}
		})
	}
}

func TestCoalesceOutlivesTheOneWhoAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zero := 0.0
		d := dispatcher(t, answersAfter(10*time.Second), provider.Provider{})
		req := &llm.Request{Model: "lab/any", Temperature: &zero}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = d.Ask(ctx, req) })
		synctest.Wait()
		var second error
		wg.Go(func() { _, second = d.Ask(t.Context(), req) })
		synctest.Wait()
		cancel()
		wg.Wait()
		if second != nil {
			t.Errorf("the second caller failed with the first: %v", second)
		}
	})
}

func TestWarmSendsOneFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		sent := map[time.Duration]int{}
		m := llm.Func(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
			mu.Lock()
			sent[time.Since(start)]++
			first := len(sent) == 1 && sent[0] == 1
			mu.Unlock()
			if first {
				time.Sleep(time.Second)
				return nil, &llm.Error{Kind: llm.KindServer} // failed before it began: the next one warms
			}
			time.Sleep(time.Second)
			llm.Began(ctx)
			time.Sleep(9 * time.Second)
			return &llm.Response{}, nil
		})
		d := dispatcher(t, m, provider.Provider{Warm: true, Limits: provider.Limits{Concurrency: 100}}, func(c *Config) { c.Settings.Retry.Retries = 0 })
		reqs := make([]*llm.Request, 20)
		for i := range reqs {
			reqs[i] = &llm.Request{
				Model: "lab/any", Prefix: 1, Sample: i,
				Messages: []llm.Message{llm.System(strings.Repeat("rules ", 1000)), llm.User(fmt.Sprint(i))},
			}
		}
		d.All(t.Context(), reqs)
		if sent[0] != 1 || sent[time.Second] != 1 || sent[2*time.Second] != 18 {
			t.Errorf("sent at %v", sent)
		}
		short := *reqs[0]
		short.Messages = []llm.Message{llm.System("short"), llm.User("x")}
		if _, ok := prefixKey(&short); ok {
			t.Error("a short prefix is not worth waiting for")
		}
	})
}

func TestStructuredAnswers(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	tests := []struct {
		name   string
		texts  []string
		finish llm.Finish
		parsed string
		kind   llm.Kind
		calls  int
	}{
		{"as it came", []string{`{"n":1}`}, llm.FinishStop, "native", "", 1},
		{"with help", []string{"Sure!\n```json\n{'n': 1,}\n```"}, llm.FinishStop, "tolerant", "", 1},
		{"repaired", []string{`{"n":"x"}`, `{"n":1}`}, llm.FinishStop, "repaired", "", 2},
		{"never", []string{`no`, `no`, `no`, `no`}, llm.FinishStop, "", llm.KindInvalid, 3},
		{"cut off", []string{`{"n":`}, llm.FinishLength, "", llm.KindCutOff, 1},
		{"refused", []string{`I cannot.`}, llm.FinishRefused, "", llm.KindRefused, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			var last *llm.Request
			m := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
				last = req
				calls++
				return &llm.Response{Text: tt.texts[calls-1], Finish: tt.finish, Usage: llm.Usage{Input: 5, Output: 5}}, nil
			})
			d := dispatcher(t, m, provider.Provider{Capabilities: []provider.Capability{{Match: "lab/any", Schema: true}}})
			resp, err := d.Ask(t.Context(), &llm.Request{Model: "lab/any", Schema: &llm.Schema{Name: "n", JSON: json.RawMessage(schema)}})
			if llm.KindOf(err) != tt.kind || calls != tt.calls {
				t.Fatalf("%d calls, %v", calls, err)
			}
			if err == nil && (resp.Metadata.Parsed != tt.parsed || string(resp.JSON) != `{"n":1}` || resp.Usage.Input != 5*calls || resp.Metadata.Attempts != calls) {
				t.Errorf("%s %s %+v", resp.JSON, resp.Metadata.Parsed, resp.Usage)
			}
			if calls == 2 && (len(last.Messages) != 2 || last.Messages[0].Role != llm.RoleAssistant ||
				!strings.Contains(last.Messages[1].Text(), "n: expected integer") || !strings.Contains(last.Messages[1].Text(), schema)) {
				t.Errorf("the repair does not show what was wrong: %+v", last.Messages)
			}
			s := d.Stats()
			if got := fmt.Sprint(s.Native, s.Tolerant, s.Repaired, s.Malformed); strings.Count(got, "1") != 1 {
				t.Errorf("counted %s", got)
			}
		})
	}
}

func TestInvalidSchema(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, answersAfter(0), provider.Provider{})
	_, err := d.Ask(t.Context(), &llm.Request{Model: "lab/any", Schema: &llm.Schema{Name: "n", JSON: json.RawMessage(`{"type":"objekt"}`)}})
	if llm.KindOf(err) != llm.KindBadRequest || !strings.Contains(err.Error(), "/type") {
		t.Errorf("got %v", err)
	}
}

func TestSchemaInWordsWhereThereIsNoNativeOne(t *testing.T) {
	t.Parallel()
	var last string
	m := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		last = req.Messages[len(req.Messages)-1].Text()
		return &llm.Response{Text: `{"n":1}`}, nil
	})
	p := provider.Provider{Capabilities: []provider.Capability{{Match: "lab/any", NoSchema: true}}}
	d := dispatcher(t, m, p)
	if _, err := d.Ask(t.Context(), &llm.Request{Model: "lab/any", Schema: &llm.Schema{Name: "n", JSON: json.RawMessage(`{"type":"object","title":"zebra"}`)}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(last, "zebra") {
		t.Errorf("the schema is not in the prompt: %q", last)
	}
}

// TestEachTakesLittleAhead counts requests that were taken and have not been sent: at most those
// that may wait, one that waits for a place among them, and those that hold a permit and are about
// to be sent.
func TestEachTakesLittleAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const width = 5
		var sent, ended atomic.Int64
		m := llm.Func(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
			sent.Add(1)
			return answersAfter(time.Second).Ask(ctx, req)
		})
		d := dispatcher(t, m, provider.Provider{Limits: provider.Limits{Concurrency: width}})
		var taken, peak int64
		n := d.Each(t.Context(), func(yield func(*llm.Request) bool) {
			for _, r := range asked(5000, 10, 1) {
				taken++
				peak = max(peak, taken-sent.Load())
				if !yield(r) {
					return
				}
			}
		}, func(int, llm.Result) { ended.Add(1) })
		if n != 5000 || sent.Load() != 5000 || ended.Load() != 5000 {
			t.Errorf("took %d, sent %d, ended %d", n, sent.Load(), ended.Load())
		}
		if peak > ahead+1+width {
			t.Errorf("%d requests were taken before they could be sent", peak)
		}
	})
}

func TestAllStopsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := dispatcher(t, answersAfter(time.Second), provider.Provider{Limits: provider.Limits{Concurrency: 5}})
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		ok := 0
		for _, r := range d.All(ctx, asked(5000, 10, 1)) {
			if r.Err == nil {
				ok++
			} else if k := llm.KindOf(r.Err); k != llm.KindTimeout {
				t.Fatalf("got %v", r.Err)
			}
		}
		if ok != 10 {
			t.Errorf("%d answered in two and a half seconds, want 10", ok)
		}
	})
}
