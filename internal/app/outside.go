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
	if !plan.Kind.External() {
		return func(context.Context) {}, nil
	}
	var made []world.Actor // the first is of the plan's own params; those of the matrix are only checked
	err = plan.CheckParams(func(params world.Params) error {
		if len(made) > 0 && !plan.Kind.Local(params) {
			return nil // a server says what is wrong when it is asked
		}
		actor, err := plan.Kind.Actor(params, run)
		made = append(made, actor)
		return err
	})
	if err != nil {
		return nil, usageError{err}
	}
	c.Actor = made[0]
	if r, ok := made[0].(world.Roomy); ok {
		c.Room = r.Room
	}
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		for _, actor := range made {
			if closer, ok := actor.(world.Closer); ok {
				closer.Close(ctx)
			}
		}
	}, nil
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
