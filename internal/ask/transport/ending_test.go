package transport

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestEnding: an ending is a context that ends once, with its parent or by itself, and so do the contexts and functions that depend
// on it.
func TestEnding(t *testing.T) {
	t.Parallel()
	own, outer := errors.New("its own"), errors.New("of the call")
	for name, c := range map[string]struct {
		end  func(e *ending, cancel context.CancelCauseFunc)
		want error
	}{
		"by itself":      {func(e *ending, _ context.CancelCauseFunc) { e.end(own) }, own},
		"twice":          {func(e *ending, _ context.CancelCauseFunc) { e.end(own); e.end(outer) }, own},
		"with its call":  {func(_ *ending, cancel context.CancelCauseFunc) { cancel(outer) }, outer},
		"before it":      {func(e *ending, cancel context.CancelCauseFunc) { e.end(own); cancel(outer) }, own},
		"with its child": {nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			e := &ending{}
			e.begin(ctx)
			defer e.end(context.Canceled)
			child, stop := context.WithCancel(e)
			defer stop()
			called := 0
			e.AfterFunc(func() { called++ })
			if !e.AfterFunc(func() { t.Errorf("%s: a stopped function was called", name) })() || e.Err() != nil || child.Err() != nil {
				t.Errorf("%s: it has ended already: %v", name, e.Err())
			}
			if c.end == nil {
				stop()
				synctest.Wait()
				if e.why() != nil {
					t.Errorf("%s: it ended too", name)
				}
				return
			}
			c.end(e, cancel)
			synctest.Wait()
			<-e.Done()
			<-child.Done()
			if e.why() != c.want || e.Err() != context.Canceled || called != 1 {
				t.Errorf("%s: ended for %v with %v after %d calls", name, e.why(), e.Err(), called)
			}
			late := make(chan struct{})
			if e.AfterFunc(func() { close(late) })() {
				t.Errorf("%s: what is called at once was stopped", name)
			}
			<-late
		})
	}
}
