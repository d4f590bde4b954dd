package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/llm"
)

// lab is a run with a budget: a provider that bills, workers, a keeper, and a network that loses, delays and
// doubles messages.
type moneyLab struct {
	t      *testing.T
	ctx    context.Context
	limit  llm.Money
	sends  int // how many calls a worker sends at once; 0: all that it has
	prices *price.Table
	wg     sync.WaitGroup // of what is in the air

	mu       sync.Mutex
	rand     *rand.Rand
	billed   llm.Money
	recorded llm.Money
	transit  llm.Money            // recorded, and the worker does not know that yet
	allotted map[string]llm.Money // durable
	writes   int
	epoch    uint64
	keeper   *MoneyKeeper // nil: it is gone
	workers  map[string]*station
	gone     map[string]bool
}

// station is a worker of the lab.
type station struct {
	*MoneyMember
	name string
	stop context.CancelFunc
}

func newMoneyLab(t *testing.T, limit llm.Money, seed uint64) *moneyLab {
	prices, err := price.Read(strings.NewReader(`{"lab/any": {"input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6, "max_output_tokens": 1000, "litellm_provider": "lab"}}`), "prices.json")
	if err != nil {
		t.Fatal(err)
	}
	l := &moneyLab{
		t: t, limit: limit, prices: prices, rand: rand.New(rand.NewPCG(seed, 7)),
		allotted: map[string]llm.Money{}, workers: map[string]*station{}, gone: map[string]bool{},
	}
	l.restart()
	return l
}

var errReplaced = errors.New("another keeper writes")

// durable returns what keeps exposures, after a moment, while no other keeper has begun.
func (l *moneyLab) durable(epoch uint64) func(worker string, amount llm.Money) error {
	return func(worker string, amount llm.Money) error {
		time.Sleep(2 * time.Millisecond)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.epoch != epoch {
			return errReplaced
		}
		l.allotted[worker] = amount
		l.writes++
		return nil
	}
}

// restart starts a keeper that knows only what is durable.
func (l *moneyLab) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch++
	l.keeper = NewMoneyKeeper(MoneyConfig{Epoch: l.epoch, Limit: l.limit, Spent: l.recorded, Exposed: maps.Clone(l.allotted), Durable: l.durable(l.epoch)})
	for name := range l.gone {
		l.lose(l.keeper, name)
	}
}

// lose tells a keeper that a worker is lost.
func (l *moneyLab) lose(k *MoneyKeeper, name string) {
	l.wg.Go(func() {
		if err := k.Lost(name); err != nil && !errors.Is(err, errReplaced) {
			l.t.Error(err)
		}
	})
}

func (l *moneyLab) current() *MoneyKeeper {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keeper
}

// intn returns a random number.
func (l *moneyLab) intn(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rand.IntN(n)
}

// deliver calls f after a while, mostly once.
func (l *moneyLab) deliver(f func()) {
	times, delay := 1, time.Duration(1+l.intn(20))*time.Millisecond
	switch l.intn(30) {
	case 0:
		times = 0
	case 1:
		times = 2
	case 2:
		delay = time.Duration(l.intn(5000)) * time.Millisecond
	}
	for i := range times {
		l.wg.Go(func() {
			time.Sleep(delay * time.Duration(1+i))
			f()
		})
	}
}

// ask sends an ask, and whatever follows from it.
func (l *moneyLab) ask(w *station) {
	a := w.Report()
	l.deliver(func() {
		keeper := l.current()
		if keeper == nil {
			return
		}
		grants, err := keeper.Answer(a)
		if err != nil && !errors.Is(err, errReplaced) {
			l.t.Error(err)
		}
		l.check()
		for _, g := range grants {
			l.deliver(func() {
				l.mu.Lock()
				to := l.workers[g.Worker]
				l.mu.Unlock()
				if to != nil && to.Apply(g) {
					l.ask(to)
				}
			})
		}
	})
}

