package app

import (
	"context"
	"errors"
	"fmt"

	"parley/internal/store/sqlite"
	"parley/internal/summary"
	"parley/journal"
)

// again plays a run that is complete once more, which asks nothing and changes nothing.
// It returns nil where there is something to play or to write. What is wrong with the file
// is left to whoever opens it next.
func (p Play) again(ctx, drain context.Context) (_ *summary.Summary, err error) {
	store, err := sqlite.OpenRead(p.File)
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

// complete says whether everything that a run's plan asks for was played.
func complete(head *journal.Head) bool {
	return head.Begun != nil && !head.Cut && head.Last.State == journal.Complete
}

// closed is the journal of a run that is complete: that somebody came and went is not
// worth a word, and there is nothing else to write.
type closed struct{ *sqlite.Store }

// Append leaves out that a sitting began and ended.
func (c closed) Append(_ context.Context, entries ...journal.Entry) error {
	for _, e := range entries {
		switch e.(type) {
		case *journal.Opened, *journal.Closed:
		default:
			return fmt.Errorf("app: %s is complete, and its plan now asks for more", c.Path())
		}
	}
	return nil
}
