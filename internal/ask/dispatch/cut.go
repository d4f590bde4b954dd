package dispatch

import (
	"context"
	"errors"
	"sync"

	"parley/llm"
)

// flights are the calls of one Each, which can be cut off together. They share a context, so that a call costs nothing
// more.
type flights struct {
	mu     sync.Mutex
	ctx    context.Context //nolint:containedctx // of calls that begin now; Each, whose context it comes from, ends it
	cancel context.CancelCauseFunc
	landed bool // there are no more calls
}

// fly returns the flights of an Each. land must follow.
func (d *Dispatcher) fly(ctx context.Context) (f *flights, land func()) {
	f = &flights{}
	f.begin(ctx)
	d.flying.Store(f, ctx)
	return f, func() {
		d.flying.Delete(f)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.landed = true
		f.cancel(context.Canceled)
	}
}

// begin makes the context of calls from now on.
func (f *flights) begin(ctx context.Context) {
	f.ctx, f.cancel = context.WithCancelCause(ctx)
}

// context returns the context of a call that begins now.
func (f *flights) context() context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ctx
}

// cut ends all calls with e. Later calls have a new context.
func (f *flights) cut(ctx context.Context, e *llm.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.landed {
		return
	}
	f.cancel(e)
	f.begin(ctx)
}

// cutOff returns the error of a call that failed. If it was cut off, that is why, with what is known about its attempts:
// they may be billed.
func cutOff(ctx context.Context, err error) error {
	why, ok := errors.AsType[*llm.Error](context.Cause(ctx))
	if !ok || err == nil {
		return err
	}
	was, out := llm.AsError(err), *why
	out.Provider, out.Model, out.RequestID = was.Provider, was.Model, was.RequestID
	out.Uncertain, out.Usage, out.Received, out.Metadata = was.Uncertain, was.Usage, was.Received, was.Metadata
	out.Partial = was.Partial
	return &out
}