// check checks that no more is billed than there is, and that nothing is promised twice.
func (l *moneyLab) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := l.recorded - l.transit
	for name, w := range l.workers {
		w.MoneyMember.mu.Lock()
		sends := w.exposed // more waits for the keeper
		w.MoneyMember.mu.Unlock()
		sum = sum.Plus(min(sends, w.Budget().Stake().Owed))
		if sends > l.allotted[name] {
			l.t.Errorf("%s may send %v, and %v is durable", name, sends, l.allotted[name])
		}
	}
	if l.billed > l.limit || sum > l.limit {
		l.t.Errorf("%v is billed, %v is recorded or not, of %v", l.billed, sum, l.limit)
	}
	if s := l.keeper; s != nil {
		sums := s.Sums()
		if l.recorded.Plus(sums.AtRisk) > l.limit {
			l.t.Errorf("%v is recorded and %v at risk, of %v", l.recorded, sums.AtRisk, l.limit)
		}
	}
}

// Ask answers and bills, even if nobody waits for it any more.
func (l *moneyLab) Ask(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
	u := llm.Usage{Input: 20 + l.intn(30), Output: 1 + l.intn(200)}
	latency := time.Duration(100+l.intn(2000)) * time.Millisecond
	done := make(chan struct{})
	l.wg.Go(func() {
		time.Sleep(latency)
		l.mu.Lock()
		l.billed += llm.Money(u.Input)*1000 + llm.Money(u.Output)*4000
		l.mu.Unlock()
		close(done)
	})
	select {
	case <-done:
	case <-ctx.Done():
		return nil, llm.ContextError(ctx)
	}
	if l.intn(20) == 0 {
		return &llm.Response{Text: "not JSON", Finish: llm.FinishStop, Usage: u}, nil
	}
	return &llm.Response{Text: `{"yes": true}`, Finish: llm.FinishStop, Usage: u}, nil
}

