// Package app connects the parts of Parley. It makes a dispatcher from providers, prices,
// a cache and a budget, and plays a plan into a run file.
//
// It opens a provider only for the first request to it, so a key that no request needs may
// be missing.
//
// The parts: App is the dispatcher (app.go). Play plays a plan (play.go), after it has decided what of it is to be played into
// a file that exists (resume.go), with batch APIs (waves.go) and environments (actor.go). Lots plays a part of a run whose
// journal is elsewhere. Check, Fork, Merge and Summary are for the commands of these names.
//
// Package cli reads flags, and package planfile reads plan files.
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

	"parley/internal/ask/cache"
	"parley/internal/ask/credential"
	"parley/internal/ask/dialect"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/trust"
	"parley/internal/run/cluster/tally"
	"parley/internal/run/planfile"
	"parley/internal/serve/gateway"
	"parley/llm"
	"parley/world"
)

// Config configures an App. Settings are required.
type Config struct {
	// Config has the settings, and what a dispatcher is given as it is. Lanes, Open, Find and Cache are Open's to set, and by default Prices, as
	// the settings say.
	dispatch.Config
	// Providers are added to the presets. One with the name of a preset replaces it.
	Providers []provider.Provider
	// Models answer for the providers of dialect go, by the provider's name.
	Models map[string]llm.Model
	// Wrap wraps what answers for a provider, below everything that dispatch does. Default: nil.
	Wrap func(provider string, next llm.Model) llm.Model
	// Answers has the cache of a run whose folder is in another process. Default: the folder is here.
	Answers cache.Remote
	// Sim is how the built-in simulated provider behaves.
	Sim sim.Config
	// Trust says which keys may go where. Default: a preset's to its own hosts, and any to
	// this machine.
	Trust *trust.Gate
	// Relays pass on the calls of programs. Default: none, and no program can ask a model.
	Relays *gateway.Relays
	// Supervisor is a command that calls process.Supervise, for programs that are agents. Default: none.
	Supervisor []string
}

// App is a dispatcher with its providers, prices and cache.
type App struct {
	*dispatch.Dispatcher
	providers []provider.Provider
	wraps     bool // Config.Wrap is set
	cache     *cache.Store
	relays    *gateway.Relays // nil: there are no programs
	prices    *price.Table
	versions  versions
	elsewhere *tally.Tally // counts the calls of a run that workers play; nil: this process makes them

	mu   sync.Mutex
	open []io.Closer // holds connections
}

// Open makes an App. It opens no connection.
func Open(c Config) (_ *App, err error) {
	if folder := c.Settings.Cache; folder != "" && c.Answers != nil {
		c.Cache = cache.Over(c.Answers)
	} else if folder != "" {
		if c.Cache, err = cache.Open(folder); err != nil {
			return nil, err
		}
	}
	return assemble(c)
}

// assemble makes an App with an opened cache, or without one.
func assemble(c Config) (*App, error) {
	for _, p := range c.Providers {
		if err := p.Validate(); err != nil {
			return nil, err
		}
	}
	if c.Prices == nil {
		var err error
		if c.Prices, err = Prices(c.Providers, c.Settings.Prices); err != nil {
			return nil, err
		}
	}
	a := &App{relays: c.Relays, cache: c.Cache, providers: c.Providers, prices: c.Prices, wraps: c.Wrap != nil}
	c.Open = func(name string) (dispatch.Lane, error) { return a.openLane(c, name) }
	c.Find = func(name string) (provider.Provider, error) { return findProvider(c.Providers, name) }
	d, err := dispatch.New(c.Config)
	if err != nil {
		return nil, err
	}
	a.Dispatcher = d
	return a, nil
}

