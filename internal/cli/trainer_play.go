package cli

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"parley/engine"
	"parley/internal/app"
	"parley/internal/config"
	"parley/internal/trust"
	"parley/worlds/rollout/trainer"
)

// sitting is what is played when a client starts the run. One that has begun is played on
// as it was begun; where a client says how, that must be the same.
func (c *trainerCmd) sitting(ctx context.Context, s *State, keys *trust.Gate, file string, o trainer.Override) (trainer.Sitting, error) {
	about, err := outlineOf(ctx, file)
	if err != nil {
		return trainer.Sitting{}, err
	}
	if o.Empty() && about.Begun != nil {
		plan, err := config.FromJSON(about.Begun.Plan, s.Kinds, nil)
		if err != nil {
			return trainer.Sitting{}, err
		}
		return sittingOf(s, plan, app.Play{File: file, MustExist: true, Sets: c.sets(), Trust: keys, Reach: c.recorded(filepath.Dir(c.Plan))}), nil
	}
	plan, err := c.load(ctx, s, setsOf(o))
	if err != nil {
		return trainer.Sitting{}, err
	}
	return sittingOf(s, plan, app.Play{Plan: plan, PlanFile: c.Plan, File: file, Trust: keys}), nil
}

// setsOf is what a client changes, as overrides of the plan's keys.
func setsOf(o trainer.Override) (sets []string) {
	if o.Episodes != nil {
		sets = append(sets, "episodes="+strconv.Itoa(*o.Episodes))
	}
	if o.Seed != nil {
		sets = append(sets, "seed="+strconv.FormatUint(*o.Seed, 10))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Params)) {
		sets = append(sets, "params."+name+"="+string(o.Params[name]))
	}
	return sets
}

func sittingOf(s *State, plan *config.Plan, p app.Play) trainer.Sitting {
	what := fmt.Sprintf("%d %d %s", plan.Seed, plan.Episodes, plan.ParamsJSON)
	p.Kinds, p.Tool, p.Notices, p.Outages = s.Kinds, version(), s.notice, s.outage
	return trainer.Sitting{What: what, Play: func(ctx, drain context.Context, begun, ended func()) (trainer.Ending, error) {
		p.Opened = func(app.Opened) { begun() }
		p.Watch = func(e engine.Event) {
			if e.Ended != nil {
				ended()
			}
		}
		sum, err := p.Run(ctx, drain)
		if sum == nil {
			return trainer.Ending{}, playError(p.File, err)
		}
		fmt.Fprintf(s.Stderr, "parley: %s: %s%s: %s of %s episodes played, %s failed\n", p.File, sum.State, dash(sum.Reason.String()),
			number(sum.Episodes.Complete), number(sum.Episodes.Total), number(sum.Episodes.Failed))
		return trainer.Ending{State: sum.State, Reason: sum.Reason.String()}, err
	}}
}

// dash sets a reason off, if there is one.
func dash(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}
