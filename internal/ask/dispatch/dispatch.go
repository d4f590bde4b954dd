// Package dispatch is everything between a request and the wire: it answers any number of requests
// to any number of providers as fast as their limits allow.
//
// It is a stack of layers, each of which wraps the next:
//
//		budget(cache(coalesce(answer(retry(lane → reach(warm(limit(meter(dialect)))))))))
//		                                 in a wave: lane → enqueue → a batch
//
//	  - budget reserves the most that a call's first attempt can cost, and gives back what is left
//	  - cache answers what was answered before
//	  - coalesce joins equal calls in flight at temperature zero
//	  - answer makes structured answers valid, or fails
//	  - retry tries again after failures whose kind may pass, and falls back to other models
//	  - lane picks the provider
//	  - reach, in outage.go, holds calls back while the provider cannot be reached. Below it, package
//	    replica picks one of several servers, each of which has the layers that follow
//	  - warm sends one call of a long prefix before the rest
//	  - limit, in endpoint.go, paces requests, tokens and calls in flight, and adapts
//	  - meter, in endpoint.go, is one attempt: it reserves what the attempt can cost, counts it, and
//	    settles what it did cost
//	  - enqueue, in wave.go, is one attempt of a call in a wave: it waits for its line of a batch
//
// Beside the layers are each.go and wave.go, which take many requests at once, and stats.go, notice.go
// and wait.go, which say
// what happens.
//
// A Dispatcher is an llm.Model, and so is each dialect. In between, a request is part of a call: one
// value that holds what the layers share about it. Contexts carry deadlines and cancellation, and
// to a dialect what the caller has put into them.
//
// It promises that a budget is kept (see package budget); that no permit is held while a call
// waits; that every error is an *llm.Error of one kind; that calls are served lowest Order first;
// that a call returns soon after its context ends; and that nothing changes what an answer says.
// Everything may be used from several goroutines.
//
// It knows no wire format (package dialect) and records no calls (the journal).
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/answer"
	"parley/internal/ask/batch"
	"parley/internal/ask/cache"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/journal"
	"parley/llm"
)

// Config configures a Dispatcher.
type Config struct {
	// Settings has how calls are retried and batched. The rest of it is for others. Default: those of the library.
	Settings *settings.Settings
	// Lanes are the providers.
	Lanes []Lane
	// Open returns the lane of a provider that is not in Lanes, when it is first needed. The call
	// fails with its error. Default: there are no others.
	Open func(name string) (Lane, error)
	// Find describes a provider without opening it, for the cache. Default: it is opened.
	Find func(name string) (provider.Provider, error)
	// Prices of models. Default: the embedded table.
	Prices *price.Table
	// Budget is what may be spent. Default: that of Settings, with nothing spent.
	Budget *budget.Budget
	// Cache stores answers. Default: none.
	Cache *cache.Store
	// Batches are those that earlier processes of the run left open.
	Batches []batch.Open
	// Record makes a step of a batch durable before it returns. A closing step becomes durable only
	// after everything that Wave has passed to done. It is called from several goroutines. Its
	// error ends the calls of the batch. Default: nothing is durable, and a crash loses open
	// batches.
	Record func(ctx context.Context, e *journal.Batched) error
	// Shared means that other processes use the same accounts: nothing is sent until Share says how
	// much of them is ours.
	Shared bool
	// Events is called with what the person who pays should know. It is called from several goroutines,
	// and calls wait for it. Default: nobody is told.
	Events func(Event)
}

// Event is something that happened between calls and providers. One field is set.
type Event struct {
	Rest   *replica.Rest    // a server of a provider with several is taken out of service, or is back
	Outage *Outage          // a provider cannot be reached, or can be again
	Notice *Notice          // a fact about a model, once for each model and subject
	Short  *budget.Shortage // calls begin to wait for room in the budget
}

// Dispatcher answers requests. It is an llm.Model.
type Dispatcher struct {
	first   layer // the outermost
	lanes   *lanes
	retry   *retry
	prices  *budget.Prices
	budget  *budget.Budget
	stats   *counters
	batcher *batch.Batcher
	limited bool     // an episode has a budget, which needs prices
	groups  sync.Map // *callGroup of each Each to its context
}