// Prices returns the prices to charge: those of the user's file first, then the embedded
// ones. A provider on this machine without a price costs nothing.
func Prices(providers []provider.Provider, file string) (*price.Table, error) {
	own, err := localPrices(providers)
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

// Stats counts the calls, of all workers if these make them.
func (a *App) Stats() dispatch.Snapshot {
	if a.elsewhere != nil {
		return a.elsewhere.Stats()
	}
	return a.Dispatcher.Stats()
}

// Waits lists what calls wait for, also those of workers; hostile.
func (a *App) Waits(now time.Time) []dispatch.Wait {
	if a.elsewhere != nil {
		return a.elsewhere.Waits()
	}
	return a.Dispatcher.Waits(now)
}

// Unpriced returns the models of agents whose price is not known, sorted.
func (a *App) Unpriced(agents []world.Agent) []string {
	unpriced := []string{}
	for _, m := range modelsOf(agents) {
		if _, ok := a.prices.Find(m); !ok {
			unpriced = append(unpriced, m)
		}
	}
	slices.Sort(unpriced)
	return slices.Compact(unpriced)
}

// localPrices returns prices of 0 for the providers on this machine.
func localPrices(providers []provider.Provider) (*price.Table, error) {
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
	return price.Read(bytes.NewReader(b), "prices of this machine")
}

// openLane opens the provider of that name.
func (a *App) openLane(c Config, name string) (dispatch.Lane, error) {
	p, err := findProvider(c.Providers, name)
	if err != nil {
		return dispatch.Lane{}, err
	}
	if p.Dialect == "sim" {
		m, err := sim.New(c.Sim)
		if err != nil {
			return dispatch.Lane{}, err
		}
		return inProcess(c, p, m)
	}
	if p.Dialect == "go" {
		m := c.Models[name]
		if m == nil {
			return dispatch.Lane{}, &llm.Error{Kind: llm.KindAuth, Provider: name, Message: "the models of this provider are values of a Go program (dialect go): only a program that supplies them can ask them"}
		}
		return inProcess(c, p, goModel(m))
	}
	// Play has checked the plan's keys before. This check also covers requests without a plan.
	if err := c.Trust.Allow(keyNeeds(p, "", "provider "+name)...); err != nil {
		return dispatch.Lane{}, &llm.Error{Kind: llm.KindAuth, Provider: name, Message: err.Error(), Err: err}
	}
	keys, err := credential.New(p)
	if err != nil {
		return dispatch.Lane{}, &llm.Error{Kind: llm.KindAuth, Provider: name, Message: err.Error(), Err: err}
	}
	lane, err := a.openServers(c, p, keys)
	if err != nil {
		return dispatch.Lane{}, &llm.Error{Kind: llm.KindAuth, Provider: name, Message: err.Error(), Err: err}
	}
	if _, ok := p.BatchLimits(); ok && c.Wrap == nil { // every request goes through Wrap
		if lane.BatchAPI, err = dialect.OpenBatches(p, keys); err != nil {
			return dispatch.Lane{}, &llm.Error{Kind: llm.KindAuth, Provider: name, Message: err.Error(), Err: err}
		}
		a.closeLater(lane.BatchAPI)
	}
	return lane, nil
}

// inProcess returns the lane of a provider without a server.
func inProcess(c Config, p provider.Provider, m llm.Model) (lane dispatch.Lane, err error) {
	if c.Relays != nil {
		m, err = c.Relays.Model(p, nil, m)
	}
	return dispatch.Lane{Provider: p, Model: c.wrapped(p.Name, m)}, err
}

// openServers opens each server of a provider. A single server needs no replica set, unless
// its metrics are read or its sessions are closed.
func (a *App) openServers(c Config, p provider.Provider, keys *credential.Source) (dispatch.Lane, error) {
	lane := dispatch.Lane{Provider: p}
	for _, one := range p.Servers() {
		m, err := dialect.Open(one, keys)
		if err != nil {
			return dispatch.Lane{}, err
		}
		a.closeLater(m)
		server, _ := m.(replica.Server)
		if c.Relays != nil {
			if m, err = c.Relays.Model(one, keys, m); err != nil {
				return dispatch.Lane{}, err
			}
			a.closeLater(m)
		}
		lane.Model = c.wrapped(p.Name, m)
		lane.Replicas = append(lane.Replicas, dispatch.Replica{Name: one.BaseURL, Model: lane.Model, Server: server})
	}
	if len(lane.Replicas) == 1 && p.Metrics == "" && !p.CloseSession {
		lane.Replicas = nil
	}
	return lane, nil
}

// wrapped applies Wrap to a model. It keeps the model's way to be pinged.
func (c *Config) wrapped(provider string, m llm.Model) llm.Model {
	if c.Wrap == nil {
		return m
	}
	own := c.Wrap(provider, m)
	if own == nil {
		own = llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			return nil, brokenModel("Wrap returned no model for the provider %s", provider)
		})
	}
	if p, ok := m.(replica.Pinger); ok {
		return struct {
			llm.Model
			replica.Pinger
		}{strictModel{own, true}, p}
	}
	return strictModel{own, true}
}

