package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/tokens"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// account is a provider's account: it charges, and answers after a time that depends on the answer.
type account struct {
	quota   *sim.Quota
	silent  bool // no headers
	short   bool // answers are much shorter than is allowed
	latency time.Duration
	working sync.WaitGroup

	mu      sync.Mutex
	rand    *rand.Rand
	asked   int
	refused int
	used    llm.Usage
	busy    int // in flight
	busiest int
}

// total returns what was used of each limit.
func (a *account) total() (t [3]float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return [3]float64{float64(a.asked - a.refused), float64(a.used.Input), float64(a.used.Output)}
}

// work changes the number of calls in flight.
func (a *account) work(by int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy += by
	a.busiest = max(a.busiest, a.busy)
}

// between returns a duration.
func (a *account) between(low, high time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return low + time.Duration(a.rand.Int64N(int64(high-low)))
}

// count changes the counts and returns the length of an answer.
func (a *account) count(refused bool, input int) (output int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if refused {
		a.refused++
		return 0
	}
	output = 20 + a.rand.IntN(160) // 100 in the mean; nobody knows that
	if a.short {
		output /= 8
	}
	a.used.Input += input
	a.used.Output += output
	return output
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return llm.ContextError(ctx)
	}
}

// Ask answers a request over a network.
func (a *account) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if err := wait(ctx, a.between(10*time.Millisecond, 60*time.Millisecond)); err != nil {
		return nil, err
	}
	cost := sim.Cost{Input: tokens.SizeOf(req).Bytes / 4, Max: req.MaxTokens}
	refusal := a.quota.Admit(time.Now(), cost)
	output := a.count(refusal != nil, cost.Input)
	if refusal != nil {
		e := &llm.Error{Kind: llm.KindRateLimited, Status: 429, RetryAfter: refusal.After}
		if !a.silent {
			e.Rate = a.quota.Rate(time.Now())
		}
		return nil, e
	}
	usage := llm.Usage{Input: cost.Input, Output: output}
	done := make(chan struct{})
	a.work(1)
	a.working.Go(func() { // also if nobody waits for it
		time.Sleep(a.latency/2 + a.latency*time.Duration(output)/200)
		a.quota.Settle(time.Now(), cost, usage)
		a.work(-1)
		close(done)
	})
	select {
	case <-done:
	case <-ctx.Done():
		return nil, llm.ContextError(ctx)
	}
	resp := &llm.Response{Text: "yes", Finish: llm.FinishStop, Usage: usage}
	if !a.silent {
		resp.Rate = a.quota.Rate(time.Now())
	}
	return resp, nil
}

// lab is a keeper, its workers, and a network that loses, delays and doubles messages.
type limitsLab struct {
	t       *testing.T
	account *account
	given   provider.Provider
	kept    sync.Mutex
	keeper  *LimitsKeeper // nil: it is gone
	hub     bool          // messages are carried
	loss    float64

	mu      sync.Mutex
	workers map[string]*labWorker
	sending sync.WaitGroup
}

type labWorker struct {
	*LimitsMember
	dispatcher *dispatch.Dispatcher
	stop       context.CancelFunc
}

// deliver calls f after a while, mostly once.
func (l *limitsLab) deliver(f func()) {
	l.account.mu.Lock()
	r := l.account.rand
	times, delay := 1, time.Duration(r.Int64N(int64(20*time.Millisecond)))
	switch x := r.Float64(); {
	case x < l.loss:
		times = 0
	case x < 2*l.loss:
		times = 2
	case x < 3*l.loss:
		delay = time.Duration(r.Int64N(int64(6 * time.Second)))
	}
	l.account.mu.Unlock()
	for i := range times {
		l.sending.Go(func() {
			time.Sleep(delay * time.Duration(1+i))
			f()
		})
	}
}

// report sends a report, and whatever follows from it.
func (l *limitsLab) report(w *labWorker) {
	r := w.Report()
	l.kept.Lock()
	hub := l.hub
	l.kept.Unlock()
	if !hub {
		return
	}
	l.deliver(func() {
		l.kept.Lock()
		keeper := l.keeper
		l.kept.Unlock()
		if keeper == nil {
			w.Unanswered(r.Seq)
			return
		}
		keeper.Renew(time.Now())
		for _, g := range keeper.Answer(r) {
			l.deliver(func() { l.grant(g) })
		}
	})
}

