package runfile

import (
	"errors"
	"slices"
	"sync"

	"zombiezen.com/go/sqlite"
)

// pool keeps connections for readers. It opens as many as are used at once and keeps a few.
type pool struct {
	path string
	keys []*contentKeys // get the texts that readers find, by file; may be empty

	mu     sync.Mutex
	idle   []*reader
	closed bool
	lost   *Losses // what readers leave out; nil: damage is an error
}

const maxIdle = 8

func (p *pool) take() (r *reader, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	switch {
	case p.closed:
		return nil, errors.New("the run file is closed")
	case n > 0:
		r, p.idle = p.idle[n-1], p.idle[:n-1]
	default:
		if r, err = newReader(p.path, p.keys); err != nil {
			return nil, err
		}
	}
	r.lost = p.lost
	return r, nil
}

// leaveOut makes readers leave out what is damaged.
func (p *pool) leaveOut(lost *Losses) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = lost
}

// leftOut returns what readers leave out, or nil.
func (p *pool) leftOut() *Losses {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *pool) give(r *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < maxIdle && !p.closed {
		p.idle = append(p.idle, r)
		return
	}
	_ = r.conn.Close() // a reader has nothing to lose
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

// with calls f with one state of the file, whatever is written meanwhile. Nothing is written here, so the transaction is rolled
// back: on some damaged files, SQLite refuses to commit what was read.
func (p *pool) with(f func(*reader) error) error {
	r, err := p.take()
	if err != nil {
		return err
	}
	defer p.give(r)
	if err := run(r.conn, "BEGIN"); err != nil {
		return err
	}
	if r.shards > 0 { // the state of the run file first: see shards.go
		_, err = readTotals(r.conn)
	}
	if err == nil {
		err = f(r)
	}
	if !r.conn.AutocommitEnabled() { // some failures have rolled it back already
		err = errors.Join(err, run(r.conn, "ROLLBACK"))
	}
	return err
}

// newReader opens a connection that never changes an entry. If possible, the connection may
// write, because only such a connection folds in and deletes the log of a run that was cut
// off. Where nothing can be written, it reads a file that has no log.
func newReader(path string, k []*contentKeys) (*reader, error) {
	r, err := openReader(path, k, func(path string) string { return path }, sqlite.OpenReadWrite)
	if err == nil || slices.ContainsFunc(filesOf(path), pending) {
		return r, err
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCantOpen, sqlite.ResultReadOnly, sqlite.ResultPerm, sqlite.ResultIOErr:
		return openReader(path, k, func(path string) string { return uri(path, schemaImmutable) }, sqlite.OpenReadOnly|sqlite.OpenURI)
	}
	return nil, err
}

// openReader opens a file and its shards. name returns what SQLite is given for a path.
func openReader(path string, k []*contentKeys, name func(path string) string, flags sqlite.OpenFlags) (*reader, error) {
	c, err := sqlite.OpenConn(name(path), flags)
	if err != nil {
		return nil, err
	}
	c.SetBusyTimeout(busyTimeout)
	r := &reader{conn: c, keys: k}
	r.forgetTexts()
	if err = checkTables(c, "main"); err == nil {
		err = r.attach(path, name)
	}
	if err == nil {
		err = pragmas(c, "query_only = ON", "cache_size = -16384", "synchronous = FULL")
	}
	if err == nil {
		r.byKey, err = r.newByKey()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return r, nil
}
