package app

import (
	"context"
	"slices"
	"time"

	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/world"
	"parley/world/part"
)

// closeTime is how long an actor may take to release everything when a run ends.
const closeTime = 20 * time.Second

// setActor is setActor, unless other processes play.
func (p Play) setActor(c *engine.Config, plan *planfile.Plan) (release func(ctx context.Context), err error) {
	if p.Remote != nil {
		return func(context.Context) {}, nil
	}
	return setActor(c, plan, c.Begun.Run)
}

// setActor gives c the actor of the plan's kind, if the kind has an environment, for the run with this id: see
// part.Environment. release closes the actor.
func setActor(c *engine.Config, plan *planfile.Plan, run string) (release func(ctx context.Context), err error) {
	plan = plan.Acting()
	if !plan.Kind.External() {
		return func(context.Context) {}, nil
	}
	actor, err := plan.Kind.Actor(plan.Params, run)
	if err != nil {
		return nil, usageError{plan.ParamsError(err)}
	}
	c.Actor = actor
	if r, ok := actor.(part.Limited); ok {
		c.Capacity = r.Capacity
	}
	return func(ctx context.Context) { closeActor(ctx, actor) }, nil
}

// check checks a plan that was not read from the run file, before that file is made.
func (p Play) check(ctx context.Context) error {
	if p.Plan == nil {
		return nil
	}
	if err := p.ready(p.Plan, p.PlanFile); err != nil {
		return err
	}
	return checkActors(ctx, p.Plan)
}

// checkActors makes actors for the params of a plan and of its matrix, and closes each at once. Where a server plays, there is
// nothing to check: it says what is wrong when it is asked.
func checkActors(ctx context.Context, plan *planfile.Plan) error {
	plan = plan.Acting()
	if !plan.Kind.External() {
		return nil
	}
	err := plan.CheckParams(func(params world.Params) error {
		if !plan.Kind.Local(params) {
			return nil
		}
		actor, err := plan.Kind.Actor(params, "check")
		if err == nil {
			closeActor(ctx, actor)
		}
		return err
	})
	if err != nil {
		return usageError{err}
	}
	return nil
}

// closeActor gives back what an actor holds.
func closeActor(ctx context.Context, actor world.Actor) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if closer, ok := actor.(part.Closer); ok {
		closer.Close(ctx)
	}
}

// waiting returns a function that says what an actor waits for.
func (a *App) waiting(actor world.Actor) func() string {
	if a.elsewhere != nil {
		return a.elsewhere.Waiting
	}
	if w, ok := actor.(part.Waiter); ok {
		return w.Waiting
	}
	return func() string { return "" }
}

// setLocalActor is setActor for environments in this process. Acts on any other environment fail.
func setLocalActor(c *engine.Config, plan *planfile.Plan) (release func(ctx context.Context), err error) {
	if acting := plan.Acting(); acting.Kind.Local(acting.Params) {
		return setActor(c, plan, c.Begun.Run)
	}
	return func(context.Context) {}, nil
}

// probeServers asks the servers of a plan's environments whether they answer. all reports whether each does.
func probeServers(ctx context.Context, plan *planfile.Plan) (servers []world.Presence, all bool) {
	plan = plan.Acting()
	servers = append([]world.Presence{}, plan.Kind.Probe(ctx, plan.Params)...)
	return servers, !slices.ContainsFunc(servers, func(p world.Presence) bool { return !p.Answers })
}
