package report

import (
	"context"
	"errors"
	"sync"

	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
)

// Made returns the exhibits that the kind makes of a run in j. failed is what the code of the kind did wrong, and err
// why the run could not be read.
func Made(ctx context.Context, kind world.Kind, run *results.Run, j journal.Journal) (all []world.Exhibit, failed, err error) {
	reporter, ok := world.As[world.Reporter](kind)
	if !ok {
		return nil, nil, nil
	}
	var x world.Exhibitor
	for _, part := range []struct {
		name string
		call func() error
	}{
		{"Exhibitor", func() error {
			if x = reporter.Exhibitor(); x == nil {
				return errors.New("returned nil")
			}
			return nil
		}},
		{"Add", func() error {
			err = run.EachWithData(ctx, j, func(p world.Played) error { x.Add(p); return nil })
			return nil
		}},
		{"Exhibits", func() error { all = x.Exhibits(); return nil }},
	} {
		if failed := results.Call(kind, part.name, part.call); failed != nil || err != nil {
			return nil, failed, err
		}
	}
	return all, nil, nil
}

// wait waits for the exhibits of a kind, and returns what Made does.
type wait func() (all []world.Exhibit, failed, err error)

// start is Made while its caller continues. The caller must wait.
func start(ctx context.Context, kind world.Kind, run *results.Run, j journal.Journal) wait {
	var all []world.Exhibit
	var failed, err error
	var wg sync.WaitGroup
	wg.Go(func() { all, failed, err = Made(ctx, kind, run, j) })
	return func() ([]world.Exhibit, error, error) {
		wg.Wait()
		return all, failed, err
	}
}
