package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"parley/internal/ask/cache"
	"parley/internal/ask/dialect"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/run/cluster/tally"
	"parley/internal/run/control"
	"parley/internal/run/engine"
	"parley/internal/run/growth"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/internal/run/seat"
	"parley/internal/serve/gateway"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// Play plays a plan into a run file.
type Play struct {
	// Config has what the plan does not say: Models, Trust, which is asked before anything is opened, and for a process that plays lots Answers
	// and Prices. The rest is set by Run.
	Config
	// Plan is the plan to play. Nil: the plan that the run file recorded.
	Plan *planfile.Plan
	// Kinds are those that a recorded plan can be of. Default: that of Plan.
	Kinds []world.Kind
	// Sets are overrides of the recorded plan, if Plan is nil.
	Sets []string
	// Reach limits which files the recorded plan may name outside the run file's folder, if
	// Plan is nil. Nil: no limit, for a caller that trusts the plan.
	Reach *planfile.Reach
	// File is the run file. If it exists, it is resumed.
	File string
	// MustExist refuses to begin a new file.
	MustExist bool
	// Tool is the program that writes the file, such as parley 0.1.0.
	Tool string
	// Events is called with everything that happens, by one goroutine at a time. Play waits for it, so it must cause no event. Default:
	// nobody is told.
	Events func(Event)
	// PlanFile is the file of Plan, for questions and errors about its keys.
	PlanFile string
	// Places says where providers are described, by name, for errors about them. Default: where
	// the plan has them.
	Places map[string]string
	// Remote plays the episodes in other processes. Default: this process plays them.
	Remote Remote
	// Code is the code that the plan names. A run that was played with other code is refused, unless
	// ChangedCode is set.
	Code        []journal.Code
	ChangedCode bool
	// Failed plays failed episodes again, with the code as it is.
	Failed bool
	// Journal stores the run instead of File. Default: File.
	Journal journal.Journal
}

// Opened is a run that is about to be played.
type Opened struct {
	File string
	App  *App
	Head *journal.Head // before this process
	// Earlier is how many calls of models and people were recorded before this process.
	Earlier int
	// Past calls f with every episode that ended before this process.
	Past func(f func(world.Played)) error
	Plan *planfile.Plan
	// Grown is set if the plan asks for more than is recorded.
	Grown *growth.Growth
	// Complete means that there is nothing left to play.
	Complete bool
	// Steering changes the run while it is played. Nil: there is nothing left to play.
	Steering *control.Steering
	// Seats takes the answers of people. Nil: no agent is a person.
	Seats *seat.Open
	// Waiting says what the run waits for: an environment, such as a server that does not answer, or people.
	// Empty: nothing.
	Waiting func() string
}

// usageError is an error that the user can correct.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// IsUsage reports whether the user can correct err, and nothing is broken.
func IsUsage(err error) bool {
	_, ok := errors.AsType[usageError](err)
	for _, is := range []error{runfile.ErrForeign, runfile.ErrDamaged, runfile.ErrVersion, runfile.ErrPlaying, fs.ErrNotExist, fs.ErrExist} {
		ok = ok || errors.Is(err, is)
	}
	return ok
}

// Run plays p until it is complete or must stop. When drain is done, Run begins nothing new
// and records what is in flight. When ctx is done, it aborts. A complete file is only read.
func (p Play) Run(ctx, drain context.Context) (*Summary, error) {
	p.Events = inOrder(p.Events)
	if p.Journal == nil {
		if err := checkFile(p.File, p.MustExist); err != nil {
			return nil, err
		}
		if sum, err := p.replayComplete(ctx, drain); sum != nil || err != nil {
			return sum, err
		}
	}
	if err := p.check(ctx); err != nil {
		return nil, err
	}
	if p.Journal != nil {
		return p.run(ctx, drain, p.Journal)
	}
	mode := runfile.Either
	if p.MustExist {
		mode = runfile.Resume
	}
	_, missing := os.Lstat(p.File)
	store, err := runfile.Open(ctx, p.File, mode)
	if err != nil {
		return nil, err
	}
	s, err := p.run(ctx, drain, store)
	return s, closeFile(ctx, store, errors.Is(missing, fs.ErrNotExist), err)
}