// grant delivers a grant.
func (l *limitsLab) grant(g LimitsGrant) {
	l.mu.Lock()
	w := l.workers[g.Worker]
	l.mu.Unlock()
	if w != nil && w.Apply(g) {
		l.report(w)
	}
}

// join starts a worker, which asks as much as it may until it is stopped.
func (l *limitsLab) join(ctx context.Context, name string, wg *sync.WaitGroup) {
	d, err := dispatch.New(dispatch.Config{Shared: true, Lanes: []dispatch.Lane{{Provider: l.given, Model: l.account}}})
	if err != nil {
		l.t.Error(err)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	w := &labWorker{LimitsMember: NewLimitsMember(name, d), dispatcher: d, stop: stop}
	l.mu.Lock()
	l.workers[name] = w
	l.mu.Unlock()
	wg.Go(func() {
		for ctx.Err() == nil {
			l.report(w)
			_ = wait(ctx, Interval)
		}
	})
	wg.Go(func() {
		text := strings.Repeat("word ", 240)
		d.Each(ctx, func(yield func(*llm.Request) bool) {
			for i := 0; ctx.Err() == nil && yield(&llm.Request{Model: "lab/any", Messages: []llm.Message{llm.User(text)}, MaxTokens: 200, Sample: i}); i++ {
				continue
			}
		}, func(int, llm.Result) {})
	})
}

// sum returns what the shares in force add up to.
func (l *limitsLab) sum() (sum float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.workers {
		w.mu.Lock()
		if time.Now().Before(w.until) {
			for _, p := range w.parts {
				sum += p.Share
			}
		}
		w.mu.Unlock()
	}
	return sum
}

// watch checks the sum of shares until ctx ends.
func (l *limitsLab) watch(ctx context.Context) {
	for wait(ctx, 7*time.Millisecond) == nil {
		if s := l.sum(); s > 1+1e-9 {
			l.t.Errorf("the shares add up to %v", s)
			return
		}
	}
}

// newLimitsLab returns a lab without workers.
func newLimitsLab(t *testing.T, limits sim.Limits, given provider.Limits, silent bool, seed uint64) *limitsLab {
	style, counting := sim.OpenAI, provider.CountMax
	if limits.ITPM > 0 || limits.OTPM > 0 {
		style, counting = sim.Anthropic, provider.CountUsed
	}
	return &limitsLab{
		t: t, workers: map[string]*labWorker{}, keeper: NewLimitsKeeper(1, true), hub: true, loss: 0.01,
		account: &account{quota: sim.NewQuota(limits, style, time.Now()), silent: silent, latency: time.Second, rand: rand.New(rand.NewPCG(seed, 22))},
		given:   provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "https://lab.example/v1", Counting: counting, Limits: given},
	}
}

func (l *limitsLab) kill(name string) {
	l.mu.Lock()
	w := l.workers[name]
	delete(l.workers, name)
	l.mu.Unlock()
	w.stop()
}

const (
	playFor  = time.Minute
	playFrom = 10 * time.Second // what was saved up before is used by then
)

// play runs four workers for a minute. One dies and another joins. It returns what was used of each limit
// from playFrom on.
func (l *limitsLab) play(ctx context.Context) (used [3]float64) {
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i := range 4 {
		l.join(ctx, fmt.Sprint("worker ", i), &wg)
	}
	wg.Go(func() { l.watch(ctx) })
	_ = wait(ctx, playFrom)
	before := l.account.total()
	_ = wait(ctx, 10*time.Second)
	l.kill("worker 1")
	_ = wait(ctx, 10*time.Second)
	l.join(ctx, "worker 4", &wg)
	_ = wait(ctx, playFor-30*time.Second)
	for i, u := range l.account.total() {
		used[i] = u - before[i]
	}
	stop()
	wg.Wait()
	l.sending.Wait()
	l.account.working.Wait()
	for _, w := range l.workers {
		if err := w.dispatcher.Close(); err != nil {
			l.t.Error(err)
		}
	}
	return used
}
