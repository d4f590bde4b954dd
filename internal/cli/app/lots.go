package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/price"
	"parley/internal/run/cluster/tally"
	"parley/internal/run/engine"
	"parley/internal/run/growth"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// Lots plays lots of one run whose journal is elsewhere. All lots share the providers and the environment.
// It implements the Player of a cluster's worker.
type Lots struct {
	app     *App
	config  engine.Config
	actor   world.Actor
	release func(ctx context.Context)
	part    *budget.Budget // nil: there is no budget
	acted   atomic.Bool    // an act or a question to a person begins: no provider counts those
	first   sync.Once      // the first of those
	tell    func()         // called before it; nil: nothing is
	unsaved atomic.Int64   // answers that are not durable yet

	mu    sync.Mutex
	held  bool
	plays map[*engine.Steering]struct{} // of the lots that are being played
}

// OpenLots prepares to play lots of the run that began so, in a process with this name. Sets override how it is played,
// such as limits.concurrency. share returns the part of a budget that may be spent.
func (p Play) OpenLots(begun *journal.Begun, name string, share func(whole llm.Money) *budget.Budget) (*Lots, error) {
	p.File = "run " + begun.Run // for errors
	prices, err := price.Recorded(begun.Prices)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.File, err)
	}
	p.Events = inOrder(p.Events)
	p.Prices, p.Reach = prices, nil // the files that the plan names are where the run file is
	c, err := p.choose(&journal.Head{Begun: begun})
	if err != nil {
		return nil, err
	}
	if changes := growth.CodeChanges(begun.Code, p.Code); len(changes) > 0 {
		return nil, usageError{fmt.Errorf("%s: %s where the run file is: copy the code of the run here, and start the worker again", p.File, strings.Join(changes, ", "))}
	}
	plan := c.Plan
	if err := forCluster(plan); err != nil {
		return nil, err
	}
	if err := p.ready(plan, "run "+begun.Run); err != nil {
		return nil, err
	}
	l := &Lots{plays: map[*engine.Steering]struct{}{}}
	if plan.Budget > 0 {
		l.part = share(plan.Budget)
	}
	p.Budget, p.Shared = l.part, true
	if l.app, err = p.open(plan, false, l.wake); err != nil {
		return nil, err
	}
	l.config = engine.Config{
		Settings: plan.Settings, Begun: *begun, Kind: plan.Kind, Models: sharedModels{l.app},
		Prices: l.app, Unreachable: l.app.Away, BeforeAct: l.beforeAct, Unsaved: l.addUnsaved,
	}
	if l.app.hasSessions() {
		l.config.Released = l.app.Release
	}
	if l.release, err = setActor(&l.config, plan, begun.Run+"."+name); err != nil {
		return nil, errors.Join(err, l.app.Close())
	}
	if l.actor = l.config.Actor; l.actor != nil {
		l.config.Actor = sharedActor{l.actor}
	}
	if r, ok := l.actor.(part.SharedCapacity); ok {
		none := map[string]float64{}
		for _, room := range r.Capacities() {
			none[room.Name] = 0
		}
		r.ShareCapacity(none, time.Now()) // until somebody says how much
	}
	return l, nil
}

// forCluster refuses plans that only one process can play.
func forCluster(plan *planfile.Plan) error {
	switch {
	case plan.Pace == "wave":
		return usageError{errors.New("pace: wave: a run in waves, which may use batch APIs, cannot be played with workers: use pace free, or no workers")}
	case slices.ContainsFunc(plan.Agents, world.Agent.Human):
		return usageError{errors.New("agents: a run with people in its seats cannot be played with workers")}
	}
	if i := slices.IndexFunc(plan.Agents, func(a world.Agent) bool { return a.Program != nil }); i >= 0 {
		return usageError{fmt.Errorf("agents.%s: programs are started by the process that has the run file: play the run without workers", plan.Agents[i].Name)}
	}
	for _, p := range plan.Providers {
		if p.Dialect == "go" {
			return usageError{fmt.Errorf("providers.%s: its models are values of a Go program (dialect go), which workers do not have", p.Name)}
		}
	}
	return nil
}

// sharedModels and sharedActor are used by several lots: that one of them stops drains none of the others.
type sharedModels struct{ *App }

func (sharedModels) Drain() {}

type sharedActor struct{ world.Actor }