// New returns a Dispatcher over c.
func New(c Config) (*Dispatcher, error) {
	if len(c.Lanes) == 0 && c.Open == nil {
		return nil, errors.New("no providers")
	}
	seen := map[string]bool{}
	for _, l := range c.Lanes {
		if l.Provider.Name == "" || seen[l.Provider.Name] {
			return nil, fmt.Errorf("provider %q: names must be unique and not empty", l.Provider.Name)
		}
		seen[l.Provider.Name] = true
	}
	if c.Settings == nil {
		c.Settings = settings.New(settings.Library)
	}
	if c.Prices == nil {
		c.Prices = price.Embedded()
	}
	if c.Budget == nil {
		c.Budget = budget.New(c.Settings.Budget, 0)
	}
	if c.Events == nil {
		c.Events = func(Event) {}
	}
	c.Budget.Short = func(s budget.Shortage) { c.Events(Event{Short: &s}) }
	stats := newCounters()
	var lanes *lanes
	prices := budget.NewPrices(c.Prices, func(model string) bool { return lanes.keepsLimits(model) })
	batches := newBatcher(c)
	lanes = newLanes(c, prices, stats, batches)

	tries := newRetry(lanes, &c.Settings.Retry, stats)
	tries.continues = lanes.continues
	schemas := newSchemas(lanes.followsSchema)
	var first layer = &answers{next: tries, compiler: &answer.Compiler{}, schemas: schemas, stats: stats}
	first = newCoalesce(first)
	first = newCache(first, c.Cache, lanes.find)
	first = &budgeted{next: first, budget: c.Budget, prices: prices, batched: lanes.batched, asked: schemas.asked}
	return &Dispatcher{first: first, lanes: lanes, retry: tries, prices: prices, budget: c.Budget, stats: stats, batcher: batches, limited: c.Settings.EpisodeBudget > 0}, nil
}

// Ask answers one request.
func (d *Dispatcher) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return d.ask(ctx, &call{req: req})
}

// Relay is Ask for a request that stands for a call which its lane's model passes on as it came, and whose answer goes to a client while it arrives.
// So no second attempt is made beside it, and its answer is not in the cache, where it would lack what the client got.
func (d *Dispatcher) Relay(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return d.ask(ctx, &call{req: req, relayed: true})
}

// ask answers a call, which nothing else uses.
func (d *Dispatcher) ask(ctx context.Context, c *call) (*llm.Response, error) {
	start := time.Now()
	resp, err := d.first.ask(ctx, c)
	if err != nil {
		err = withModel(err, c.req)
	}
	d.stats.call(c.req, resp, err, time.Since(start))
	return resp, err
}

// Ready returns what prevents asking a model, before anything is asked: a provider that is unknown
// or has no key, or a missing price if there is a budget.
func (d *Dispatcher) Ready(model string) error {
	provider, _ := llm.SplitModel(model)
	if _, err := d.lanes.lane(provider); err != nil {
		return err
	}
	if !d.prices.Lookup(model).OK && (d.budget.Limit() > 0 || d.limited) {
		return d.prices.Unknown(model)
	}
	return nil
}

// Worst returns the most that an attempt at a request can cost at live prices, by its own model or
// a fallback. It counts the schema as part of the prompt, whether it will be or not: the result
// must not depend on what a server did before.
func (d *Dispatcher) Worst(req *llm.Request) (worst llm.Money, err error) {
	for _, model := range append([]string{req.Model}, req.Fallbacks...) {
		m := d.prices.Lookup(model)
		if !m.OK {
			return 0, d.prices.Unknown(model)
		}
		worst = max(worst, budget.Worst(m.Price, instructed(req), false))
	}
	return worst, nil
}

// List returns what tokens cost without the discounts of prompt caches, batches and cheaper tiers than was asked for, at the
// most expensive of a request's model and its fallbacks.
func (d *Dispatcher) List(req *llm.Request, u llm.Usage) (highest llm.Money) {
	for _, model := range append([]string{req.Model}, req.Fallbacks...) {
		if m := d.prices.Lookup(model); m.OK {
			highest = max(highest, budget.Reserved(m.Price, req).Cost(llm.Usage{Input: u.Input, Output: u.Output}, false))
		}
	}
	return highest
}

// withModel adds the model to an error that does not name it.
func withModel(err error, req *llm.Request) error {
	e := llm.AsError(err)
	if e.Provider != "" && e.Model != "" {
		return e
	}
	c := *e
	c.Provider, c.Model = llm.SplitModel(req.Model)
	return &c
}

