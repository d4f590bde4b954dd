package app

import (
	"context"
	"slices"
	"time"

	"parley/engine"
	"parley/internal/config"
	"parley/world"
	"parley/worlds/rollout/envhttp"
	"parley/worlds/rollout/rules"
)

// leaveTime is how long environments are given back for when a run ends.
const leaveTime = 20 * time.Second

// outside gives the run what carries out its acts, where its kind has any: the environments
// of a rollout. leave gives them back.
func outside(c *engine.Config, plan *config.Plan) (leave func(ctx context.Context), err error) {
	params, ok := plan.Params.Pointer().(*rules.Params)
	if !ok {
		return func(context.Context) {}, nil
	}
	actor, err := envhttp.New(params, c.Begun.Run)
	if err != nil {
		return nil, usageError{err}
	}
	c.Actor = actor
	if n := actor.Room(); n > 0 && (c.Live == 0 || c.Live > n) {
		c.Live = n // more would only wait for an environment
	}
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer cancel()
		actor.Close(ctx)
	}, nil
}

// waiting is what an actor says that it waits for.
func waiting(a world.Actor) func() string {
	if w, ok := a.(world.Waiter); ok {
		return w.Waiting
	}
	return func() string { return "" }
}

// inside is outside for who must touch nothing: environments of this process are played,
// and acts on anything else fail.
func inside(c *engine.Config, plan *config.Plan) (leave func(ctx context.Context), err error) {
	if params, ok := plan.Params.Pointer().(*rules.Params); ok && len(params.Servers) == 0 {
		return outside(c, plan)
	}
	return func(context.Context) {}, nil
}

// servers asks the environment servers of a plan whether they are there. all is whether each
// of them is.
func servers(ctx context.Context, plan *config.Plan) (there []envhttp.Presence, all bool) {
	params, ok := plan.Params.Pointer().(*rules.Params)
	if !ok || len(params.Servers) == 0 {
		return []envhttp.Presence{}, true
	}
	there = envhttp.Probe(ctx, params)
	return there, !slices.ContainsFunc(there, func(p envhttp.Presence) bool { return !p.Answers })
}
