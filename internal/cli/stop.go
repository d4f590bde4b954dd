package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// errAborted is the cause of a context ended by a second signal.
var errAborted = errors.New("aborted by a second signal")

// errStopped is a read given up since the run is stopping.
var errStopped = errors.New("stopping")

// oneSignal is how long a second signal counts as the first: timeout(1) signals a process
// and then its group, and nobody presses twice as fast.
const oneSignal = 100 * time.Millisecond

// gate lets requests begin until somebody shuts it; what has begun is finished
// and kept. It is safe for use by several goroutines.
type gate struct {
	shut chan struct{} // closed when nothing may begin any more

	mu   sync.Mutex
	code int // the gravest exit code it was shut with
	errs []error
	then []func()
}

func newGate() *gate { return &gate{shut: make(chan struct{})} }

// close shuts the gate. Of several reasons the one with the greatest code counts.
func (g *gate) close(code int, err error) {
	g.mu.Lock()
	first := g.code == ExitOK
	if first {
		close(g.shut)
	}
	g.code = max(g.code, code)
	if err != nil && len(g.errs) < 3 { // a full disk fails every write: three say enough
		g.errs = append(g.errs, err)
	}
	then := g.then
	g.mu.Unlock()
	if first {
		for _, f := range then {
			f()
		}
	}
}

// onClose has f called when the gate shuts, or at once if it is shut.
func (g *gate) onClose(f func()) {
	g.mu.Lock()
	g.then = append(g.then, f)
	shut := g.code != ExitOK
	g.mu.Unlock()
	if shut {
		f()
	}
}

// closed says whether the gate is shut.
func (g *gate) closed() bool {
	select {
	case <-g.shut:
		return true
	default:
		return false
	}
}

// reason returns why the gate was shut: ExitOK if it was not.
func (g *gate) reason() (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.code, errors.Join(g.errs...)
}

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
		s.Exit(ExitInterrupted) // without words: a full pipe may be what the verb waits for
	})
	return func() {
		close(over)
		wg.Wait()
	}
}

// listen shuts the gate at the first signal and ends the context at the second. The
// caller must call end.
func listen(ctx context.Context, s *State, g *gate) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.Signals:
		case <-ctx.Done():
			g.close(ExitInterrupted, context.Cause(ctx))
			return
		case <-over:
			return
		}
		first := time.Now()
		g.close(ExitInterrupted, nil)
		fmt.Fprintln(s.Stderr, "parley: stopping: finishing what is in flight; once more to abort")
		for {
			select {
			case <-s.Signals:
				if time.Since(first) < oneSignal {
					continue
				}
				cancel(errAborted)
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

// patientReader reads from a stream that may have nothing to say for long, such as
// a standard input, and gives up when stop is closed.
type patientReader struct {
	pieces <-chan piece
	stop   <-chan struct{}
	rest   []byte
	err    error
}

type piece struct {
	data []byte
	err  error
}

// newPatientReader starts a goroutine that reads r. Nothing can interrupt a Read of
// a terminal or a pipe, so this goroutine alone is not waited for: it ends when r
// ends, or at its first Read after stop, or with the process.
func newPatientReader(r io.Reader, stop <-chan struct{}) *patientReader {
	pieces := make(chan piece)
	go func() {
		for {
			buf := make([]byte, 32<<10)
			n, err := r.Read(buf)
			select {
			case pieces <- piece{data: buf[:n], err: err}:
			case <-stop:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return &patientReader{pieces: pieces, stop: stop}
}

// Read implements io.Reader. It returns errStopped once stop is closed.
func (p *patientReader) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		select {
		case next := <-p.pieces:
			p.rest, p.err = next.data, next.err
		case <-p.stop:
			p.err = errStopped
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
