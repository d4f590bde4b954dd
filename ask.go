package parley

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/cli/app"
	"parley/llm"
)

// AskerConfig says how an Asker asks. The zero value asks the presets, without a budget and without a cache.
type AskerConfig struct {
	// Providers are added to the presets, by name.
	Providers map[string]Provider
	// Trust allows environment variables to be sent to hosts: see Run.
	Trust []string
	// Wrap wraps what answers for a provider: see Run.
	Wrap func(provider string, next llm.Model) llm.Model
	// Budget is the most that all calls together may cost. Default: no limit.
	Budget llm.Money
	// Prices is a file of prices that override the built-in ones. Default: none.
	Prices string
	// Cache is a folder that stores answers, so that you pay for each once. Default: no cache.
	Cache string
	// Concurrency is the most calls in flight at one provider. Default: found by trying, from 16 up.
	Concurrency int
	// Retries is how often a failed call is retried. Waiting for a busy provider does not count.
	// Default: 4; negative: never.
	Retries int
	// Unreachable is how long to wait for a provider that cannot be reached, for example while it restarts. Default: not at all.
	Unreachable time.Duration
}

// Asker asks models as fast as their limits allow, within a budget. It is an llm.Model, and may be used from any number
// of goroutines.
type Asker struct {
	app       *app.App
	providers []string // the names of its own

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // of Ask and Each that have begun
}

// NewAsker makes an Asker. It opens no connection. The caller must call Close.
func NewAsker(c AskerConfig) (*Asker, error) {
	if c.Budget < 0 || c.Concurrency < 0 || c.Unreachable < 0 {
		return nil, errors.New("parley: asker: Budget, Concurrency and Unreachable must not be negative")
	}
	gate, err := gateOf(c.Trust)
	if err != nil {
		return nil, err
	}
	var providers []provider.Provider
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p, err := c.Providers[name].resolve(name)
		if err != nil {
			return nil, err
		}
		providers = append(providers, p)
	}
	set := settings.New(settings.Library)
	set.Budget, set.Prices, set.Cache, set.Limits.Concurrency, set.Retry.Unreachable = c.Budget, c.Prices, c.Cache, c.Concurrency, c.Unreachable
	set.Retry.Retries = max(0, cmp.Or(c.Retries, set.Retry.Retries))
	a, err := app.Open(app.Config{
		Providers: providers, Models: modelsOf(c.Providers), Wrap: c.Wrap, Trust: gate,
		Config: dispatch.Config{Settings: set},
	})
	if err != nil {
		return nil, wrap(err)
	}
	return &Asker{app: a, providers: slices.Sorted(maps.Keys(c.Providers))}, nil
}

// resolve puts p over the preset of its name.
func (p Provider) resolve(name string) (out provider.Provider, err error) {
	keys, err := p.keys(name)
	if err != nil {
		return out, err
	}
	limits := map[string]any{}
	for key, value := range keys {
		if limit, ok := strings.CutPrefix(key, "limits."); ok {
			limits[limit] = value
			delete(keys, key)
		}
	}
	keys["limits"] = limits
	out, _ = provider.Lookup(name)
	b, err := json.Marshal(keys)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return out, fmt.Errorf("parley: provider %q: %w", name, err)
	}
	out.Name = name
	return out, checked(out)
}

// checked validates a provider that a Provider makes. Its errors name the fields of Provider.
func checked(made provider.Provider) error {
	var errs []error
	for _, e := range made.Check() {
		errs = append(errs, fmt.Errorf("parley: %s: %s: %s", location(made.Name), fieldOf(e.Field()), e.Problem))
	}
	return errors.Join(errs...)
}

// errClosed is the error of a call after Close.
var errClosed = errors.New("the asker is closed")

// Ask answers one request. A failure is an *llm.Error.
func (a *Asker) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if err := a.begin(); err != nil {
		return nil, err
	}
	defer a.calls.Done()
	resp, err := a.app.Ask(ctx, orEmpty(req))
	return resp, a.listProviders(err)
}

// listProviders adds the providers of the Asker to an error about an unknown provider.
func (a *Asker) listProviders(err error) error {
	unknown, ok := errors.AsType[*provider.UnknownError](err)
	e, is := errors.AsType[*llm.Error](err)
	if !ok || !is {
		return err
	}
	c := *e
	c.Err = provider.Unknown(unknown.Name, a.providers...)
	c.Message = c.Err.Error()
	return &c
}

// begin counts a call, unless the Asker is closed.
func (a *Asker) begin() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return &llm.Error{Kind: llm.KindCanceled, Message: errClosed.Error(), Err: errClosed}
	}
	a.calls.Add(1)
	return nil
}

// orEmpty turns a nil request into an empty one, which is refused later.
func orEmpty(req *llm.Request) *llm.Request {
	if req == nil {
		return &llm.Request{}
	}
	return req
}

// Each answers the requests of reqs, many at once. It yields results in the order of completion, each with the index of
// its request in reqs. A failure is a result too. Each reads reqs on another goroutine, only a little ahead of what can be
// sent, and reads nothing after ctx is done. If you leave the loop early, the calls in flight are canceled. If reqs
// panics, the loop panics after the results of all requests before.
func (a *Asker) Each(ctx context.Context, reqs iter.Seq[*llm.Request]) iter.Seq2[int, llm.Result] {
	return func(yield func(int, llm.Result) bool) {
		if err := a.begin(); err != nil {
			yield(0, llm.Result{Err: err})
			return
		}
		defer a.calls.Done()
		if reqs == nil {
			yield(0, llm.Result{Err: &llm.Error{Kind: llm.KindBadRequest, Message: "parley: Each was given no requests: reqs is nil"}})
			return
		}
		type answer struct {
			i int
			r llm.Result
		}
		ctx, stop := context.WithCancelCause(ctx)
		answers, left := make(chan answer), make(chan struct{})
		var panicked any // the value of a panic of reqs; set before answers is closed
		var wg sync.WaitGroup
		defer wg.Wait()
		defer close(left)
		defer stop(context.Canceled)
		wg.Go(func() {
			defer close(answers)
			a.app.Each(ctx, filled(reqs, &panicked), func(i int, r llm.Result) {
				r.Err = a.listProviders(r.Err)
				select {
				case answers <- answer{i, r}:
				case <-left:
				}
			})
		})
		for one := range answers {
			if !yield(one.i, one.r) {
				return
			}
		}
		if panicked != nil {
			panic(panicked)
		}
	}
}

// filled replaces nil requests of reqs by empty ones. It ends when reqs panics, and sets panicked to the value.
func filled(reqs iter.Seq[*llm.Request], panicked *any) iter.Seq[*llm.Request] {
	return func(yield func(*llm.Request) bool) {
		defer func() { *panicked = recover() }()
		for req := range reqs {
			if !yield(orEmpty(req)) {
				return
			}
		}
	}
}

// Cost returns the cost of all calls so far. It leaves out models whose price is not known.
func (a *Asker) Cost() llm.Money {
	spent, _ := a.app.Budget().Spent()
	return spent
}

// Close waits for the calls in flight, and closes connections and the cache. Do not call it inside a loop over Each.
func (a *Asker) Close() error {
	a.mu.Lock()
	again := a.closed
	a.closed = true
	a.mu.Unlock()
	a.calls.Wait()
	if again {
		return nil
	}
	return a.app.Close()
}

var _ llm.Model = (*Asker)(nil)
