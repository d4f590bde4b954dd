package app

import (
	"context"
	"slices"
	"sync"

	"parley/internal/run/growth"
	"parley/internal/run/runfile"
	"parley/journal"
)

// journalOf returns the journal of a run as it is played.
func journalOf(store journal.Journal, choice *growth.Choice, done bool) journal.Journal {
	if file, ok := store.(*runfile.Store); done && ok {
		return closed{file}
	}
	if choice.Recoded != nil {
		return &recoded{Journal: store, begun: choice.Recoded}
	}
	return store
}

// recoded is the journal of a run that is continued with other code. It records the new code together with the first entry that
// was played with it. If nothing can be played, because the new code asks something else, the old code continues the run.
type recoded struct {
	journal.Journal

	mu    sync.Mutex
	begun *journal.Begun // how the run is played now
	known bool           // it is recorded
}

// Head returns the head of the run as it is played now.
func (r *recoded) Head(ctx context.Context) (*journal.Head, error) {
	head, err := r.Journal.Head(ctx)
	if err == nil {
		head.Begun = r.begun
	}
	return head, err
}

// Append records entries, and the new code before the first that was played.
func (r *recoded) Append(ctx context.Context, entries ...journal.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known || !slices.ContainsFunc(entries, isPlayed) {
		return r.Journal.Append(ctx, entries...)
	}
	err := r.Journal.Append(ctx, slices.Insert(slices.Clone(entries), 0, journal.Entry(r.begun))...)
	r.known = err == nil
	return err
}

// isPlayed reports whether an entry depends on the code of a run.
func isPlayed(e journal.Entry) bool {
	switch e.(type) {
	case *journal.Opened, *journal.Closed, *journal.Collected, *journal.Steered, *journal.Exposed:
		return false
	}
	return true
}
