// Package app puts Parley together: it is the only place that knows every part. It
// makes a dispatcher of providers, prices, a cache and a budget.
//
// It promises that a provider is opened only when something is asked of it, so that a
// key that is not needed need not be there.
//
// It is not for reading flags or files a user writes (packages cli and config).
package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"parley/internal/batch"
	"parley/internal/batch/batcher"
	"parley/internal/cachestore"
	"parley/internal/dialect"
	"parley/internal/dialect/batchapi"
	"parley/internal/dialect/sim"
	"parley/internal/dispatch"
	"parley/internal/dispatch/budget"
	"parley/internal/dispatch/outage"
	"parley/internal/gomodel"
	"parley/internal/price"
	"parley/internal/provider"
	"parley/internal/replica"
	"parley/internal/trust"
	"parley/llm"
)

// Config says what to put together. The zero value asks the presets, with no budget and
// no cache.
type Config struct {
	// Providers come beside the presets, or in the place of one with the same name.
	Providers []provider.Provider
	// Models answer for the providers of dialect go, by the provider's name.
	Models map[string]llm.Model
	// Budget is what may be spent in all, and Spent what of it is gone. Default: no limit.
	Budget, Spent llm.Money
	// Prices is a file of prices that come before the embedded ones. Default: none.
	Prices string
	// Cache is a folder for answers. Default: no cache.
	Cache string
	// CacheBytes is the most the folder holds. Default: the store's own.
	CacheBytes int64

	// Concurrency is the most calls in flight at one provider. Default: what it bears.
	Concurrency int
	// Batch, Batches and Record are dispatch's.
	Batch   batcher.Policy
	Batches []batch.Open
	Record  func(ctx context.Context, e batch.Event) error

	// Sim is how the built-in simulated provider behaves.
	Sim sim.Config
	// Retry, Hedge, Repairs and AttemptTimeout are dispatch's.
	Retry          dispatch.Retry
	Hedge          dispatch.Hedge
	Repairs        int
	AttemptTimeout time.Duration
	// Rests, Outages and Notices are dispatch's.
	Rests   func(replica.Rest)
	Outages func(outage.Outage)
	Notices func(dispatch.Notice)
	// Trust says which keys may go where. Default: a preset's to its own hosts, and any to
	// this machine.
	Trust *trust.Gate
}

// App is everything put together. Its dispatcher is its own.
type App struct {
	*dispatch.Dispatcher
	providers []provider.Provider
	cache     *cachestore.Store
	prices    *price.Table

	mu   sync.Mutex
	open []io.Closer // what holds connections
}

// Open puts c together. It opens no connection.
func Open(c Config) (*App, error) {
	for _, p := range c.Providers {
		if err := p.Validate(); err != nil {
			return nil, err
		}
	}
	prices, err := Prices(c.Providers, c.Prices)
	if err != nil {
		return nil, err
	}
	a := &App{providers: c.Providers, prices: prices}
	if c.Cache != "" {
		store, err := cachestore.Open(c.Cache, cachestore.Options{DiskBytes: c.CacheBytes})
		if err != nil {
			return nil, err
		}
		a.cache = store
	}
	d, err := dispatch.New(dispatch.Config{
		Open:   func(name string) (dispatch.Lane, error) { return a.lane(c, name) },
		Find:   func(name string) (provider.Provider, error) { return find(c.Providers, name) },
		Prices: prices,
		Budget: budget.New(c.Budget, c.Spent),
		Cache:  a.cache,
		Retry:  c.Retry,
		Batch:  c.Batch, Batches: c.Batches, Record: c.Record,
		Hedge:   c.Hedge,
		Repairs: c.Repairs, AttemptTimeout: c.AttemptTimeout, Rests: c.Rests, Outages: c.Outages, Notices: c.Notices,
	})
	if err != nil {
		return nil, err
	}
	a.Dispatcher = d
	return a, nil
}

// Prices are what everything is charged by: the user's file first, then the embedded
// table, and nothing for what runs on this machine.
func Prices(providers []provider.Provider, file string) (*price.Table, error) {
	own, err := ownHardware(providers)
	if err != nil {
		return nil, err
	}
	prices := own.With(price.Embedded())
	if file == "" {
		return prices, nil
	}
	users, err := price.Load(file)
	if err != nil {
		return nil, err
	}
	return prices.With(users), nil
}

// Unpriced lists those of models whose price is not known, sorted.
func (a *App) Unpriced(models []string) []string {
	unpriced := []string{}
	for _, m := range models {
		if _, ok := a.prices.Find(m); !ok {
			unpriced = append(unpriced, m)
		}
	}
	slices.Sort(unpriced)
	return slices.Compact(unpriced)
}

