package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/tokens"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/llm"
)

// tape draws choices from bytes, and zeros after their end.
type tape []byte

func (t *tape) byte() int {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return int(b)
}

func draw[T any](t *tape, from ...T) T { return from[t.byte()%len(from)] }

// count is a number of tokens, likely or not.
func (t *tape) count() int {
	return draw[int](t, 0, 1, 20, 49, 50, 51, 58, 59, 1000, 5000, 21_000, 60_000, 127_999, 128_000, 300_000, 9_900_000, 9_999_999, 1<<24, 1<<28, 1<<31-1, 1e15, math.MaxInt-1, math.MaxInt, -1, -1000, math.MinInt)
}

func (t *tape) usage() llm.Usage {
	u := llm.Usage{Input: t.count(), Output: t.count()}
	if t.byte()%3 == 0 {
		u.Cached, u.CacheWrite, u.CacheWriteLong, u.Reasoning = t.count(), t.count(), t.count(), t.count()
	}
	return u
}

// trial is a budget, a server and requests, all drawn from a tape.
type trial struct {
	tape   tape
	price  price.Price
	width  int
	budget *budget.Budget

	mu     sync.Mutex
	honest bool      // no answer was beyond what was asked for
	peak   llm.Money // for one answer
}

func (x *trial) table(t *testing.T) *price.Table {
	rate := func() string { return draw(&x.tape, "0", "0.000001", "1", "75", "1000000") }
	text := fmt.Sprintf(`{"models": {"lab/*": {"input": %s, "output": %s, "cached": %s%s%s}}}`,
		rate(), rate(), rate(), draw(&x.tape, "", `, "max_output": 1000`, `, "max_output": 1000000`), draw(&x.tape, "", `, "context": 200000`))
	table, err := price.Read(strings.NewReader(text), "prices.json")
	if err != nil {
		t.Fatal(err, text)
	}
	x.price, _ = table.Find("lab/any")
	return table
}

// Bounds of package budget.
const (
	maxTokens     = 1 << 28 // that a call reads or produces
	bytesPerToken = 8       // at most
)

// answer is what the server does with an attempt.
func (x *trial) answer(_ context.Context, req *llm.Request) (*llm.Response, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	u := x.tape.usage()
	resp := &llm.Response{
		Text: strings.Repeat("x", draw(&x.tape, 0, 3, 10_000)), Usage: u,
		Finish: draw(&x.tape, llm.FinishStop, llm.FinishLength, llm.FinishAborted),
	}
	asked := budget.MaxOutput(x.price, req)
	if max(u.Input, u.Cached+u.CacheWrite+u.CacheWriteLong) > tokens.SizeOf(req).Bound(0) || u.Output > asked || len(resp.Text) > asked {
		x.honest = false
	}
	dropped := draw(&x.tape, 0, 0, 3, 400, 100_000, 1<<26)
	how := x.tape.byte() % 9
	if how == 3 && dropped/bytesPerToken > asked {
		x.honest = false
	}
	// The server is not believed to have read more input than is possible.
	x.peak = max(x.peak, x.price.Worst(budget.MaxInput(x.price, req), max(0, min(u.Output, maxTokens), len(resp.Text), dropped/bytesPerToken), false))
	switch how {
	case 3:
		return nil, &llm.Error{Kind: llm.KindCanceled, Uncertain: true, Usage: u, Received: dropped}
	case 0:
		return nil, &llm.Error{Kind: llm.KindServer, Usage: u}
	case 1:
		return nil, &llm.Error{Kind: llm.KindTransport, Uncertain: true, Usage: u}
	case 2:
		return nil, &llm.Error{Kind: llm.KindTooLong, Usage: u}
	}
	return resp, nil
}

