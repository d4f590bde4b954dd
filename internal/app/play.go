package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"parley/engine"
	"parley/internal/config"
	"parley/internal/store/sqlite"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds"
)

// Play is a plan to be played into a run file.
type Play struct {
	// Plan is what to play. Nil: what the run file recorded.
	Plan *config.Plan
	// Sets are overrides of the recorded plan, where Plan is nil.
	Sets []string
	// File is the run file. It is played on if it exists.
	File string
	// MustExist refuses to begin a new file.
	MustExist bool
	// Tool is what writes the file, as parley 0.1.0.
	Tool string
	// Opened is told once everything is put together, before play begins.
	Opened func(Opened)
	// Watch is told what happens.
	Watch func(engine.Event)
}

// Opened is a run about to be played.
type Opened struct {
	File string
	App  *App
	Head *journal.Head // as it was found
	Plan *config.Plan
}

// usageError is an error about what the user asked for.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// IsUsage says whether err is about what the user asked for, and nothing is broken.
func IsUsage(err error) bool {
	_, ok := errors.AsType[usageError](err)
	for _, is := range []error{sqlite.ErrForeign, sqlite.ErrDamaged, sqlite.ErrNewer, sqlite.ErrPlaying, fs.ErrNotExist, fs.ErrExist} {
		ok = ok || errors.Is(err, is)
	}
	return ok
}

// Run plays p until it is complete or has to stop. drain, when done, begins nothing new
// and keeps what is in flight; ctx aborts.
func (p Play) Run(ctx, drain context.Context) (*Summary, error) {
	if p.Plan != nil {
		if err := ready(p.Plan); err != nil {
			return nil, err
		}
	}
	mode := sqlite.Either
	if p.MustExist {
		mode = sqlite.Resume
	}
	store, err := sqlite.Open(ctx, p.File, mode)
	if err != nil {
		return nil, err
	}
	s, err := p.run(ctx, drain, store)
	return s, errors.Join(err, store.Close())
}

// ready says what stands in the way of a plan before anything is written or asked.
func ready(plan *config.Plan) error {
	a, err := Open(Config{Providers: plan.Providers, Budget: plan.Budget, Prices: plan.Prices})
	if err != nil {
		return usageError{err}
	}
	var errs []error
	for _, agent := range plan.Agents {
		if agent.Model == "" {
			continue
		}
		if err := a.Ready(agent.Model); err != nil {
			errs = append(errs, fmt.Errorf("agents.%s: %w", agent.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(usageError{err}, a.Close())
	}
	return a.Close()
}

func (p Play) run(ctx, drain context.Context, store *sqlite.Store) (*Summary, error) {
	head, err := store.Head(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := p.plan(head)
	if err != nil {
		return nil, err
	}
	if p.Plan == nil {
		if err := ready(plan); err != nil {
			return nil, err
		}
	}
	spent := head.Spent + head.Risked
	if head.Cut {
		spent += head.Owed
	}
	a, err := Open(Config{Providers: plan.Providers, Budget: plan.Budget, Spent: spent, Prices: plan.Prices, Cache: plan.Cache})
	if err != nil {
		return nil, err
	}
	if plan.Budget > 0 {
		a.Budget().Expose = func(worst llm.Money) error {
			return store.Append(context.WithoutCancel(ctx), &journal.Exposed{Worst: worst})
		}
	}
	stages, err := stagesOf(plan, head)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if p.Opened != nil {
		p.Opened(Opened{File: p.File, App: a, Head: head, Plan: plan})
	}
	res, err := engine.Run(ctx, engine.Config{
		Journal: store, Begun: p.begun(plan), Kind: plan.Kind, Plan: stages, Models: a,
		Wave: plan.Pace == "wave", Live: plan.Live, Calls: plan.Concurrency, Drain: drain, Watch: p.Watch,
	})
	err = errors.Join(err, a.Close())
	after, headErr := store.Head(context.WithoutCancel(ctx))
	if headErr != nil {
		return nil, errors.Join(err, headErr)
	}
	return summarize(p.File, res, a.Stats(), after), err
}

// plan returns what to play: the plan given or, for a file that is played on, the one it
// was begun with. A plan that would change what was begun is refused.
func (p Play) plan(head *journal.Head) (*config.Plan, error) {
	if head.Begun == nil {
		if p.Plan == nil {
			return nil, usageError{fmt.Errorf("%s holds no run yet: play a plan into it with run", p.File)}
		}
		return p.Plan, nil
	}
	was, err := config.FromJSON(head.Begun.Plan, worlds.Standard(), nil)
	if err != nil {
		return nil, err
	}
	if p.Plan == nil {
		is, err := config.FromJSON(head.Begun.Plan, worlds.Standard(), p.Sets)
		if err != nil {
			return nil, err
		}
		if what := changed(was, is); what != "" {
			return nil, usageError{fmt.Errorf("what is played cannot change when it is played on, and these sets change the %s: fork an episode, or begin a new run", what)}
		}
		return is, nil
	}
	if what := changed(was, p.Plan); what != "" {
		return nil, usageError{fmt.Errorf("%s was begun with another %s: give the plan a file of its own with --out, or play the old one on with resume", p.File, what)}
	}
	return p.Plan, nil
}

// changed names what of a plan is not as it was and cannot change within a run: what is
// played and by whom. How it is played (limits, budget, pace, cache) may change.
func changed(was, is *config.Plan) string {
	for _, part := range []struct {
		name    string
		was, is any
	}{
		{"kind", was.Kind.Name, is.Kind.Name},
		{"seed", was.Seed, is.Seed},
		{"params", was.ParamsJSON, is.ParamsJSON},
		{"agents", was.Agents, is.Agents},
		{"lineup", was.Lineup, is.Lineup},
		{"number of episodes", was.Episodes, is.Episodes},
		{"plan", []any{was.Matrix, was.Until}, []any{is.Matrix, is.Until}},
	} {
		a, errA := json.Marshal(part.was)
		b, errB := json.Marshal(part.is)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			return part.name
		}
	}
	return ""
}

// stagesOf is the world plan. A forked run plays the episodes it was begun with.
func stagesOf(plan *config.Plan, head *journal.Head) (world.Plan, error) {
	if head.Begun != nil && head.Begun.Fork != nil && len(head.Stages) > 0 {
		return world.List(head.Stages[0].Specs), nil
	}
	return plan.World()
}

func (p Play) begun(plan *config.Plan) journal.Begun {
	return journal.Begun{
		Version: journal.Version, Run: newID(), Tool: p.Tool, At: time.Now(),
		Kind: plan.Kind.Name, KindVersion: plan.Kind.Version, Seed: plan.Seed, Agents: plan.Agents, Plan: plan.JSON(),
	}
}

// newID names a run. It is the one thing about a run that no seed decides.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
