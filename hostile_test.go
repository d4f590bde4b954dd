package parley_test

import (
	"context"
	"errors"
	"testing"

	"parley"
	"parley/journal"
)

// fullDisk is a journal that nothing can be written to.
type fullDisk struct{ journal.Memory }

var errFull = errors.New("disk full")

func (*fullDisk) Append(context.Context, ...journal.Entry) error { return errFull }

// TestPlayEndsEarly wants the error of a run that ends before its first entry is written.
func TestPlayEndsEarly(t *testing.T) {
	t.Parallel()
	r := duel(words, 2)
	r.Journal = &fullDisk{}
	if got, err := parley.Play(t.Context(), r); got != nil || !errors.Is(err, errFull) {
		t.Errorf("a full disk: %+v, %v", got, err)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	for name, keep := range map[string]func(*parley.Run){
		"memory": func(r *parley.Run) { r.Journal = &journal.Memory{} },
		"file":   func(r *parley.Run) { r.File = runFile(t) },
	} {
		r := duel(words, 2)
		keep(&r)
		if got, err := parley.Play(ctx, r); err == nil || got != nil && got.Ended > 0 {
			t.Errorf("%s, stopped before it began: %+v, %v", name, got, err)
		}
	}
}
