package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/dispatch/tokens"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/llm"
)

// Lane is a provider and the model that talks to it: a dialect, or the simulated provider.
type Lane struct {
	Provider provider.Provider
	Model    llm.Model
	// Replicas are the provider's servers, instead of Model, if there are several or they need more
	// than answering. Each has its own limits.
	Replicas []Replica
	// BatchAPI is the provider's batch API. Default: none, and waves are asked live.
	BatchAPI batch.API
}

// Replica is one of several servers of a provider.
type Replica struct {
	// Name is its address, for readers.
	Name  string
	Model llm.Model
	// Server is nil if the server can only answer.
	Server replica.Server
}

// lanes sends every call down the lane of its provider.
type lanes struct {
	open     func(name string) (Lane, error)
	describe func(name string) (provider.Provider, error) // without opening it; may be nil
	build    func(Lane) *lane
	deadline time.Duration // of a call in a wave, once it is asked live

	mu       sync.RWMutex
	settings *settings.Settings
	byName   map[string]*lane
	draining bool
	held     *llm.Error // refuses calls for now
}

// lane is the layers of one provider, with one server or several.
type lane struct {
	provider  provider.Provider
	live      layer
	endpoints []*endpoint
	set       *replica.Set // nil if there is one server, which can only answer
	reach     *reach       // nil if calls do not wait for an unreachable provider
	enqueue   *enqueue     // nil if there is no batch API
}

// ask asks the provider that the request's model names.
func (l *lanes) ask(ctx context.Context, c *call) (*llm.Response, error) {
	name, _ := llm.SplitModel(c.req.Model)
	lane, err := l.lane(name)
	if err != nil {
		return nil, err
	}
	switch {
	case c.inWave == nil:
		return lane.live.ask(ctx, c)
	case lane.enqueue == nil:
		return c.inWave.live(ctx, c, lane.live, l.deadline)
	}
	return lane.enqueue.ask(ctx, c, func() (*llm.Response, error) { return c.inWave.live(ctx, c, lane.live, l.deadline) })
}

