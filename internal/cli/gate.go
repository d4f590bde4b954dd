package cli

import (
	"errors"
	"io"
	"sync"
)

// errAborted is the cause of a context ended by a second signal.
var errAborted = errors.New("aborted by a second signal")

// errStopped is a read given up since the run is stopping.
var errStopped = errors.New("stopping")

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