// closeFile closes a run file after a play that ended with err. A run that is refused leaves no file: one that is new, and in
// which nothing was recorded, is removed.
func closeFile(ctx context.Context, store *runfile.Store, isNew bool, err error) error {
	unused := false
	if isNew && err != nil {
		head, failed := store.Head(context.WithoutCancel(ctx))
		unused = failed == nil && head.Begun == nil
	}
	if unused {
		return errors.Join(err, store.Discard())
	}
	return errors.Join(err, store.Close())
}

// kinds returns the kinds that a recorded plan can be of.
func (p Play) kinds() []world.Kind {
	if p.Kinds == nil && p.Plan != nil {
		return p.Plan.Kind.All()
	}
	return p.Kinds
}

// checkFile checks that a run file can be at its path.
func checkFile(file string, exists bool) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return usageError{fmt.Errorf("%s is a folder: name a run file in it", file)}
	}
	dir := filepath.Dir(file)
	switch info, err := os.Stat(dir); {
	case exists:
		return nil // the store reports what is missing
	case errors.Is(err, fs.ErrNotExist):
		return usageError{fmt.Errorf("%s: the folder %s does not exist: create it, or name another file", file, dir)}
	case err == nil && !info.IsDir():
		return usageError{fmt.Errorf("%s: %s is a file, not a folder: name another file", file, dir)}
	default:
		return nil
	}
}

