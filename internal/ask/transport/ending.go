package transport

import (
	"context"
	"slices"
	"sync"
)

// ending is the context of an exchange. It ends with the context of the call, and when end is called. It is what
// context.WithCancelCause and context.AfterFunc are together, but part of the Answer: very many exchanges may wait at once.
type ending struct {
	context.Context             //nolint:containedctx // it is a context
	leave           func() bool // from the context of the call

	mu    sync.Mutex
	cause error         // nil: it has not ended
	done  chan struct{} // nil: nobody has asked for it
	after []*func()     // what is called at the end
}

// begin makes it a child of ctx. end must follow.
func (e *ending) begin(ctx context.Context) {
	e.Context = ctx
	e.leave = context.AfterFunc(ctx, e.ended)
}

// ended is called when the context of the call has ended.
func (e *ending) ended() { e.set(context.Cause(e.Context)) }

// end ends it, unless it has ended.
func (e *ending) end(cause error) {
	e.leave()
	e.set(cause)
}

func (e *ending) set(cause error) {
	e.mu.Lock()
	after := e.after
	if e.after = nil; e.cause == nil {
		e.cause = cause
		if e.done != nil {
			close(e.done)
		}
	}
	e.mu.Unlock()
	for _, f := range after {
		(*f)()
	}
}

// why returns the cause of the end, or nil.
func (e *ending) why() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// Done implements context.Context.
func (e *ending) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		e.done = make(chan struct{})
		if e.cause != nil {
			close(e.done)
		}
	}
	return e.done
}

// Err implements context.Context.
func (e *ending) Err() error {
	if e.why() == nil {
		return nil
	}
	if err := e.Context.Err(); err != nil {
		return err
	}
	return context.Canceled
}

// AfterFunc calls f at the end, unless stop is called before. Package context looks for this method, and so does http1.
func (e *ending) AfterFunc(f func()) (stop func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause != nil {
		go f()
		return func() bool { return false }
	}
	own := &f
	e.after = append(e.after, own)
	return func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		at := slices.Index(e.after, own)
		if at >= 0 {
			e.after = slices.Delete(e.after, at, at+1)
		}
		return at >= 0
	}
}
