package app

import (
	"context"
	"slices"
	"time"

	"parley/engine"
	"parley/internal/config"
	"parley/world"
)

// leaveTime is how long an actor may take to give everything back when a run ends.
const leaveTime = 20 * time.Second

// outside gives the run what carries out its acts, where its kind has an environment. leave gives back what that holds.
func outside(c *engine.Config, plan *config.Plan) (leave func(ctx context.Context), err error) {
	none := func(context.Context) {}
	if !plan.Kind.External() {
		return none, nil
	}
	actor, err := plan.Kind.Actor(plan.Params, c.Begun.Run)
	if err != nil {
		return nil, usageError{err}
	}
	c.Actor = actor
	if r, ok := actor.(world.Roomy); ok {
		if n := r.Room(); n > 0 && (c.Live == 0 || c.Live > n) {
			c.Live = n // more would only wait for room
		}
	}
	closer, ok := actor.(world.Closer)
	if !ok {
		return none, nil
	}
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer cancel()
		closer.Close(ctx)
	}, nil
}

// waiting is what an actor says that it waits for.
func waiting(a world.Actor) func() string {
	if w, ok := a.(world.Waiter); ok {
		return w.Waiting
	}
	return func() string { return "" }
}

// inside is outside for who must touch nothing: what runs in this process is played, and acts on anything else fail.
func inside(c *engine.Config, plan *config.Plan) (leave func(ctx context.Context), err error) {
	if plan.Kind.Local(plan.Params) {
		return outside(c, plan)
	}
	return func(context.Context) {}, nil
}

// servers asks the servers that a plan acts on whether they are there. all is whether each of them is.
func servers(ctx context.Context, plan *config.Plan) (there []world.Presence, all bool) {
	there = append([]world.Presence{}, plan.Kind.Probe(ctx, plan.Params)...)
	return there, !slices.ContainsFunc(there, func(p world.Presence) bool { return !p.Answers })
}