// lane returns the lane of a provider, and opens it if necessary.
func (l *lanes) lane(name string) (*lane, error) {
	l.mu.RLock()
	found := l.byName[name]
	l.mu.RUnlock()
	if found != nil {
		return found, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.byName[name]; found != nil {
		return found, nil
	}
	if l.open == nil || name == "" {
		err := l.unknown(name)
		return nil, &llm.Error{Kind: llm.KindBadRequest, Message: err.Error(), Err: err}
	}
	in, err := l.open(name)
	if err != nil {
		if e, ok := errors.AsType[*llm.Error](err); ok {
			return nil, e
		}
		return nil, &llm.Error{Kind: llm.KindBadRequest, Message: err.Error(), Err: err}
	}
	opened := l.build(in)
	l.byName[name] = opened
	if l.draining {
		opened.drain()
	}
	opened.hold(l.held)
	return opened, nil
}

// find describes a provider.
func (l *lanes) find(name string) (provider.Provider, error) {
	l.mu.RLock()
	found := l.byName[name]
	l.mu.RUnlock()
	if found == nil && l.describe != nil {
		return l.describe(name)
	}
	found, err := l.lane(name)
	if err != nil {
		return provider.Provider{}, err
	}
	return found.provider, nil
}

func (l *lanes) unknown(name string) error {
	names := slices.Sorted(maps.Keys(l.byName))
	switch {
	case l.open != nil:
		return provider.Unknown(name, names...)
	case name == "":
		return fmt.Errorf("a model is written provider/model; providers here: %s", strings.Join(names, ", "))
	}
	return fmt.Errorf("no provider %q; providers here: %s", name, strings.Join(names, ", "))
}

func newLanes(c Config, prices *budget.Prices, s *counters, batches *batch.Batcher) *lanes {
	notes := &notices{events: c.Events}
	l := &lanes{open: c.Open, describe: c.Find, settings: c.Settings, byName: map[string]*lane{}, deadline: c.Settings.Retry.Longest()}
	l.build = func(in Lane) *lane {
		guess := tokens.NewEstimator()
		newServer := func(m llm.Model, address string) *endpoint {
			p := in.Provider
			p.Limits.Concurrency = l.concurrency(p)
			return newEndpoint(p, address, c, &meter{next: m, prices: prices, stats: s, notices: notes}, guess, s)
		}
		ln := newLane(in, newServer, c.Events)
		ln.addReach(in, c)
		if limits, ok := in.Provider.BatchLimits(); ok && in.BatchAPI != nil {
			ln.enqueue = &enqueue{queue: batches.Queue(in.Provider.Name, in.BatchAPI, limits), guess: guess, prices: prices, stats: s, notices: notes}
		}
		return ln
	}
	for _, in := range c.Lanes {
		l.byName[in.Provider.Name] = l.build(in)
	}
	return l
}

// newLane makes the lane of a provider. newServer makes the layers of one of its servers.
func newLane(in Lane, newServer func(m llm.Model, address string) *endpoint, events func(Event)) *lane {
	ln := &lane{provider: in.Provider}
	var members []replica.Member
	for _, r := range in.Replicas {
		e := newServer(r.Model, r.Name)
		members = append(members, replica.Member{Name: r.Name, Server: r.Server, Steer: e.steer, Recall: e.recall})
		ln.endpoints = append(ln.endpoints, e)
	}
	c := replica.Config{
		EndSessions: in.Provider.CloseSession, Sticky: in.Provider.Session == provider.SessionPath,
		Rests: func(r replica.Rest) { events(Event{Rest: &r}) },
	}
	if in.Provider.Metrics != "" {
		c.LoadEvery = loadEvery
	}
	if set, err := replica.New(members, c); err == nil {
		ln.set, ln.live = set, &replicas{set: set, endpoints: ln.endpoints}
		return ln
	}
	e := newServer(in.Model, in.Provider.Servers()[0].BaseURL) // there are no replicas
	ln.endpoints, ln.live = []*endpoint{e}, e
	return ln
}

// replicas sends each call to one of several servers.
type replicas struct {
	set       *replica.Set
	endpoints []*endpoint
}

// ask asks the server that the set picks.
func (r *replicas) ask(ctx context.Context, c *call) (*llm.Response, error) {
	return r.set.Do(ctx, c.req.Session, func(server int) (*llm.Response, error) { return r.endpoints[server].ask(ctx, c) })
}

// loadEvery is how often a server is asked for its load.
const loadEvery = time.Second

func (l *lanes) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	for _, lane := range l.byName {
		lane.drain()
	}
}

func (l *lane) drain() {
	if l.reach != nil {
		l.reach.refuseWaiting(batch.DrainError())
	}
	for _, e := range l.endpoints {
		e.drain()
	}
}

// hold refuses calls with e until e is nil.
func (l *lanes) hold(e *llm.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = e
	for _, lane := range l.byName {
		lane.hold(e)
	}
}

func (l *lane) hold(e *llm.Error) {
	for _, one := range l.endpoints {
		one.hold(e)
	}
}

// concurrency returns the maximum number of calls in flight at a provider; 0: what it allows.
func (l *lanes) concurrency(p provider.Provider) int {
	if own, limit := p.Limits.Concurrency, l.settings.Limits.Concurrency; own == 0 || limit > 0 && limit < own {
		return limit
	}
	return p.Limits.Concurrency
}

// set replaces the settings. If their concurrency differs, it is more than 0.
func (l *lanes) set(to *settings.Settings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.settings
	if l.settings = to; to.Limits == was.Limits {
		return
	}
	for _, lane := range l.byName {
		for _, one := range lane.endpoints {
			one.setConcurrency(l.concurrency(lane.provider))
		}
	}
}

