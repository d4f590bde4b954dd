package dispatch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadline: a deadline behaves like context.WithDeadlineCause, whether or not its end was
// waited for before.
func TestDeadline(t *testing.T) {
	t.Parallel()
	late := errors.New("late")
	type key struct{}
	for _, waited := range []bool{false, true} {
		for _, test := range []struct {
			name  string
			then  func(cancel, stop func())
			err   error
			cause error
		}{
			{"goes on", func(func(), func()) {}, nil, nil},
			{"time passes", func(func(), func()) { time.Sleep(time.Minute) }, context.DeadlineExceeded, late},
			{"the parent ends", func(cancel, _ func()) { cancel() }, context.Canceled, context.Canceled},
			{"the call is over", func(_, stop func()) { stop() }, context.Canceled, context.Canceled},
		} {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
				defer cancel()
				d := withDeadline(parent, time.Now().Add(time.Minute), late)
				defer d.stop()
				if waited {
					d.Done()
				}
				test.then(cancel, d.stop)
				synctest.Wait()
				child, free := context.WithCancel(d)
				defer free()
				for name, ctx := range map[string]context.Context{"itself": d, "a child": child} {
					if err, cause := ctx.Err(), context.Cause(ctx); err != test.err || cause != test.cause {
						t.Errorf("%s, waited %v: %s: %v because of %v, want %v because of %v", test.name, waited, name, err, cause, test.err, test.cause)
					}
					select {
					case <-ctx.Done():
						if test.err == nil {
							t.Errorf("%s, waited %v: %s has ended", test.name, waited, name)
						}
					default:
						if test.err != nil {
							t.Errorf("%s, waited %v: %s has not ended", test.name, waited, name)
						}
					}
					if ctx.Value(key{}) != "kept" {
						t.Errorf("%s, waited %v: %s has lost a value of its parent", test.name, waited, name)
					}
				}
			})
		}
	}
}

// TestDeadlineOfTheParent: the earlier deadline of the parent counts.
func TestDeadlineOfTheParent(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(time.Hour)
	parent, cancel := context.WithDeadline(t.Context(), soon)
	defer cancel()
	for at, want := range map[time.Time]time.Time{soon.Add(-time.Minute): soon.Add(-time.Minute), soon.Add(time.Minute): soon} {
		d := withDeadline(parent, at, nil)
		if got, ok := d.Deadline(); !ok || !got.Equal(want) {
			t.Errorf("deadline %v of %v, want %v", got, at, want)
		}
		d.stop()
	}
}
