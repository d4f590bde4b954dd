// Package dispatch is everything between a question and the wire: it answers any
// number of requests to any number of providers as fast as their limits allow.
//
// It is a nest of layers, each a file here and each around the next:
//
//		budget(cache(coalesce(answer(retry(hedge(lane → reach(warm(limit(meter(dialect))))))))))
//		                                 in a wave: lane → enqueue → a batch
//
//	  - budget reserves the most a call can cost and settles what it did cost
//	  - cache answers what was answered before
//	  - coalesce joins equal calls in flight at temperature zero
//	  - answer makes structured answers valid, or fails
//	  - retry classifies failures, waits them out, falls back to other models
//	  - hedge sends a second try beside a straggler
//	  - lane picks the provider, and of several servers the one that has the session
//	  - reach holds calls back while the provider cannot be reached
//	  - warm sends one call of a long prefix before the rest
//	  - limit paces requests, tokens and calls in flight, and adapts
//	  - meter is one attempt: priced, bounded in time, counted
//	  - enqueue is one attempt too, of a call in a wave: it waits for its line of a batch
//
// A Dispatcher is an llm.Model, and so is each dialect. In between, a request travels as a call: one
// value that holds whatever the layers tell each other about it. Contexts carry deadlines
// and cancellation, and to a dialect what whoever asked has put into them.
//
// What it promises: a budget is never exceeded by servers that keep the limits of requests,
// and otherwise by one answer for each call that rests on trust (see conduct); no permit is held while anything
// waits; every error is an *llm.Error of one kind; calls are served lowest Order
// first; a call returns soon after its context ends; nothing here changes what an
// answer says. Everything may be used from any number of goroutines.
//
// What it is not for: it knows no wire format (package dialect) and keeps no record
// of calls (the journal).
package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"parley/internal/answer"
	"parley/internal/batch"
	"parley/internal/batch/batcher"
	"parley/internal/cachestore"
	"parley/internal/dispatch/budget"
	"parley/internal/dispatch/outage"
	"parley/internal/price"
	"parley/internal/provider"
	"parley/internal/replica"
	"parley/llm"
)

// Config says what a Dispatcher works with.
type Config struct {
	// Lanes are the providers.
	Lanes []Lane
	// Open returns the lane of a provider that is not in Lanes, when it is first asked
	// for. Its error is what the call fails with. Default: there are no others.
	Open func(name string) (Lane, error)
	// Find describes a provider without opening it, for the cache. Default: it is opened.
	Find func(name string) (provider.Provider, error)
	// Prices of models. Default: the embedded table.
	Prices *price.Table
	// Budget is what may be spent. Default: no limit, only counting.
	Budget *budget.Budget
	// Cache keeps answers. Default: none.
	Cache *cachestore.Store
	// Retry says how failures are tried again.
	Retry Retry
	// Hedge says when slow calls get a second try. Default: never.
	Hedge Hedge
	// Repairs is how often a structured answer that does not follow its schema is asked
	// for again. Default: 2; negative: never.
	Repairs int
	// Batch says when the calls of a wave go over the providers' batch APIs.
	Batch batcher.Policy
	// Batches are those that earlier processes of the run left open, by their events.
	Batches []batch.Open
	// Record makes a step in the life of a batch durable before it returns, and a closed one not
	// before all that done of Wave was given. It is called from many goroutines at once. Its
	// error ends the calls of the batch. Default: nothing is durable, and a crash loses what is open.
	Record func(ctx context.Context, e batch.Event) error
	// AttemptTimeout bounds one attempt from sent to whole. Default: 0, the dialect's
	// own bound on time without a sign of life.
	AttemptTimeout time.Duration
	// Rests is told when a server of a provider with several begins to rest and when it is
	// back: see replica.Config. Default: nobody is told.
	Rests func(replica.Rest)
	// Outages is told when a provider cannot be reached and is waited for, and when it is back.
	// It may be called from many goroutines at once, and holds up calls. Default: nobody is told.
	Outages func(outage.Outage)
	// Notices is told what somebody who pays should know of a model, once for each model and
	// reason. It may be called from many goroutines at once. Default: nobody is told.
	Notices func(Notice)
}

// Dispatcher answers requests. It is an llm.Model.
type Dispatcher struct {
	first   layer // the outermost
	lanes   *lanes
	retry   *retry
	prices  *budget.Prices
	budget  *budget.Budget
	cache   *cachestore.Store
	stats   *Stats
	batcher *batcher.Batcher
}

