package exit

import (
	"errors"
	"io"
	"sync"
)

// ErrAborted is the cause of a context that a second signal canceled.
var ErrAborted = errors.New("aborted by a second signal")

// ErrStopped is the error of a read that ended because the run is stopping.
var ErrStopped = errors.New("stopping")

// Gate lets requests begin until it is closed. Requests that have begun are finished and kept. It is safe for
// use by several goroutines.
type Gate struct {
	Shut chan struct{} // closed when nothing new may begin

	mu   sync.Mutex
	code int // the highest exit code it was closed with
	errs []error
	then []func()
}

// NewGate returns an open gate.
func NewGate() *Gate { return &Gate{Shut: make(chan struct{})} }

// Close closes the gate. Of several reasons, the one with the highest code counts.
func (g *Gate) Close(code int, err error) {
	g.mu.Lock()
	first := g.code == OK
	if first {
		close(g.Shut)
	}
	g.code = max(g.code, code)
	if err != nil && len(g.errs) < 3 { // a full disk fails every write: three errors are enough
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

// OnClose calls f when the gate closes, or at once if it is closed.
func (g *Gate) OnClose(f func()) {
	g.mu.Lock()
	g.then = append(g.then, f)
	shut := g.code != OK
	g.mu.Unlock()
	if shut {
		f()
	}
}

// Closed reports whether the gate is closed.
func (g *Gate) Closed() bool {
	select {
	case <-g.Shut:
		return true
	default:
		return false
	}
}

// Reason returns why the gate was closed: OK if it was not.
func (g *Gate) Reason() (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.code, errors.Join(g.errs...)
}

// Reader reads from a stream that may be silent for long, such as standard input. It gives up when stop is
// closed.
type Reader struct {
	pieces <-chan piece
	stop   <-chan struct{}
	rest   []byte
	err    error
}

type piece struct {
	data []byte
	err  error
}

// NewReader starts a goroutine that reads r. Nothing can interrupt a Read of a terminal or a pipe, so nothing
// waits for this goroutine: it ends when r ends, at its first Read after stop, or with the process.
func NewReader(r io.Reader, stop <-chan struct{}) *Reader {
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
	return &Reader{pieces: pieces, stop: stop}
}

// Read implements io.Reader. It returns ErrStopped once stop is closed.
func (p *Reader) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		select {
		case next := <-p.pieces:
			p.rest, p.err = next.data, next.err
		case <-p.stop:
			p.err = ErrStopped
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