// Providers returns the providers that were added to the presets.
func (a *App) Providers() []provider.Provider { return a.providers }

// hasSessions reports whether a provider needs to know which requests belong together.
func (a *App) hasSessions() bool {
	return slices.ContainsFunc(a.providers, provider.Provider.HasSessions)
}

// closeLater makes Close close v, if v can be closed.
func (a *App) closeLater(v any) {
	if closer, ok := v.(io.Closer); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.open = append(a.open, closer)
	}
}

// findProvider returns the provider of that name: one of own, or a preset.
func findProvider(own []provider.Provider, name string) (provider.Provider, error) {
	if i := slices.IndexFunc(own, func(p provider.Provider) bool { return p.Name == name }); i >= 0 {
		return own[i], nil
	}
	if p, ok := provider.Lookup(name); ok {
		return p, nil
	}
	return provider.Provider{}, provider.Unknown(name)
}

// Batched reports whether a model can be asked over a batch API.
func (a *App) Batched(model string) bool {
	name, _ := llm.SplitModel(model)
	p, err := findProvider(a.providers, name)
	if err != nil {
		return false
	}
	_, ok := p.BatchLimits()
	return ok && !a.wraps
}

// Close closes connections and the cache. No call may be in flight.
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

// Needs lists which keys the models of a plan send where, and which programs and code it runs. file is the plan file or, if
// recorded is set, the run file that recorded the plan.
func Needs(plan *planfile.Plan, file string, recorded bool) ([]trust.Need, error) {
	source, prefix := "the plan "+file, ""
	if recorded {
		source, prefix = "the run file "+file, file+": "
	}
	used := map[string]bool{}
	for _, m := range modelsOf(plan.Agents) {
		name, _ := llm.SplitModel(m)
		used[name] = true
	}
	var all []trust.Need
	for _, p := range plan.Providers {
		if used[p.Name] {
			all = append(all, keyNeeds(p, source, prefix+plan.Places[p.Name])...)
		}
	}
	started, err := programNeeds(plan, file, recorded)
	for i := range started {
		started[i].Source = source
	}
	return append(all, started...), err
}

// keyNeeds lists which keys a provider sends where.
func keyNeeds(p provider.Provider, source, location string) []trust.Need {
	var all []trust.Need
	for _, g := range trust.Keys(p) {
		all = append(all, trust.Need{Grant: g, Source: source, Place: location})
	}
	return all
}

// destinations lists the hosts that get the key of a provider, and why they may.
func destinations(gate *trust.Gate, p provider.Provider) []Destination {
	all := []Destination{}
	if p.Credentials != "" {
		for _, one := range p.Servers() {
			host, err := trust.Origin(one.BaseURL)
			switch {
			case err != nil: // provider.Validate refuses it
			case trust.Loopback(host):
				all = append(all, Destination{Host: host, Allowed: trust.OnLoopback})
			default:
				all = append(all, Destination{Host: host, Allowed: trust.Preset})
			}
		}
	}
	for _, g := range trust.Keys(p) {
		all = append(all, Destination{Host: g.Host, Allowed: gate.Why(g), Plain: g.Plain(), Flag: g.Flag()})
	}
	return all
}