// Drain sends nothing new: calls that wait are refused with llm.KindCanceled, calls in flight
// finish. Calls that wait for a durable batch are refused too: the batch is collected when the run
// is resumed. It cannot be undone.
func (d *Dispatcher) Drain() {
	d.batcher.Drain()
	d.budget.Drain(batch.DrainError())
	d.lanes.drain()
	d.retry.drain()
}

// Hold sends nothing new until it is called with nil: calls that wait are refused with e, calls in
// flight finish. If cut is set, those of Each end with e too. What may be billed for them counts.
func (d *Dispatcher) Hold(e *llm.Error, cut bool) {
	d.batcher.Hold(e)
	d.lanes.hold(e)
	if !cut || e == nil {
		return
	}
	d.groups.Range(func(g, ctx any) bool {
		g.(*callGroup).cut(ctx.(context.Context), e) //nolint:forcetypeassert // newGroup stores them
		return true
	})
}

// Set replaces the settings, of which only the budget and the concurrency may differ.
func (d *Dispatcher) Set(to *settings.Settings) {
	d.budget.SetLimit(to.Budget)
	d.lanes.set(to)
}

// Limits lists the limits of the servers that were asked.
func (d *Dispatcher) Limits() []Limit { return d.lanes.limits() }

// Release ends a session: no more requests of it will come. whole reports whether the session ended
// properly.
func (d *Dispatcher) Release(session string, whole bool) {
	for _, s := range d.lanes.sets() {
		s.Release(session, whole)
	}
}

// Away reports whether calls to a provider wait because it cannot be reached.
func (d *Dispatcher) Away(provider string) bool { return d.lanes.away(provider) }

// Unreachable lists the providers that cannot be reached, by name.
func (d *Dispatcher) Unreachable() []Outage { return d.lanes.unreachable() }

// Servers returns the state of each server of providers with several.
func (d *Dispatcher) Servers() []replica.State {
	var all []replica.State
	for _, s := range d.lanes.sets() {
		all = append(all, s.States()...)
	}
	return all
}

// Close ends background work and waits for it. Nothing may be in flight.
func (d *Dispatcher) Close() error {
	var errs []error
	for _, s := range d.lanes.sets() {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Stats returns the counts so far.
func (d *Dispatcher) Stats() Snapshot { return d.stats.Snapshot() }

// Budget returns the budget that calls draw on.
func (d *Dispatcher) Budget() *budget.Budget { return d.budget }

// layer is one step of a call on its way to a provider.
type layer interface {
	// ask answers c. Its error is an *llm.Error, or that of a context.
	ask(ctx context.Context, c *call) (*llm.Response, error)
}

// call is one call on its way through the layers, and everything that they share about it. A layer
// does not change the call that it is given, except that budgeted sets its account and its counts: if the layers below need something else, it gives them
// a changed copy. So any number of attempts can use one call at the same time.
type call struct {
	req      *llm.Request    // the current request: a repair or a fallback has another than the caller's
	account  *budget.Account // what attempts draw on, shared by all copies; set by budgeted, the outermost layer
	attempts *atomic.Int64   // how many were made so far; shared and set as account is
	waited   *atomic.Int64   // how long it waited so far, for room in the budget, for limits and in pauses; shared and set as account is
	inWave   *inWave         // its part in a wave; nil: none
	hasty    bool            // there is a model to fall back to: do not wait for an unreachable provider, and count refusals as failures
	relayed  bool            // see Dispatcher.Relay
	admitted func()          // called for each attempt that may be sent, from any goroutine; may be nil
}

// with returns a copy of the call with another request.
func (c *call) with(req *llm.Request) *call {
	next := *c
	next.req = req
	return &next
}

// waitedSince notes that the call has waited since began.
func (c *call) waitedSince(began time.Time) { c.waited.Add(int64(time.Since(began))) }

// admit reports that an attempt may be sent.
func (c *call) admit() {
	if c.admitted != nil {
		c.admitted()
	}
}

// aside notes that the call waits for others, until back is called. Outside of waves it does
// nothing.
func (c *call) aside() (back func()) {
	if c.inWave != nil {
		return c.inWave.Aside()
	}
	return func() {}
}

var _ llm.Model = (*Dispatcher)(nil)