func (x *trial) requests() []*llm.Request {
	reqs := asked(x.tape.byte()%16, 50, 50)
	for _, r := range reqs {
		r.MaxTokens = max(0, llm.MulTokens(x.tape.count(), draw(&x.tape, 1, 1, 2, 128))) // as a gateway does for several answers
		r.MaxCost = draw(&x.tape, 0, 0, 1, llm.Dollars(0.01), llm.Dollar, math.MaxInt64)
		if x.tape.byte()%4 == 0 {
			r.Fallbacks = []string{"lab/other"}
		}
		r.Refers = x.tape.byte()%8 == 1
		if x.tape.byte()%8 == 0 {
			r.Schema = &llm.Schema{Name: "any", JSON: json.RawMessage(`{"type":"object"}`)}
		}
	}
	return reqs
}

// FuzzBudget asks anything of a server that reports anything. What is spent is never negative. It
// is never more than the budget if every answer is within its limit, and otherwise exceeds it by
// the answers in flight at most. In the end nothing is set aside.
func FuzzBudget(f *testing.F) {
	f.Add([]byte{})
	for seed := range 24 {
		b := make([]byte, 400)
		for i := range b {
			b[i] = byte((i*i + 7*i*seed + seed*seed*31 + (i>>3)*seed) % 251)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x := &trial{tape: data, honest: true}
		table := x.table(t)
		before := draw[llm.Money](&x.tape, 0, 0, 1, llm.Dollars(0.04), math.MaxInt64, -1)
		x.budget = budget.New(draw[llm.Money](&x.tape, llm.Dollars(0.05), 0, 1, llm.Dollar, 1000*llm.Dollar, math.MaxInt64, -5), before)
		p := compatible()
		if x.tape.byte()%2 == 0 {
			p = provider.Provider{}
		}
		x.width = 1 + x.tape.byte()%4
		p.Limits.Concurrency = x.width
		d := dispatcher(t, llm.Func(x.answer), p, func(c *Config) {
			c.Budget, c.Prices = x.budget, table
			c.Settings.Retry = settings.Retry{Retries: 1, Pause: time.Nanosecond, MaxPause: time.Nanosecond, Deadline: 10 * time.Second}
			c.Events = onNotice(func(n Notice) { _ = n.Text })
		})
		reqs := x.requests()
		for i, r := range d.All(t.Context(), reqs) {
			x.checkResult(t, reqs[i], r)
		}
		x.check(t, d, max(0, before))
	})
}

func (x *trial) checkResult(t *testing.T, req *llm.Request, r llm.Result) {
	t.Helper()
	var cost llm.Money
	var u llm.Usage
	if r.Err != nil {
		e := llm.AsError(r.Err)
		cost, u = e.Metadata.Cost, e.Usage
	} else {
		cost, u = r.Response.Metadata.Cost, r.Response.Usage
	}
	if cost < 0 || min(u.Input, u.Output, u.Cached, u.Reasoning) < 0 {
		t.Errorf("cost %v, usage %+v", cost, u)
	}
	if x.honest && req.MaxCost > 0 && cost > req.MaxCost {
		t.Errorf("cost %v of %v", cost, req.MaxCost)
	}
}

func (x *trial) check(t *testing.T, d *Dispatcher, before llm.Money) {
	t.Helper()
	spent, reserved := x.budget.Spent()
	if spent < before || reserved != 0 {
		t.Errorf("spent %v after %v, %v set aside", spent, before, reserved)
	}
	if limit := x.budget.Limit(); limit > 0 {
		allowed := max(limit, before)
		if !x.honest {
			allowed = allowed.Plus(x.peak.Times(x.width))
		}
		if spent > allowed {
			t.Errorf("spent %v of %v, at most %v for one answer, %d at once, honest: %v", spent, limit, x.peak, x.width, x.honest)
		}
	}
	s := d.Stats()
	if s.Cost < 0 || s.Uncertain < 0 || min(s.Usage.Input, s.Usage.Output, s.Usage.Cached, s.Usage.Reasoning) < 0 {
		t.Errorf("counted %+v, %v, %v", s.Usage, s.Cost, s.Uncertain)
	}
}
