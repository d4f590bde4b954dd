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

// oneSignal is the time within which a second signal counts as the first. timeout(1) signals a process and then
// its group; nobody presses a key twice that fast.
const oneSignal = 100 * time.Millisecond

// abortGrace is how long a command has to end after the second signal.
const abortGrace = 3 * time.Second

// enforceSignals passes signals to the command, those that come together as one, and makes sure that the second ends the process,
// whatever the command is doing: after abortGrace, or at once with a third signal. The caller must call end.
func enforceSignals(s *State) (end func()) {
	if s.Signals == nil {
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
				out <- sig // the buffer has room for both, so this never blocks
				if n == cap(out) {
					grace = time.After(abortGrace)
				}
			case <-grace:
				n = cap(out) + 1
			case <-over:
				return
			}
		}
		if s.Exit != nil {
			s.Exit(exit.Interrupted) // print nothing: the command may be blocked on a full pipe
		}
	})
	return func() {
		close(over)
		wg.Wait()
	}
}

// onSignals calls the first function at the first signal and so on, until end is called.
func onSignals(s *State, then ...func()) (end func()) {
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, f := range then {
			select {
			case <-s.Signals:
				f()
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		wg.Wait()
	}
}

// listen closes the gate at the first signal and cancels the context at the second. The caller must call end.
func listen(ctx context.Context, s *State, g *exit.Gate) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(ctx, func() {
		if !g.Closed() {
			g.Close(exit.Interrupted, context.Cause(ctx))
		}
	})
	done := onSignals(s, func() {
		g.Close(exit.Interrupted, nil)
		fmt.Fprintln(s.Stderr, "parley: stopping: finishing the calls in flight; press again to abort")
	}, func() {
		cancel(exit.ErrAborted)
		if s.Exit != nil {
			fmt.Fprintf(s.Stderr, "parley: aborting: the process ends within %v, or at once if you press again\n", abortGrace)
		}
	})
	return ctx, func() {
		forget()
		done()
		cancel(context.Canceled)
	}
}

// untilSignal cancels the context at the first signal, with an error that has the code exit.Interrupted. It is
// for commands that have nothing to finish. The caller must call end.
func untilSignal(ctx context.Context, s *State) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := onSignals(s, func() { cancel(&exit.Error{Code: exit.Interrupted, Err: errors.New("interrupted")}) })
	return ctx, func() {
		done()
		cancel(context.Canceled)
	}
}

// untilClosed returns a context that also ends when the gate closes, with the cause exit.ErrStopped.
func untilClosed(ctx context.Context, g *exit.Gate) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	g.OnClose(func() { cancel(exit.ErrStopped) })
	return ctx, func() { cancel(context.Canceled) }
}

// stopError returns err, without its text if it says that a signal stopped the command: that was said already.
func stopError(err error) error {
	if errors.Is(err, exit.ErrStopped) || errors.Is(err, exit.ErrAborted) {
		return exit.Silent(exit.Interrupted)
	}
	return err
}