// New returns a Dispatcher over c.
func New(c Config) (*Dispatcher, error) {
	if len(c.Lanes) == 0 && c.Open == nil {
		return nil, errors.New("dispatch: no providers")
	}
	seen := map[string]bool{}
	for _, l := range c.Lanes {
		if l.Provider.Name == "" || seen[l.Provider.Name] {
			return nil, fmt.Errorf("dispatch: provider %q: each needs a name of its own", l.Provider.Name)
		}
		seen[l.Provider.Name] = true
	}
	if c.Prices == nil {
		c.Prices = price.Embedded()
	}
	if c.Budget == nil {
		c.Budget = budget.New(0, 0)
	}
	stats := newStats()
	var lanes *lanes
	prices := budget.NewPrices(c.Prices, func(model string) bool { return lanes.keepsLimits(model) })
	batches, err := newBatcher(c)
	if err != nil {
		return nil, err
	}
	lanes = newLanes(c, prices, stats, batches)

	tries := newRetry(newHedge(lanes, c.Hedge, stats), c.Retry, stats)
	schemas := newSchemas(lanes.followsSchema)
	var first layer = &answers{next: tries, compiler: &answer.Compiler{}, schemas: schemas, repairs: max(0, cmp.Or(c.Repairs, 2)), stats: stats}
	first = newCoalesce(first)
	first = newCache(first, c.Cache, lanes.find)
	first = &budgeted{next: first, budget: c.Budget, prices: prices, batched: lanes.batched, asked: schemas.asked}
	return &Dispatcher{first: first, lanes: lanes, retry: tries, prices: prices, budget: c.Budget, cache: c.Cache, stats: stats, batcher: batches}, nil
}

// Ask answers one request.
func (d *Dispatcher) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return d.ask(ctx, &call{req: req})
}

// ask answers a call, which nobody else uses.
func (d *Dispatcher) ask(ctx context.Context, c *call) (*llm.Response, error) {
	start := time.Now()
	resp, err := d.first.ask(ctx, c)
	if err != nil {
		err = named(err, c.req)
	}
	d.stats.call(c.req, resp, err, time.Since(start))
	return resp, err
}

// Ready says what stands in the way of asking a model, before anything is asked: a provider
// that is not known or has no key, or no price where a budget is to be kept.
func (d *Dispatcher) Ready(model string) error {
	provider, _ := llm.SplitModel(model)
	if _, err := d.lanes.lane(provider); err != nil {
		return err
	}
	if !d.prices.Look(model).OK && d.budget.Limit() > 0 {
		return d.prices.Unknown(model)
	}
	return nil
}

// Worst is the most that a try at a request can cost at live prices, be it of its own model or
// of a fallback. The prompt is taken to hold the schema, whether or not it will: what a server
// did before must not change it.
func (d *Dispatcher) Worst(req *llm.Request) (worst llm.Money, err error) {
	for _, model := range append([]string{req.Model}, req.Fallbacks...) {
		m := d.prices.Look(model)
		if !m.OK {
			return 0, d.prices.Unknown(model)
		}
		worst = max(worst, budget.Worst(m.Price, instructed(req), false))
	}
	return worst, nil
}

// List is what tokens cost by the list, without the discounts of prompt caches and batches: at
// the most expensive of a request's model and its fallbacks.
func (d *Dispatcher) List(req *llm.Request, u llm.Usage) (most llm.Money) {
	for _, model := range append([]string{req.Model}, req.Fallbacks...) {
		if m := d.prices.Look(model); m.OK {
			most = max(most, m.Price.Cost(llm.Usage{Input: u.Input, Output: u.Output}, false))
		}
	}
	return most
}

// named makes sure that an error says which model it is about.
func named(err error, req *llm.Request) error {
	e := llm.AsError(err)
	if e.Provider != "" && e.Model != "" {
		return e
	}
	c := *e
	c.Provider, c.Model = llm.SplitModel(req.Model)
	return &c
}

// Drain begins nothing new: whatever waits is refused with llm.KindCanceled, whatever is
// in flight is finished and returned. Calls that wait for a batch whose events are durable
// are let go too: it is collected when the run is resumed. It cannot be undone.
func (d *Dispatcher) Drain() {
	d.batcher.Drain()
	d.budget.Drain(batcher.DrainError())
	d.lanes.drain()
	d.retry.drain()
}

// Release ends a session: no request of it will come. whole is whether it came to its end.
func (d *Dispatcher) Release(session string, whole bool) {
	for _, s := range d.lanes.sets() {
		s.Release(session, whole)
	}
}

// Away says whether calls to a provider wait since it cannot be reached.
func (d *Dispatcher) Away(provider string) bool { return d.lanes.away(provider) }

// Unreachable lists the providers that are waited for, in order of name.
func (d *Dispatcher) Unreachable() []outage.Outage { return d.lanes.unreachable() }

// Servers tells how the servers of providers with several stand.
func (d *Dispatcher) Servers() []replica.State {
	var all []replica.State
	for _, s := range d.lanes.sets() {
		all = append(all, s.States()...)
	}
	return all
}

// Close ends what goes on beside calls, and waits for it. Nothing may be in flight.
func (d *Dispatcher) Close() error {
	var errs []error
	for _, s := range d.lanes.sets() {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Stats returns the counts so far.
func (d *Dispatcher) Stats() Snapshot { return d.stats.Snapshot() }

// Budget returns the budget calls draw on.
func (d *Dispatcher) Budget() *budget.Budget { return d.budget }

var _ llm.Model = (*Dispatcher)(nil)
