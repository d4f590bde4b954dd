package planfile

import (
	"context"

	"parley/internal/run/runfile"
	"parley/journal"
)

// OpenRun opens a run file that the plan names. It can be read until the plan has been read.
func (f *Files) OpenRun(name string) (journal.File, error) {
	path, err := f.may(name)
	if err != nil {
		return nil, err
	}
	store, err := runfile.OpenRead(path)
	if err != nil {
		return nil, err
	}
	return runFile{store, f.ctx}, nil
}

// runFile is a run file that is read for a plan.
type runFile struct {
	*runfile.Store
	plan context.Context //nolint:containedctx // of the call of Load that it is made for
}

// Head reads the head of the file.
func (r runFile) Head(ctx context.Context) (*journal.Head, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return r.Store.Head(r.plan) //nolint:contextcheck // it ends when the plan has been read
}

// Outcomes reads ends of episodes.
func (r runFile) Outcomes(ctx context.Context, entries []int, each func(*journal.Ended) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return r.Store.Outcomes(r.plan, entries, each) //nolint:contextcheck // it ends when the plan has been read
}

// Read reads entries of the file.
func (r runFile) Read(ctx context.Context, in journal.Span, each func(journal.Entry) error) error {
	return r.Store.Read(ctx, in, func(e journal.Entry) error {
		if err := context.Cause(r.plan); err != nil {
			return err
		}
		return each(e)
	})
}