// record records a call after a while: first for the keeper, then for the worker.
func (l *moneyLab) record(w *station, cost llm.Money) {
	time.Sleep(time.Duration(l.intn(30)) * time.Millisecond)
	l.mu.Lock()
	if l.gone[w.name] {
		l.mu.Unlock()
		return
	}
	l.recorded += cost
	l.transit += cost
	if l.keeper != nil {
		l.keeper.Spent(l.recorded, map[string]llm.Money{w.name: cost})
	}
	l.mu.Unlock()
	time.Sleep(time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.transit -= cost
	w.Budget().Recorded(cost)
}

// join starts a worker that makes calls in flight until it has no money.
func (l *moneyLab) join(name string, inFlight int, wg *sync.WaitGroup) {
	w := &station{MoneyMember: NewMoneyMember(name, l.limit), name: name}
	d, err := dispatch.New(dispatch.Config{
		Budget: w.Budget(), Prices: l.prices,
		Lanes: []dispatch.Lane{{Provider: provider.Provider{Name: "lab", Dialect: "openai", Limits: provider.Limits{Concurrency: cmp.Or(l.sends, inFlight)}}, Model: l}},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(l.ctx)
	w.stop = stop
	l.mu.Lock()
	l.workers[name] = w
	l.mu.Unlock()
	asking, end := context.WithCancel(ctx)
	wg.Go(func() {
		t := time.NewTicker(Interval)
		defer t.Stop()
		for {
			l.ask(w)
			select {
			case <-t.C:
			case <-w.Short():
			case <-asking.Done():
				return
			}
		}
	})
	var calls sync.WaitGroup
	for range inFlight {
		calls.Go(func() { l.calls(ctx, d, w) })
	}
	wg.Go(func() {
		calls.Wait()
		end()
		l.leave(name)
		if err := d.Close(); err != nil {
			l.t.Error(err)
		}
	})
}

// leave ends a worker that has recorded everything.
func (l *moneyLab) leave(name string) {
	for {
		l.mu.Lock()
		k, gone := l.keeper, l.gone[name]
		if k != nil {
			delete(l.workers, name)
		}
		l.mu.Unlock()
		if gone {
			return
		}
		if k != nil {
			if err := k.Leave(name); err != nil && !errors.Is(err, errReplaced) {
				l.t.Error(err)
			}
			if l.current() == k {
				return
			}
		}
		time.Sleep(time.Second)
	}
}

// calls makes calls until there is no money.
func (l *moneyLab) calls(ctx context.Context, d *dispatch.Dispatcher, w *station) {
	schema := &llm.Schema{Name: "x", JSON: []byte(`{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}`)}
	for ctx.Err() == nil {
		resp, err := d.Ask(ctx, &llm.Request{Model: "lab/any", Messages: []llm.Message{llm.User("Say yes.")}, MaxTokens: 200, Schema: schema, Sample: l.intn(1 << 30)})
		var cost llm.Money
		if e, ok := errors.AsType[*llm.Error](err); ok {
			cost = e.Metadata.Cost
		} else {
			cost = resp.Metadata.Cost
		}
		if ctx.Err() != nil {
			return
		}
		l.record(w, cost)
		if err != nil && llm.AsError(err).Kind == llm.KindBudget {
			return
		}
	}
}

// kill kills a worker: what it has not recorded is lost.
func (l *moneyLab) kill(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.workers[name]
	if w == nil {
		return
	}
	l.gone[name] = true
	delete(l.workers, name)
	w.stop()
	l.wg.Go(func() {
		time.Sleep(4 * time.Second)
		if k := l.current(); k != nil {
			l.lose(k, name)
		}
	})
}

// TestOneBudget: eight workers with a hundred calls in flight each spend a budget to the end. Some are killed,
// and so is the keeper. Nothing is billed beyond the limit, and nearly all of it is spent or at risk. With
// PARLEY_SWEEP, which .ci/run kills sets, each is played twice.
func TestOneBudget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		workers, width  int
		limit           llm.Money
		kills, restarts int
		sends           int
	}{
		{"8 × 100", 8, 100, 2 * llm.Dollar, 0, 0, 0},
		{"8 × 100, three killed", 8, 100, 2 * llm.Dollar, 3, 0, 0},
		{"8 × 100, five killed, most wait", 8, 100, 2 * llm.Dollar, 5, 0, 10},
		{"8 × 100, the keeper killed", 8, 100, 2 * llm.Dollar, 0, 3, 0},
		{"8 × 100, all of it", 8, 100, 2 * llm.Dollar, 3, 3, 0},
		{"less than a call for each", 8, 10, llm.Dollar / 500, 0, 0, 0},
		{"not a call", 3, 2, llm.Dollar / 1e5, 0, 0, 0},
	} {
		for seed := range uint64(2) {
			if seed > 0 && os.Getenv("PARLEY_SWEEP") == "" {
				continue
			}
			t.Run(fmt.Sprint(tt.name, " ", seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					l := newMoneyLab(t, tt.limit, seed)
					l.sends = tt.sends
					l.play(tt.workers, tt.width, tt.kills, tt.restarts)
					sums := l.keeper.Sums()
					t.Logf("%v billed, %v recorded, %v at risk, %v with workers of %v; %d writes", l.billed, l.recorded, sums.AtRisk, sums.Allotted, l.limit, l.writes)
					if tt.kills == 0 && l.billed != l.recorded || l.billed > l.recorded.Plus(sums.AtRisk) {
						t.Errorf("%v is billed, %v is recorded and %v at risk", l.billed, l.recorded, sums.AtRisk)
					}
					if used := l.recorded.Plus(sums.AtRisk); float64(used) < 0.99*float64(l.limit) && tt.limit > llm.Dollar/100 {
						t.Errorf("%v is spent or at risk of %v", used, l.limit)
					}
					const worst = 1_630_000 // of a call
					if limit := llm.Money(tt.kills) * llm.Money(cmp.Or(tt.sends, tt.width)*worst) * 2; sums.AtRisk > limit {
						t.Errorf("%v is at risk, want at most %v", sums.AtRisk, limit)
					}
				})
			})
		}
	}
}

// play plays until the budget is exhausted.
func (l *moneyLab) play(workers, width, kills, restarts int) {
	ctx, end := context.WithTimeout(l.t.Context(), 5*time.Minute)
	defer end()
	l.ctx = ctx
	var wg sync.WaitGroup
	for i := range workers {
		l.join(fmt.Sprint("w", i), width, &wg)
	}
	for i := range max(kills, restarts) {
		time.Sleep(time.Duration(500+l.intn(2000)) * time.Millisecond)
		if i < kills {
			l.kill(fmt.Sprint("w", i))
		}
		if i < restarts {
			l.mu.Lock()
			l.keeper = nil
			l.mu.Unlock()
			time.Sleep(time.Duration(l.intn(3000)) * time.Millisecond)
			l.restart()
		}
	}
	wg.Wait()
	l.wg.Wait()
	l.check()
	if ctx.Err() != nil {
		l.t.Error("some calls waited for ever")
	}
}