// Limit is the limits of a server of a provider.
type Limit struct {
	Provider, Server string
	Models           string // the pattern of the models that they are for; empty: all others
	limiter.Bounds
}

// limits lists the limits of all open lanes, by provider.
func (l *lanes) limits() (all []Limit) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(l.byName)) {
		for _, e := range l.byName[name].endpoints {
			for _, g := range e.groups {
				all = append(all, Limit{name, e.address, g.pattern, g.limit.Bounds()})
			}
		}
	}
	return all
}

// sets lists the replicas of all open lanes, by provider.
func (l *lanes) sets() []*replica.Set {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var sets []*replica.Set
	for _, name := range slices.Sorted(maps.Keys(l.byName)) {
		if lane := l.byName[name]; lane.set != nil {
			sets = append(sets, lane.set)
		}
	}
	return sets
}

// away reports whether calls to a provider wait because it cannot be reached.
func (l *lanes) away(name string) bool {
	l.mu.RLock()
	lane := l.byName[name]
	l.mu.RUnlock()
	if lane == nil || lane.reach == nil {
		return false
	}
	_, away := lane.reach.Outage()
	return away
}

// unreachable lists the outages of all open lanes, by provider.
func (l *lanes) unreachable() []Outage {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var all []Outage
	for _, name := range slices.Sorted(maps.Keys(l.byName)) {
		if r := l.byName[name].reach; r != nil {
			if o, ok := r.Outage(); ok {
				all = append(all, o)
			}
		}
	}
	return all
}

// followsSchema reports whether a model is known to follow a schema that is sent natively.
func (l *lanes) followsSchema(name string) bool {
	prov, model := llm.SplitModel(name)
	lane, err := l.lane(prov)
	return err != nil || lane.provider.FollowsSchema(model)
}

// continues reports whether a model can continue an answer exactly, from the ids of its tokens.
func (l *lanes) continues(name string) bool {
	prov, model := llm.SplitModel(name)
	p, err := l.find(prov)
	return err == nil && p.Continues(model)
}

// keepsLimits reports whether a model is known to keep the limit on output tokens.
func (l *lanes) keepsLimits(name string) bool {
	prov, _ := llm.SplitModel(name)
	p, err := l.find(prov)
	return err != nil || p.KeepsLimits()
}

// accounts calls each with the limiters of all open lanes, and a name that is the same in every process
// that uses the same account.
func (l *lanes) accounts(each func(name string, lim *limiter.Limiter)) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for name, lane := range l.byName {
		for _, e := range lane.endpoints {
			for _, g := range e.groups {
				each(name+" "+e.address+" "+g.pattern, g.limit.Limiter)
			}
		}
	}
}

// Demands returns how much of each account that was opened is used and needed, by its name.
func (d *Dispatcher) Demands() map[string]limiter.Demand {
	all := map[string]limiter.Demand{}
	d.lanes.accounts(func(name string, lim *limiter.Limiter) { all[name] = lim.Demand() })
	return all
}

// Share sets the part of each account that may be used. Accounts that are not named keep theirs.
func (d *Dispatcher) Share(parts map[string]limiter.Part) {
	d.lanes.accounts(func(name string, lim *limiter.Limiter) {
		if p, ok := parts[name]; ok {
			lim.Share(p)
		}
	})
}

// Unsaved notes that so many answers more have arrived and are not durable yet, or less if n is negative. They count as calls in flight.
func (d *Dispatcher) Unsaved(n int) {
	d.stats.gauge.AddUnsaved(n)
	if n < 0 {
		d.lanes.accounts(func(_ string, lim *limiter.Limiter) { lim.Saved() })
	}
}

// Full reports whether so many calls wait at every account that was opened that more cannot help.
func (d *Dispatcher) Full() bool {
	all, full := 0, 0
	d.lanes.accounts(func(_ string, lim *limiter.Limiter) {
		all++
		if lim.Waiting() >= ahead {
			full++
		}
	})
	return all > 0 && full == all
}
