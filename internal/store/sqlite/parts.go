package sqlite

import (
	"context"

	"parley/journal"
)

// Plan is the stages after the first so many and, with the first, how the run began.
func (s *Store) Plan(ctx context.Context, after int) (*journal.Begun, []journal.Staged, error) {
	stages, err := s.Stages(ctx, after)
	if err != nil || after > 0 {
		return nil, stages, err
	}
	about, err := s.Outline(ctx)
	return about.Begun, stages, err
}

// Planned lists up to limit episodes from one on. An episode that is damaged is listed as if it waited.
func (s *Store) Planned(ctx context.Context, from, limit int) ([]journal.Planned, error) {
	list, err := s.List(ctx, Listing{From: from, Limit: limit, Lost: true})
	if err != nil {
		return nil, err
	}
	out := make([]journal.Planned, len(list))
	for i, l := range list {
		out[i] = journal.Planned{Episode: l.Episode, Stage: l.Stage, Spec: l.Spec, Ended: l.Ended}
	}
	return out, nil
}

// File is a Store as those know it who only read it.
type File struct{ *Store }

// Salvage is that of the Store, without what was found.
func (f File) Salvage(ctx context.Context) error {
	_, err := f.Store.Salvage(ctx)
	return err
}

var (
	_ journal.Parts = (*Store)(nil)
	_ journal.File  = File{}
	_ journal.Parts = File{}
)
