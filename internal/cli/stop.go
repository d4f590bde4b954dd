package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"parley/internal/cli/exit"
)

// oneSignal is how long a second signal counts as the first: timeout(1) signals a process
// and then its group, and nobody presses twice as fast.
const oneSignal = 100 * time.Millisecond

// abortGrace is how long a verb has after the second signal to end by itself.
const abortGrace = 3 * time.Second

// enforce hands the signals on to the verb and makes sure that the second ends the process,
// whatever the verb is busy with: after abortGrace, or at once with a third signal. The caller
// must call end.
func enforce(s *State) (end func()) {
	if s.Exit == nil || s.Signals == nil {
		return func() {}
	}
	in, out := s.Signals, make(chan os.Signal, 2)
	s.Signals = out
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var last time.Time
		var grace <-chan time.Time
		for n := 0; n <= cap(out); {
			select {
			case sig := <-in:
				if n > 0 && time.Since(last) < oneSignal {
					continue
				}
				if n, last = n+1, time.Now(); n > cap(out) {
					break
				}
				out <- sig // there is room for both, so this never waits for the verb
				if n == cap(out) {
					grace = time.After(abortGrace)
				}
			case <-grace:
				n = cap(out) + 1
			case <-over:
				return
			}
		}
		s.Exit(exit.Interrupted) // without words: a full pipe may be what the verb waits for
	})
	return func() {
		close(over)
		wg.Wait()
	}
}

// listen shuts the gate at the first signal and ends the context at the second. The
// caller must call end.
func listen(ctx context.Context, s *State, g *exit.Gate) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.Signals:
		case <-ctx.Done():
			g.Close(exit.Interrupted, context.Cause(ctx))
			return
		case <-over:
			return
		}
		first := time.Now()
		g.Close(exit.Interrupted, nil)
		fmt.Fprintln(s.Stderr, "parley: stopping: finishing what is in flight; once more to abort")
		for {
			select {
			case <-s.Signals:
				if time.Since(first) < oneSignal {
					continue
				}
				cancel(exit.ErrAborted)
				if s.Exit != nil {
					fmt.Fprintf(s.Stderr, "parley: aborting; what has not stopped within %v is cut off, at once if you press once more\n", abortGrace)
				}
			case <-over:
			}
			return
		}
	})
	return ctx, func() {
		close(over)
		wg.Wait()
		cancel(context.Canceled)
	}
}

// untilSignal ends the context at the first signal, with an error that has ExitInterrupted as its
// code: there is nothing to finish. The caller must call end.
func untilSignal(ctx context.Context, s *State) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.Signals:
			cancel(&exit.Error{Code: exit.Interrupted, Err: errors.New("interrupted")})
		case <-over:
		}
	})
	return ctx, func() {
		close(over)
		wg.Wait()
		cancel(context.Canceled)
	}
}
