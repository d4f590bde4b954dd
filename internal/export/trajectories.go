package export

import (
	"context"

	"parley/internal/store/sqlite"
	"parley/journal"
	"parley/worlds/rollout/trajectory"
)

// Rollouts is a run file as package trajectory reads it: in parts, and by the order in which
// episodes ended. It may be used from several goroutines.
type Rollouts struct{ *sqlite.Store }

// OpenRollouts opens a run file of rollouts to read it, whether somebody plays it or not.
func OpenRollouts(path string) (*Rollouts, error) {
	store, err := sqlite.OpenRead(path)
	if err != nil {
		return nil, err
	}
	return &Rollouts{store}, nil
}

// Plan is the stages after the first so many and, with the first, how the run began.
func (r *Rollouts) Plan(ctx context.Context, after int) (*journal.Begun, []journal.Staged, error) {
	stages, err := r.Stages(ctx, after)
	if err != nil || after > 0 {
		return nil, stages, err
	}
	about, err := r.Outline(ctx)
	return about.Begun, stages, err
}

// Planned lists up to limit episodes from one on.
func (r *Rollouts) Planned(ctx context.Context, from, limit int) ([]trajectory.Planned, error) {
	list, err := r.List(ctx, sqlite.Listing{From: from, Limit: limit, Lost: true}) // an episode that is damaged leaves its group incomplete
	if err != nil {
		return nil, err
	}
	out := make([]trajectory.Planned, len(list))
	for i, l := range list {
		out[i] = trajectory.Planned{Episode: l.Episode, Stage: l.Stage, Spec: l.Spec, Ended: l.Ended}
	}
	return out, nil
}

// Ends lists the ends of episodes from entry number since on.
func (r *Rollouts) Ends(ctx context.Context, since int) ([]trajectory.End, error) {
	ends, err := r.Store.Ends(ctx, since)
	out := make([]trajectory.End, len(ends))
	for i, e := range ends {
		out[i] = trajectory.End(e)
	}
	return out, err
}

var _ trajectory.Source = (*Rollouts)(nil)