// Play plays a lot into j.
func (l *Lots) Play(ctx, drain context.Context, j journal.Journal, lot engine.Lot, needEpisodes func()) (engine.Result, error) {
	var steering *engine.Steering
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.plays, steering)
	}()
	c := l.config
	c.Journal, c.Plan, c.Lot, c.NeedEpisodes, c.Drain = j, lot.Plan(), &lot, needEpisodes, drain
	if l.part != nil {
		c.Watch = func(e engine.Event) { recordedCost(l.part, e) }
	}
	c.Steer = func(s *engine.Steering) {
		l.mu.Lock()
		defer l.mu.Unlock()
		steering, l.plays[s] = s, struct{}{}
		if l.held {
			s.Hold(true)
		}
	}
	return engine.Run(ctx, c)
}

// wake lets lots look again which providers can be reached.
func (l *Lots) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.plays {
		s.Wake()
	}
}

// Limits are what a run shares with other workers: accounts, and the room of environments.
type Limits struct {
	*dispatch.Dispatcher
	rooms part.SharedCapacity // nil: there is none
}

// Limits returns what the run shares with other workers.
func (l *Lots) Limits() Limits {
	rooms, _ := l.actor.(part.SharedCapacity)
	return Limits{l.app.Dispatcher, rooms}
}

// roomAccount begins the names of accounts that are room for environments.
const roomAccount = "environments "

// Demands returns how much of each account, and of each place for environments, is used and needed.
func (s Limits) Demands() map[string]limiter.Demand {
	all := s.Dispatcher.Demands()
	if s.rooms == nil {
		return all
	}
	for _, r := range s.rooms.Capacities() {
		whole := float64(max(1, r.Max))
		used := float64(r.Used) / whole
		all[roomAccount+r.Name] = limiter.Demand{Use: used, Busy: used, Least: 1 / whole, Waiting: r.Waiting}
	}
	return all
}

// Share sets the part of each account, and of each place for environments, that may be used.
func (s Limits) Share(parts map[string]limiter.Part) {
	s.Dispatcher.Share(parts)
	if s.rooms == nil {
		return
	}
	for name, p := range parts {
		if room, ok := strings.CutPrefix(name, roomAccount); ok {
			s.rooms.ShareCapacity(map[string]float64{room: p.Share}, p.Until)
		}
	}
}

// Full reports whether more lots would only wait: for the limits of the providers, or for room in the environment.
func (l *Lots) Full() bool {
	if l.app.Full() {
		return true
	}
	r, ok := l.actor.(part.SharedCapacity)
	if !ok {
		return false
	}
	rooms := r.Capacities()
	return len(rooms) > 0 && !slices.ContainsFunc(rooms, func(r part.Capacity) bool { return r.Waiting == 0 })
}

// BeforeActs makes the first act, or question to a person, wait for tell. Report says from then on that more may be in flight than it counts. No lot is
// played yet.
func (l *Lots) BeforeActs(tell func()) { l.tell = tell }

// beforeAct is called before each act.
func (l *Lots) beforeAct() {
	l.first.Do(func() {
		l.acted.Store(true)
		if l.tell != nil {
			l.tell()
		}
	})
}

// Report says what the calls of all lots are so far.
func (l *Lots) Report() tally.Report {
	_, reserved := l.app.Budget().Spent()
	return tally.Report{Snapshot: l.app.Stats(), Reserved: reserved, Unsaved: l.unsaved.Load(), Partial: l.actor != nil || l.acted.Load(), Waits: l.app.Waits(time.Now())}
}

// addUnsaved notes that so many answers more are not durable yet.
func (l *Lots) addUnsaved(n int) {
	l.unsaved.Add(int64(n))
	l.app.Unsaved(n)
}

// Stats counts the calls of all lots.
func (l *Lots) Stats() dispatch.Snapshot { return l.app.Stats() }

// Hold sends no more calls, or sends them again.
func (l *Lots) Hold(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = on
	if !on {
		l.app.Hold(nil, false)
	}
	for s := range l.plays {
		s.Hold(on)
	}
	if on { // last: an engine must not send again what the dispatcher refuses
		l.app.Hold(&llm.Error{Kind: llm.KindCanceled, Message: engine.ErrHeld.Error(), Err: engine.ErrHeld}, false)
	}
}

// Drain refuses the calls of all lots that wait. Those in flight continue.
func (l *Lots) Drain() {
	l.app.Drain()
	if d, ok := l.actor.(part.Drainer); ok {
		d.Drain()
	}
}

// Close releases the environment and the providers.
func (l *Lots) Close(ctx context.Context) error {
	l.release(ctx)
	return l.app.Close()
}
