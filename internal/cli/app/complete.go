package app

import (
	"context"
	"errors"
	"fmt"

	"parley/internal/run/runfile"
	"parley/journal"
)

// again plays a complete run once more from its journal. It asks nothing and writes nothing.
// It returns nil if there is something to play or to write, or if the file cannot be read:
// the next Open reports why.
func (p Play) again(ctx, drain context.Context) (_ *Summary, err error) {
	store, err := runfile.OpenRead(p.File)
	if err != nil {
		return nil, nil
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	head, err := store.Head(ctx)
	if err != nil || !complete(head) {
		return nil, nil
	}
	c, err := p.choose(head)
	if err != nil || c.Begun != nil {
		return nil, err
	}
	return p.play(ctx, drain, store, head, c, &waves{})
}

// complete reports whether everything that the plan of a run asks for was played.
func complete(head *journal.Head) bool {
	return head.Begun != nil && !head.Cut && head.Last.State == journal.Complete
}

// closed is the journal of a complete run. It does not record that a process opened and
// closed it, and refuses everything else.
type closed struct{ *runfile.Store }

// Append ignores the entries that a process began and ended, and that it collects no log of a hub.
func (c closed) Append(_ context.Context, entries ...journal.Entry) error {
	for _, e := range entries {
		switch e.(type) {
		case *journal.Opened, *journal.Closed, *journal.Collected:
		default:
			return fmt.Errorf("app: %s is complete, and its plan now asks for more", c.Path())
		}
	}
	return nil
}
