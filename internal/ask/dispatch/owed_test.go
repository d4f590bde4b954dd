package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/llm"
)

// killable is a provider and a journal, with what a process that is killed now leaves in both.
type killable struct {
	t        *testing.T
	budget   *budget.Budget
	worst    llm.Money // of an attempt
	width    int       // how many attempts may be in flight
	failures int       // every so many attempts fail, and may be billed; 0: none

	mu       sync.Mutex
	exposed  llm.Money // durable
	recorded llm.Money // durable
	ended    llm.Money // billed for attempts that have ended
	sent     llm.Money // the most that attempts in flight can be billed
	attempts int
	writes   int
}

func (k *killable) expose(_ context.Context, worst llm.Money) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.exposed = worst
	k.writes++
	k.check()
	return nil
}

// check is for every moment: whatever the provider may bill is durable as spent or owed, and within the budget.
func (k *killable) check() {
	if may := k.ended + k.sent; may > k.recorded+k.exposed || may > k.budget.Limit() {
		k.t.Errorf("up to %v may be billed, %v is recorded and %v owed, of %v", may, k.recorded, k.exposed, k.budget.Limit())
	}
}

// usable checks, while nothing happens, that little more is owed than may be billed.
func (k *killable) usable() {
	k.mu.Lock()
	defer k.mu.Unlock()
	slack := (k.budget.Limit()-k.recorded)/32 + k.worst
	if k.failures > 0 {
		slack += k.worst * llm.Money(k.width) // less is owed when calls that pause between attempts are sent again
	}
	if may := k.ended + k.sent - k.recorded; k.exposed > may+slack {
		k.t.Errorf("%v is owed, and at most %v may be billed", k.exposed, may)
	}
}

func (k *killable) Ask(_ context.Context, req *llm.Request) (*llm.Response, error) {
	k.mu.Lock()
	k.attempts++
	fails := k.failures > 0 && k.attempts%k.failures == 0
	k.sent += k.worst
	k.check()
	k.mu.Unlock()
	time.Sleep(time.Duration(req.Sample%9+1) * time.Second)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sent -= k.worst
	if fails {
		k.ended += k.worst
		return nil, &llm.Error{Kind: llm.KindTimeout, Message: "too slow", Uncertain: true}
	}
	k.ended += answerCost
	return &llm.Response{Text: "yes", Finish: llm.FinishStop, Usage: llm.Usage{Input: 10, Output: 10}}, nil
}

// answerCost is what an answer with 10 tokens of prompt and 10 of answer costs.
const answerCost = 50_000

func (k *killable) done(_ int, r llm.Result) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var cost llm.Money
	if r.Err == nil {
		cost = r.Response.Metadata.Cost
	} else {
		cost = llm.AsError(r.Err).Metadata.Cost
	}
	k.recorded += cost
	k.budget.Recorded(cost)
}

// TestOwedAfterAKill: at any moment, what a killed process may owe is durable, and it is about the calls that were
// sent, not about those that waited.
func TestOwedAfterAKill(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ width, room, failures int }{
		{5, 64, 0},    // most calls wait for the limit
		{5, 70, 3},    // some fail, and are sent again
		{200, 40, 0},  // most wait for the budget
		{200, 40, 4},  //
		{1, 3, 2},     //
		{40, 5000, 0}, // the budget is large
	} {
		t.Run(fmt.Sprintf("%d in flight, room for %d, failures %d", tt.width, tt.room, tt.failures), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reqs := asked(400, 50, 500)
				k := &killable{t: t, width: tt.width, failures: tt.failures}
				d := dispatcher(t, k, provider.Provider{Limits: provider.Limits{Concurrency: tt.width}}, func(c *Config) { c.Prices = prices(t) })
				var err error
				if k.worst, err = d.Worst(reqs[0]); err != nil {
					t.Fatal(err)
				}
				k.budget = budget.New(k.worst*llm.Money(tt.room), 0)
				k.budget.Expose = k.expose
				d = dispatcher(t, k, provider.Provider{Limits: provider.Limits{Concurrency: tt.width}}, func(c *Config) { c.Budget, c.Prices = k.budget, prices(t) })
				over := make(chan struct{})
				go func() {
					d.Each(t.Context(), slices.Values(reqs), k.done)
					close(over)
				}()
				for open := true; open; {
					select {
					case <-time.After(700 * time.Millisecond):
						synctest.Wait()
						k.usable()
					case <-over:
						open = false
					}
				}
				k.check()
				if k.writes == 0 || k.writes > 2*k.attempts {
					t.Errorf("%d durable writes for %d attempts", k.writes, k.attempts)
				}
				t.Logf("%d durable writes for %d attempts", k.writes, k.attempts)
			})
		})
	}
}

func TestNothingIsSentThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spending := budget.New(llm.Dollar, 0)
		spending.Expose = func(context.Context, llm.Money) error { return errors.New("disk full") }
		d := dispatcher(t, llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			t.Error("it was sent")
			return nil, errors.New("sent")
		}), provider.Provider{}, func(c *Config) { c.Budget, c.Prices = spending, prices(t) })
		if _, err := d.Ask(t.Context(), asked(1, 50, 50)[0]); llm.KindOf(err) != llm.KindBudget || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("got %v", err)
		}
		if spent, reserved := spending.Spent(); spent != 0 || reserved != 0 {
			t.Errorf("spent %v, %v set aside", spent, reserved)
		}
	})
}

// TestRetryWaitsForRoom: an attempt after the first for which the budget has no room waits for other calls to end, as
// a new call does. It is refused only if nothing is in flight that could give something back.
func TestRetryWaitsForRoom(t *testing.T) {
	t.Parallel()
	failure := &llm.Error{Kind: llm.KindTimeout, Message: "too slow", Uncertain: true}
	for name, tt := range map[string]struct {
		calls  int
		room   float64 // in attempts
		fails  int     // so many first attempts, and the call is charged all that they can cost
		change func(*llm.Request)
		limits provider.Limits
		retry  func(*settings.Retry)
		ok     int
	}{
		"beside a call that ends":             {calls: 2, room: 2.5, fails: 1, ok: 2},
		"several at once":                     {calls: 6, room: 6.5, fails: 3, ok: 6},
		"others wait for the limit":           {calls: 4, room: 4.5, fails: 2, ok: 4, limits: provider.Limits{Concurrency: 1}, retry: func(r *settings.Retry) { r.Pause = 1 }},
		"others wait for its answer":          {calls: 3, room: 3, fails: 1, ok: 3, change: func(r *llm.Request) { r.Temperature, r.Sample = new(float64), 0 }},
		"another model":                       {calls: 2, room: 2.5, fails: 1, ok: 2, change: func(r *llm.Request) { r.Fallbacks = []string{"lab/any"} }, retry: never},
		"everything is spent":                 {calls: 1, room: 1.5, fails: 1, ok: 0},
		"everything is spent, and some waits": {calls: 3, room: 1.5, fails: 1, ok: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reqs := asked(tt.calls, 50, 500)
				for _, r := range reqs {
					if tt.change != nil {
						tt.change(r)
					}
				}
				var mu sync.Mutex
				fails := tt.fails
				m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
					mu.Lock()
					fails--
					bad := fails >= 0
					mu.Unlock()
					if bad {
						time.Sleep(time.Second) // until all have set something aside
						return nil, failure
					}
					time.Sleep(time.Minute)
					return &llm.Response{Text: "yes", Finish: llm.FinishStop, Usage: llm.Usage{Input: 10, Output: 10}}, nil
				})
				lab := provider.Provider{Limits: tt.limits}
				d := dispatcher(t, m, lab, func(c *Config) { c.Prices = prices(t) })
				worst, err := d.Worst(reqs[0])
				if err != nil {
					t.Fatal(err)
				}
				spending := budget.New(llm.Money(float64(worst)*tt.room), 0)
				d = dispatcher(t, m, lab, func(c *Config) {
					c.Budget, c.Prices = spending, prices(t)
					if tt.retry != nil {
						tt.retry(&c.Settings.Retry)
					}
				})
				ok := 0
				for _, r := range d.All(t.Context(), reqs) {
					switch {
					case r.Err == nil:
						ok++
					case llm.KindOf(r.Err) != llm.KindBudget || !strings.Contains(r.Err.Error(), "max_tokens: 500 sets aside "):
						t.Errorf("got %v", r.Err)
					}
				}
				spent, reserved := spending.Spent()
				if want := worst*llm.Money(tt.fails) + llm.Money(billable(tt.ok, reqs))*answerCost; ok != tt.ok || spent != want || reserved != 0 {
					t.Errorf("%d answered, want %d; spent %v, want %v; %v set aside", ok, tt.ok, spent, want, reserved)
				}
			})
		})
	}
}

// billable returns how many of ok answers are billed: equal requests share one.
func billable(ok int, reqs []*llm.Request) int {
	if ok > 0 && reqs[0].Temperature != nil {
		return 1
	}
	return ok
}