// ready checks that a plan can be played, before anything is written or asked. file is where
// the plan is.
func (p Play) ready(plan *planfile.Plan, file string) error {
	for name, place := range p.Places {
		if plan.Places[name] != "" {
			plan.Places[name] = place
		}
	}
	needs, err := Needs(plan, file, p.Plan == nil)
	if err == nil {
		err = p.Trust.Check(needs...)
	}
	if err == nil {
		err = cmp.Or(checkRules(plan), missingPrograms(plan))
	}
	if err != nil {
		return usageError{err}
	}
	c := p.Config
	c.Providers, c.Settings = plan.Providers, plan.Settings
	a, err := assemble(c) // without a cache: opening one makes its folder
	if err != nil {
		return usageError{err}
	}
	var errs []error
	seen := map[string]bool{}
	for _, agent := range plan.Agents {
		if agent.Model == "" || agent.Human() {
			continue
		}
		if err := a.Ready(agent.Model); err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			errs = append(errs, notReady(plan, agent, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(usageError{err}, a.Close())
	}
	return a.Close()
}

// run plays the run in store. It first records a changed plan, so that later processes and
// forks have its budget too.
func (p Play) run(ctx, drain context.Context, store journal.Journal) (*Summary, error) {
	head, err := store.Head(ctx)
	if err != nil {
		return nil, err
	}
	c, err := p.choose(head)
	if err != nil {
		return nil, err
	}
	if p.Plan == nil {
		if err := p.ready(c.Plan, p.File); err != nil {
			return nil, err
		}
	}
	if p.Remote != nil {
		if err := forCluster(c.Plan); err != nil {
			return nil, err
		}
	}
	w, err := newWaves(ctx, c.Plan, store, head)
	if err != nil {
		return nil, err
	}
	if c.Begun != nil {
		if err := store.Append(ctx, c.Begun); err != nil {
			return nil, err
		}
	}
	return p.play(ctx, drain, store, head, c, w)
}

// play plays choice after what head has recorded.
func (p Play) play(ctx, drain context.Context, store journal.Journal, head *journal.Head, choice *growth.Choice, w *waves) (*Summary, error) {
	plan, done := choice.Plan, complete(head) && choice.Grown == nil && choice.Again == 0
	earlier, err := earlierCalls(ctx, store, head)
	if err != nil {
		return nil, err
	}
	var begun atomic.Pointer[engine.Steering]
	p.Budget = budget.New(plan.Budget, spentOf(head))
	p.Budget.Lost(atRiskOf(head))
	p.Batches, p.Record = w.open, w.record
	a, err := p.open(plan, !done, func() {
		if s := begun.Load(); s != nil {
			s.Wake()
		}
	})
	if err != nil {
		return nil, err
	}
	c := engine.Config{
		Settings: plan.Settings,
		Journal:  journalOf(store, choice, done), Begun: p.begun(plan, a.prices, head), Kind: plan.Kind, Plan: choice.Stages, Models: a,
		Drain: drain, Watch: func(e engine.Event) { p.Events(Event{Event: e}) }, Remote: p.Remote,
	}
	if t, ok := choice.Stages.(part.TranscriptStages); ok {
		t.Transcripts(func(episode int) ([]world.TranscriptEntry, error) {
			return results.Entries(context.WithoutCancel(ctx), store, episode)
		})
	}
	if p.Remote == nil {
		exposeBudget(a.Budget(), &c) // it may get a limit while the run is played
	} else {
		a.playElsewhere(p.Remote, plan, done)
	}
	a.versions.seed = plan.Seed
	c.Version = a.versions.model
	c.Prices, c.Unreachable, c.Steer = a, a.Away, begun.Store
	if a.hasSessions() {
		c.Released = a.Release
	}
	w.setUp(&c, plan, a)
	if done {
		c.Remote = nil
	}
	if head.Begun != nil {
		c.Begun.Run = head.Begun.Run
	}
	release, err := p.setActor(&c, plan)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	ended, err := p.setPrograms(ctx, &c, plan, a, done)
	if err != nil {
		release(ctx)
		return nil, errors.Join(err, a.Close())
	}
	opened := Opened{
		File: p.File, App: a, Steering: p.steering(&c, a, plan, done), Head: head, Earlier: earlier, Plan: plan, Grown: choice.Grown, Complete: done, Waiting: a.waiting(c.Actor),
		Past: func(f func(world.Played)) error { return eachOutcome(ctx, store, head, f) },
	}
	p.setPeople(&c, &opened)
	p.Events(Event{Opened: &opened})
	repriced := p.repriced(a, plan, head, done)
	p.tellUnset(plan, head)
	res, err := engine.Run(ctx, c)
	release(ctx)
	err = errors.Join(err, ended(ctx), cancelBatches(ctx, plan, a), a.Close())
	if res.State == "" {
		return nil, err // nothing began
	}
	sum, sumErr := process{
		file: p.File, plan: plan, result: res, earlier: earlier, grown: choice.Grown,
		stats: a.Stats(), money: a.Budget().Sums(), servers: a.Servers(), models: modelsOf(plan.Agents), unpriced: a.Unpriced(plan.Agents), repriced: repriced,
	}.summarize(context.WithoutCancel(ctx), store)
	if err == nil || !errors.Is(sumErr, results.ErrEmpty) {
		err = errors.Join(err, sumErr)
	}
	if sum != nil {
		p.Events(Event{Over: sum})
	}
	return sum, err
}

// open opens the App that a plan is played with. If tell is set, it says which settings of the plan's agents models do not take. outage is called
// after each outage.
func (p Play) open(plan *planfile.Plan, tell bool, outage func()) (*App, error) {
	c := p.Config
	if slices.ContainsFunc(plan.Agents, func(a world.Agent) bool { return a.Program != nil }) {
		c.Relays = &gateway.Relays{}
	}
	c.Settings, c.Providers, c.Sim, c.Events = plan.Settings, plan.Providers, sim.Config{StandIns: sim.StandIns(plan.Kind.All()...)}, p.asked(plan, tell, outage)
	return Open(c)
}

// steering returns what changes the run while it is played; nil if there is nothing to play.
func (p Play) steering(c *engine.Config, a *App, plan *planfile.Plan, done bool) *control.Steering {
	if done {
		return nil
	}
	s := control.NewSteering(a, plan, p.kinds())
	s.Elsewhere = p.Remote != nil
	whenBegun(c, s.Begin)
	return s
}

// whenBegun adds to what is called before play begins.
func whenBegun(c *engine.Config, f func(*engine.Steering)) {
	earlier := c.Steer
	c.Steer = func(s *engine.Steering) {
		earlier(s)
		f(s)
	}
}

// setPeople makes the run ask people through files beside its run file, if agents are people.
func (p Play) setPeople(c *engine.Config, o *Opened) {
	if !o.Complete && p.Journal == nil && slices.ContainsFunc(o.Plan.Agents, world.Agent.Human) {
		o.Seats = seat.New(p.File)
		c.People = o.Seats
		outside := o.Waiting
		o.Waiting = func() string { return cmp.Or(outside(), o.Seats.Waiting()) }
	}
}

// exposeBudget makes what a budget may owe durable in the journal of c.
func exposeBudget(b *budget.Budget, c *engine.Config) {
	store, watch := c.Journal, c.Watch
	b.Expose = func(ctx context.Context, worst llm.Money) error {
		return store.Append(context.WithoutCancel(ctx), &journal.Exposed{Worst: worst})
	}
	c.Watch = func(e engine.Event) {
		recordedCost(b, e)
		if watch != nil {
			watch(e)
		}
	}
}

// recordedCost tells a budget that a call is durable.
func recordedCost(b *budget.Budget, e engine.Event) {
	if e.Replied != nil && e.Replied.Act == nil {
		b.Recorded(e.Replied.Cost())
	}
}

// Remote plays the episodes of a run in other processes, as a cluster.Coordinator does.
type Remote interface {
	engine.Remote
	// Divide gives the processes what they share. Nil: there is none of it.
	Divide(budget func() llm.Money, calls *tally.Tally, prices map[string]json.RawMessage, answers *cache.Store)
}

// playElsewhere gives other processes what they need to play a plan within its budget. a shows their calls.
func (a *App) playElsewhere(r Remote, plan *planfile.Plan, done bool) {
	if !done {
		a.elsewhere = &tally.Tally{Budget: a.Budget()}
	}
	var limit func() llm.Money
	if a.Budget().Limit() > 0 {
		limit = a.Budget().Limit
	}
	r.Divide(limit, a.elsewhere, a.prices.Of(modelsOf(plan.Agents)), a.cache)
}

// eachOutcome calls f with every episode in store that ended.
func eachOutcome(ctx context.Context, store journal.Journal, head *journal.Head, f func(world.Played)) error {
	return head.PlayedOutcomes(ctx, store, func(spec world.Spec, e *journal.Ended) error {
		f(world.Played{Episode: e.Episode, Spec: spec, Outcome: e.Outcome})
		return nil
	})
}

// spentOf returns what earlier processes of the run spent, or may have spent.
func spentOf(head *journal.Head) llm.Money {
	return head.Spent.Plus(atRiskOf(head))
}

// atRiskOf returns what calls of earlier processes may have cost that have no recorded reply.
func atRiskOf(head *journal.Head) llm.Money { return head.Risked.Plus(head.Owed) }

// modelsOf returns the models that agents may ask, each once.
func modelsOf(agents []world.Agent) []string {
	var models []string
	for i := range agents {
		for _, m := range append([]string{agents[i].Model}, agents[i].Fallbacks...) {
			if m != "" && m != world.Human && !slices.Contains(models, m) {
				models = append(models, m)
			}
		}
	}
	return models
}

// begun returns how the run begins. That of a run that has begun is not used.
func (p Play) begun(plan *planfile.Plan, prices *price.Table, head *journal.Head) (b journal.Begun) {
	if head.Begun != nil {
		return *head.Begun
	}
	return journal.Begun{
		Version: journal.Version, Run: newID(), Tool: p.Tool, At: time.Now(),
		Kind: plan.Kind.Name, KindVersion: plan.Kind.Version, Nested: plan.NestedKind().Name, NestedVersion: plan.NestedKind().Version, Seed: plan.Seed, Agents: plan.Agents, Plan: plan.JSON(), Code: p.Code, Measures: growth.Measures(plan),
		Prices: prices.Of(modelsOf(plan.Agents)),
	}
}

// newID returns a random name for a run. No seed decides it.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// repriced returns the models whose price is not that of the beginning of the run, and says so. What was spent stays as it
// was counted. A run that is done has none.
func (p Play) repriced(a *App, plan *planfile.Plan, head *journal.Head, done bool) []string {
	if head.Begun == nil || done {
		return nil
	}
	models := a.prices.Repriced(modelsOf(plan.Agents), head.Begun.Prices)
	if len(models) > 0 {
		p.notice(dispatch.Notice{Model: models[0], Text: "The price of " + strings.Join(models, ", ") +
			" has changed since the run began. The budget counts what was spent then, and counts calls from now on by the new price."})
	}
	return models
}

// tellUnset says what a plan changes of what parley ctl had set.
func (p Play) tellUnset(plan *planfile.Plan, head *journal.Head) {
	if !slices.ContainsFunc(head.Steered, func(s journal.Steered) bool { return s.Verb == journal.SteerSet }) {
		return
	}
	was, err := planfile.FromJSON(head.Begun.Plan, p.kinds(), nil)
	if err != nil {
		return // it is a change of the plan like any other
	}
	if changes := control.Changes(was, plan); changes != "" {
		p.notice(dispatch.Notice{Text: "The plan changes what parley ctl had set: " + changes + ". Resume the run file instead of the plan to keep it."})
	}
}

// droppedSettings returns a Notice for each setting of an agent that its model, or a fallback, does not take. It is left out of every request.
func droppedSettings(plan *planfile.Plan) []dispatch.Notice {
	var out []dispatch.Notice
	for _, a := range plan.Agents {
		if a.Model == "" || a.Human() {
			continue
		}
		for _, model := range append([]string{a.Model}, a.Fallbacks...) {
			account, _ := llm.SplitModel(model)
			i := slices.IndexFunc(plan.Providers, func(p provider.Provider) bool { return p.Name == account })
			if i < 0 {
				continue
			}
			req := a.Request(llm.Request{Messages: []llm.Message{llm.User("-")}})
			req.Model = model
			for _, name := range dialect.Dropped(plan.Providers[i], &req) {
				out = append(out, dispatch.Notice{Model: model, Dropped: name, Text: plan.Place("agents", a.Name, name) + ": " + dispatch.DroppedText(model, name)})
			}
		}
	}
	return out
}

func (p Play) notice(n dispatch.Notice) { p.Events(Event{Ask: dispatch.Event{Notice: &n}}) }

// asked returns a function that passes on what happens between calls and providers, but not notices about settings of the plan's agents. If
// tell is set, it first passes these on, all of them, with their places. changed is called after each outage.
func (p Play) asked(plan *planfile.Plan, tell bool, changed func()) func(dispatch.Event) {
	known := map[dispatch.Notice]bool{}
	for _, n := range droppedSettings(plan) {
		if tell {
			p.notice(n)
		}
		known[dispatch.Notice{Model: n.Model, Dropped: n.Dropped}] = true
	}
	return func(e dispatch.Event) {
		if n := e.Notice; n == nil || !known[dispatch.Notice{Model: n.Model, Dropped: n.Dropped}] {
			p.Events(Event{Ask: e})
		}
		if e.Outage != nil {
			changed()
		}
	}
}

// earlierCalls counts the calls of models and people that are recorded. A new run has none to read.
func earlierCalls(ctx context.Context, store journal.Journal, head *journal.Head) (int, error) {
	if head.Calls == 0 {
		return 0, nil
	}
	recorded, err := journal.Count(ctx, store)
	return recorded.Calls, err
}
