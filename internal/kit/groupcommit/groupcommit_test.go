package groupcommit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

var errFull = errors.New("full")

// TestOrderAndFailure: a callback sees its entry committed, in order. Once a commit has failed,
// nothing more is committed, and Failed is called once.
func TestOrderAndFailure(t *testing.T) {
	t.Parallel()
	for _, room := range []int{0, 5, 100} {
		var committed, seen []int
		failures := 0
		l := New(func(_ context.Context, entries ...int) error {
			if len(committed)+len(entries) > room {
				return errFull
			}
			committed = append(committed, entries...)
			return nil
		})
		l.Failed = func(error) { failures++ }
		var wg sync.WaitGroup
		wg.Go(func() { l.Run(t.Context()) })
		for n := range 100 {
			l.Write(func(err error) {
				if slices.Contains(committed, n) != (err == nil) {
					t.Errorf("entry %d: %v, with %v committed", n, err, committed)
				}
				seen = append(seen, n)
			}, n)
		}
		err := errors.Join(l.Close(), l.Close())
		wg.Wait()
		fails := room < 100
		if !slices.IsSorted(seen) || len(seen) != 100 || fails != (failures == 1) || fails != errors.Is(err, errFull) {
			t.Errorf("room for %d: %d callbacks, %d failures, %v", room, len(seen), failures, err)
		}
	}
}

// TestSync: a commit does not wait for a Sync, and a callback of WriteSync waits for one that began
// after its commit.
func TestSync(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, errFull} {
		var wg sync.WaitGroup
		syncs := make(chan chan error)
		l := New(func(context.Context, ...int) error { return nil })
		l.Sync = func() error { end := make(chan error); syncs <- end; return <-end }
		wg.Go(func() { l.Run(t.Context()) })
		written := make(chan error, 3)
		after := func(err error) { written <- err }
		l.WriteSync(after, 1)
		first := <-syncs
		l.Write(after, 2)
		if err := <-written; err != nil { // the first Sync has not ended
			t.Error(err)
		}
		l.WriteSync(after, 3)
		first <- want
		if err := <-written; !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if want == nil {
			second := <-syncs
			if len(written) > 0 {
				t.Error("nobody synced the third entry")
			}
			second <- nil
		}
		if err := <-written; !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if err := l.Close(); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		wg.Wait()
	}
}
