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

// setActor is setActor, unless other processes play.
func (p Play) setActor(c *engine.Config, plan *config.Plan) (release func(ctx context.Context), err error) {
	if p.Remote != nil {
		return func(context.Context) {}, nil
	}
	return setActor(c, plan, c.Begun.Run)
}

// setActor gives c the actor of the plan's kind, if the kind has an environment, for the run with this id: see
// world.Environment. release closes the actor.
func setActor(c *engine.Config, plan *config.Plan, run string) (release func(ctx context.Context), err error) {
	none := func(context.Context) {}
	if !plan.Kind.External() {
		return none, nil
	}
	var actor world.Actor
	err = plan.CheckParams(func(params world.Params) error {
		if actor != nil && !plan.Kind.Local(params) {
			return nil // a server says what is wrong when it is asked
		}
		made, err := plan.Kind.Actor(params, run)
		if actor == nil {
			actor = made // of the plan's own params; those of the matrix are only checked
		} else if err == nil {
			closeActor(context.Background(), made)
		}
		return err
	})
	if err != nil {
		return nil, usageError{err}
	}
	c.Actor = actor
	if r, ok := actor.(world.Roomy); ok {
		c.Room = r.Room
	}
	return func(ctx context.Context) { closeActor(ctx, actor) }, nil
}

// closeActor closes what an actor has open.
func closeActor(ctx context.Context, a world.Actor) {
	if closer, ok := a.(world.Closer); ok {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
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
func setLocalActor(c *engine.Config, plan *config.Plan) (release func(ctx context.Context), err error) {
	if plan.Kind.Local(plan.Params) {
		return setActor(c, plan, c.Begun.Run)
	}
	return func(context.Context) {}, nil
}

// probe asks the servers of a plan's environments whether they answer. all reports whether each does.
func probe(ctx context.Context, plan *config.Plan) (servers []world.Presence, all bool) {
	servers = append([]world.Presence{}, plan.Kind.Probe(ctx, plan.Params)...)
	return servers, !slices.ContainsFunc(servers, func(p world.Presence) bool { return !p.Answers })
}
