package parley_test

import (
	"context"
	"errors"
	"testing"

	"parley"
	"parley/journal"
	"parley/llm"
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

// TestPlayOwnRequests plays with a model that writes to all that it is given and returns, and wants what one plays that
// does not, also of a run that is resumed.
func TestPlayOwnRequests(t *testing.T) {
	t.Parallel()
	writes := func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
		resp, err := words(ctx, req)
		req.Model, req.Sample = "mine/other", 7
		for i := range req.Messages {
			req.Messages[i].Role = llm.RoleSystem
			clear(req.Messages[i].Parts)
		}
		return resp, err
	}
	want := play(t, duel(words, 8))
	ctx, cancel := context.WithCancel(t.Context())
	r := duel(writes, 8)
	r.File, r.Set = runFile(t), []string{"limits.concurrency=1"}
	r.Progress = func(p parley.Progress) {
		if p.Calls == 13 {
			cancel()
		}
	}
	if _, err := parley.Play(ctx, r); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r.Progress = nil
	if got := play(t, r); got.Digest != want.Digest || got.Calls != want.Calls {
		t.Errorf("%+v, want what a model that writes nothing plays: %+v", got, want)
	}
}