// ownHardware prices what runs on this machine: unless a price is known, it costs nothing.
func ownHardware(providers []provider.Provider) (*price.Table, error) {
	models := map[string]map[string]float64{}
	for _, p := range providers {
		if !slices.ContainsFunc(p.Servers(), func(one provider.Provider) bool { return !trust.Loopback(one.BaseURL) }) {
			models[p.Name+"/*"] = map[string]float64{"input": 0, "output": 0}
		}
	}
	b, err := json.Marshal(map[string]any{"models": models})
	if err != nil {
		return nil, err
	}
	return price.Read(bytes.NewReader(b), "prices of what runs here")
}

// lane opens the provider of that name.
func (a *App) lane(c Config, name string) (dispatch.Lane, error) {
	p, err := find(c.Providers, name)
	if err != nil {
		return dispatch.Lane{}, err
	}
	if n := c.Concurrency; n > 0 && (p.Limits.Concurrency == 0 || p.Limits.Concurrency > n) {
		p.Limits.Concurrency = n
	}
	if p.Dialect == "sim" {
		m, err := sim.New(c.Sim)
		if err != nil {
			return dispatch.Lane{}, err
		}
		return dispatch.Lane{Provider: p, Model: m}, nil
	}
	if p.Dialect == "go" {
		m := c.Models[name]
		if m == nil {
			return dispatch.Lane{}, &llm.Error{Kind: llm.KindAuth, Provider: name, Message: "the models of this provider are values of a Go program (dialect go): only a program that brings them can ask them"}
		}
		return dispatch.Lane{Provider: p, Model: gomodel.New(m)}, nil
	}
	// Whoever plays a plan has asked for what it needs before: here it is only held to.
	if err := c.Trust.Allow(needs(p, "", "provider "+name)...); err != nil {
		return dispatch.Lane{}, &llm.Error{Kind: llm.KindAuth, Provider: name, Message: err.Error(), Err: err}
	}
	lane, err := a.servers(p)
	if err != nil {
		return dispatch.Lane{}, &llm.Error{Kind: llm.KindAuth, Provider: name, Message: err.Error(), Err: err}
	}
	if _, ok := p.BatchLimits(); ok {
		if lane.BatchAPI, err = batchapi.Open(p); err != nil {
			return dispatch.Lane{}, &llm.Error{Kind: llm.KindAuth, Provider: name, Message: err.Error(), Err: err}
		}
		a.closes(lane.BatchAPI)
	}
	return lane, nil
}

// servers opens each server of a provider. One alone, of which nothing but answers is wanted,
// is asked without a set around it.
func (a *App) servers(p provider.Provider) (dispatch.Lane, error) {
	lane := dispatch.Lane{Provider: p}
	for _, one := range p.Servers() {
		m, err := dialect.Open(one)
		if err != nil {
			return dispatch.Lane{}, err
		}
		a.closes(m)
		server, _ := m.(replica.Server)
		lane.Model = m
		lane.Replicas = append(lane.Replicas, dispatch.Replica{Name: one.BaseURL, Model: m, Server: server})
	}
	if len(lane.Replicas) == 1 && p.Metrics == "" && !p.CloseSession {
		lane.Replicas = nil
	}
	return lane, nil
}

// sessions says whether it matters to a provider which requests belong together.
func (a *App) sessions() bool { return slices.ContainsFunc(a.providers, provider.Provider.HasSessions) }

// closes notes that something may hold connections.
func (a *App) closes(it any) {
	if closer, ok := it.(io.Closer); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.open = append(a.open, closer)
	}
}

func find(own []provider.Provider, name string) (provider.Provider, error) {
	if i := slices.IndexFunc(own, func(p provider.Provider) bool { return p.Name == name }); i >= 0 {
		return own[i], nil
	}
	if p, ok := provider.Lookup(name); ok {
		return p, nil
	}
	return provider.Provider{}, provider.Unknown(name)
}

// Batched says whether a model can be asked over a batch API.
func (a *App) Batched(model string) bool {
	name, _ := llm.SplitModel(model)
	p, err := find(a.providers, name)
	if err != nil {
		return false
	}
	_, ok := p.BatchLimits()
	return ok
}

// Close lets go of connections and the cache. Nothing may be in flight.
func (a *App) Close() error {
	errs := []error{a.Dispatcher.Close()}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.open {
		errs = append(errs, c.Close())
	}
	a.open = nil
	if a.cache != nil {
		a.cache.Close()
	}
	return errors.Join(errs...)
}
