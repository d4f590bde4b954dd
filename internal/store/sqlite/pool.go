package sqlite

import (
	"errors"
	"sync"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// pool keeps connections for readers. It makes as many as are used at once and keeps a few.
type pool struct {
	path string
	keys *keys // told which texts are stored; may be nil

	mu     sync.Mutex
	idle   []*reader
	closed bool
	lost   *Losses // what to leave out; nil: damage is an error
}

const poolKept = 8

func (p *pool) take() (*reader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the run file is closed")
	}
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1]
		p.idle = p.idle[:n-1]
		r.lost = p.lost
		return r, nil
	}
	r, err := newReader(p.path, p.keys)
	if err != nil {
		return nil, err
	}
	r.lost = p.lost
	return r, nil
}

// salvage makes readers leave out what is damaged.
func (p *pool) salvage(lost *Losses) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = lost
}

// leftOut is what they leave out, or nil.
func (p *pool) leftOut() *Losses {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *pool) give(r *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < poolKept && !p.closed {
		p.idle = append(p.idle, r)
		return
	}
	_ = r.conn.Close() // nothing of a reader can be lost
}

func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, r := range p.idle {
		errs = append(errs, r.conn.Close())
	}
	p.idle, p.closed = nil, true
	return errors.Join(errs...)
}

// with runs f on one state of the file, whatever is written meanwhile.
func (p *pool) with(f func(*reader) error) error {
	r, err := p.take()
	if err != nil {
		return err
	}
	defer p.give(r)
	return within(r.conn, "BEGIN", func() error { return f(r) })
}

// newReader opens a connection that never changes an entry. It is one that could write,
// if the system lets it, since only such a one folds in and tidies away the log of a run
// that was cut off. Where nothing can be written, a file without a log is read as it is.
func newReader(path string, k *keys) (*reader, error) {
	r, err := openReader(path, k, sqlite.OpenReadWrite)
	if err == nil || pending(path) {
		return r, err
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCantOpen, sqlite.ResultReadOnly, sqlite.ResultPerm, sqlite.ResultIOErr:
		return openReader(address(path, "mode=ro&immutable=1"), k, sqlite.OpenReadOnly|sqlite.OpenURI)
	}
	return nil, err
}

func openReader(path string, k *keys, flags sqlite.OpenFlags) (*reader, error) {
	c, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, err
	}
	c.SetBusyTimeout(busyFor)
	r := &reader{conn: c, keys: k, texts: newRecent[int64](textsKept, (*text).size)}
	for _, pragma := range []string{"query_only = ON", "cache_size = -16384", "synchronous = FULL"} {
		if err := sqlitex.ExecuteTransient(c, "PRAGMA "+pragma, nil); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if err = checkTables(c); err == nil {
		r.chain, err = newChain(c)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return r, nil
}
