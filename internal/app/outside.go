package app

import (
	"context"
	"slices"
	"time"

	"parley/engine"
	"parley/internal/config"
	"parley/world"
)

// closeTime is how long an actor may take to release everything when a run ends.
const closeTime = 20 * time.Second

// setActor is setActor, unless other processes play: then what they will need is only checked.
func (p Play) setActor(ctx context.Context, c *engine.Config, plan *config.Plan) (release func(ctx context.Context), err error) {
	if p.Remote == nil {
		return setActor(ctx, c, plan, c.Begun.Run)
	}
	if plan.Kind.External() {
		err = plan.CheckParams(func(params world.Params) error { return checkActor(ctx, plan.Kind, params, c.Begun.Run) })
	}
	if err != nil {
		return nil, usageError{err}
	}
	return func(context.Context) {}, nil
}

// setActor gives c the actor of the plan's kind, if the kind has an environment, for the run with this id: see
// world.Environment. The params of the matrix are checked. release closes the actor.
func setActor(ctx context.Context, c *engine.Config, plan *config.Plan, run string) (release func(ctx context.Context), err error) {
	if !plan.Kind.External() {
		return func(context.Context) {}, nil
	}
	made := false
	err = plan.CheckParams(func(params world.Params) (err error) {
		if made {
			return checkActor(ctx, plan.Kind, params, run)
		}
		made = true // the plan's own params come first
		c.Actor, err = plan.Kind.Actor(params, run)
		return err
	})
	if err != nil {
		closeActor(ctx, c.Actor)
		return nil, usageError{err}
	}
	actor := c.Actor // whoever calls this may put another around it
	if r, ok := actor.(world.Roomy); ok {
		c.Room = r.Room
	}
	return func(ctx context.Context) { closeActor(ctx, actor) }, nil
}

// checkActor makes an actor for params, and closes it. Params of a server are not checked: it says what is wrong when it is asked.
func checkActor(ctx context.Context, kind world.Kind, params world.Params, run string) error {
	if !kind.Local(params) {
		return nil
	}
	actor, err := kind.Actor(params, run)
	if err == nil {
		closeActor(ctx, actor)
	}
	return err
}

// closeActor gives back what an actor holds. actor may be nil.
func closeActor(ctx context.Context, actor world.Actor) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if closer, ok := actor.(world.Closer); ok {
		closer.Close(ctx)
	}
}

// waiting returns a function that says what an actor waits for.
func waiting(a world.Actor) func() string {
	if w, ok := a.(world.Waiter); ok {
		return w.Waiting
	}
	return func() string { return "" }
}

// setLocalActor is setActor for environments in this process. Acts on any other environment fail.
func setLocalActor(ctx context.Context, c *engine.Config, plan *config.Plan) (release func(ctx context.Context), err error) {
	if plan.Kind.Local(plan.Params) {
		return setActor(ctx, c, plan, c.Begun.Run)
	}
	return func(context.Context) {}, nil
}

// probe asks the servers of a plan's environments whether they answer. all reports whether each does.
func probe(ctx context.Context, plan *config.Plan) (servers []world.Presence, all bool) {
	servers = append([]world.Presence{}, plan.Kind.Probe(ctx, plan.Params)...)
	return servers, !slices.ContainsFunc(servers, func(p world.Presence) bool { return !p.Answers })
}
