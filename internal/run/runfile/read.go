package runfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"zombiezen.com/go/sqlite"

	"parley/journal"
	"parley/llm"
)

// reader is a connection that reads.
type reader struct {
	conn   *sqlite.Conn
	keys   *textKeys // of the writer; may be nil
	byKey  byKey
	texts  *recent[int64, *storedText]
	hasher keyHasher
	lost   *Losses // nil: damage is an error

	skimmed []byte // for rowReader.Skim

	onSkip func(error) // gets the error when a scan skips rows; may be nil
}

// pool keeps connections for readers. It opens as many as are used at once and keeps a few.
type pool struct {
	path string
	keys *textKeys // gets the texts that readers find; may be nil

	mu     sync.Mutex
	idle   []*reader
	closed bool
	lost   *Losses // what readers leave out; nil: damage is an error
}

const maxIdle = 8

// with calls f with one state of the file, whatever is written meanwhile. Nothing is written here, so the transaction is rolled
// back: on some damaged files, SQLite refuses to commit what was read.
func (p *pool) with(f func(*reader) error) error {
	r, err := p.take()
	if err != nil {
		return err
	}
	defer p.give(r)
	if err := execute(r.conn, "BEGIN"); err != nil {
		return err
	}
	err = f(r)
	if !r.conn.AutocommitEnabled() { // some failures have rolled it back already
		err = errors.Join(err, execute(r.conn, "ROLLBACK"))
	}
	return err
}

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

func (p *pool) give(r *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < maxIdle && !p.closed {
		p.idle = append(p.idle, r)
		return
	}
	_ = r.conn.Close() // a reader has nothing to lose
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

// newReader opens a connection that never changes an entry. If possible, the connection may
// write, because only such a connection folds in and deletes the log of a run that was cut
// off. Where nothing can be written, it reads a file that has no log.
func newReader(path string, k *textKeys) (*reader, error) {
	r, err := openReader(path, k, sqlite.OpenReadWrite)
	if err == nil || pending(path) {
		return r, err
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCantOpen, sqlite.ResultReadOnly, sqlite.ResultPerm, sqlite.ResultIOErr:
		return openReader(uri(path, immutableQuery), k, sqlite.OpenReadOnly|sqlite.OpenURI)
	}
	return nil, err
}

func openReader(name string, k *textKeys, flags sqlite.OpenFlags) (*reader, error) {
	c, err := sqlite.OpenConn(name, flags)
	if err != nil {
		return nil, err
	}
	c.SetBusyTimeout(busyTimeout)
	r := &reader{conn: c, keys: k}
	r.forgetTexts()
	if err = checkTables(c); err == nil {
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

// readAtOnce is how many entries are read from one state of the file.
const readAtOnce = 2048

// chunks calls f for every n entries after the given one, each time with one state of the
// file, and then calls then without one. t is from the beginning. f returns the number of the last entry that it read: it may leave
// entries to the next call.
func (s *Store) chunks(ctx context.Context, after, n int64, f func(r *reader, in span, t totals) (to int64, err error), then func() error) error {
	var t totals
	if err := s.read(func(r *reader) (err error) { t, err = readTotals(r.conn); return err }); err != nil {
		return err
	}
	for after < t.seq {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		in := span{after, min(after+n, t.seq)}
		if err := s.read(func(r *reader) (err error) { after, err = f(r, in, t); return err }); err != nil {
			return err
		}
		if err := then(); err != nil {
			return err
		}
	}
	return nil
}

// Head reads everything that is needed to resume a run except the calls.
func (s *Store) Head(ctx context.Context) (h *journal.Head, err error) {
	err = s.read(func(r *reader) error {
		h, err = r.head(ctx)
		return err
	})
	return h, err
}

func (r *reader) head(ctx context.Context) (*journal.Head, error) {
	h := &journal.Head{}
	keep := func(seq int64, e journal.Entry) {
		switch e := e.(type) {
		case *journal.Batched:
			h.Batch(int(seq), e)
		case *journal.Ended:
			h.End(int(seq), e)
		default:
			h.Add(e)
		}
	}
	t, err := readTotals(r.conn)
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		read func(span, keepFunc) (int64, error)
		want int64
		what string
	}{{r.events, t.events, "events"}, {r.stages, t.stages, "stages"}, {r.ends, t.outcomes, "outcomes"}} {
		n, err := part.read(everything(), keep)
		if err := cmp.Or(context.Cause(ctx), err, r.complete(n, part.want, part.what)); err != nil {
			return nil, err
		}
	}
	h.Calls += int(t.calls)
	h.Collected = journal.Collected{Log: t.log, Through: t.collected}
	h.Spent = h.Spent.Plus(max(0, llm.Money(t.spent)))
	return h, cmp.Or(context.Cause(ctx), r.live(h, t.states[statePlaying]), r.checkBegun(h.Begun, t))
}

// checkBegun returns an error if the first entry of a damaged run is lost.
func (r *reader) checkBegun(b *journal.Begun, t totals) error {
	if b == nil && t.seq > 0 && r.lost != nil {
		return fmt.Errorf("%w: the beginning of the run cannot be read", ErrDamaged)
	}
	return nil
}

// Read reads the entries of a span that exist when it begins.
func (s *Store) Read(ctx context.Context, in journal.Span, each func(journal.Entry) error) error {
	if in.To > 0 {
		return s.episodes(ctx, in, each)
	}
	var entries []journal.Entry
	fill := func(r *reader, in span, _ totals) (to int64, err error) {
		entries, to, err = r.entries(in)
		return to, err
	}
	// No state of the file is held while each runs, so a slow consumer does not make the log grow.
	return s.chunks(ctx, max(0, int64(in.Since)-1), readAtOnce, fill, func() error {
		for _, e := range entries {
			if e == nil {
				continue // it is damaged and left out
			}
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := each(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReadPart reads up to limit entries after an entry, and returns the number of the last. Damaged entries that Salvage leaves out
// count, and each does not get them.
func (s *Store) ReadPart(ctx context.Context, after, limit int, each func(journal.Entry) error) (last int, err error) {
	var entries []journal.Entry
	last = after
	err = s.read(func(r *reader) error {
		t, err := readTotals(r.conn)
		if err != nil || int64(after) >= t.seq {
			return err
		}
		in := span{int64(after), min(int64(after)+int64(limit), t.seq)}
		var to int64
		entries, to, err = r.entries(in)
		last = int(to)
		return err
	})
	for _, e := range entries {
		if err = cmp.Or(err, context.Cause(ctx)); err == nil && e != nil {
			err = each(e)
		}
	}
	return last, err
}

// entries reads a span as far as its replies go: see replies.
func (r *reader) entries(in span) (out []journal.Entry, to int64, err error) {
	replies, to, err := r.replies(in, true)
	if err != nil {
		return nil, in.after, err
	}
	in.to = to
	out = make([]journal.Entry, in.to-in.after)
	keep := func(seq int64, e journal.Entry) { out[seq-in.after-1] = e }
	for _, p := range replies {
		keep(p.seq, p.Replied)
	}
	for _, read := range []func(span, keepFunc) (int64, error){r.events, r.stages, r.turns, r.outcomes} {
		if _, err := read(in, keep); err != nil {
			return nil, in.after, err
		}
	}
	if i := slices.Index(out, nil); i >= 0 && r.lost == nil {
		return nil, in.after, errMissing("entry %d", in.after+int64(i)+1)
	}
	return out, to, nil
}

// live reads the episodes that are being played. Their number shows whether one is missing;
// reading all episodes would take longer.
func (r *reader) live(h *journal.Head, want int64) error {
	n := int64(0)
	err := r.scan(progressSQL+`WHERE episode > ? AND episode <= ? AND NOT ended AND first ORDER BY episode`, everything(), func(c rowReader) error {
		p, err := readProgress(c)
		if err != nil || r.lost.Has(p.episode) {
			return err
		}
		n++
		h.Live(p.episode, p.Progress)
		return nil
	})
	return cmp.Or(err, r.complete(n, want, "episodes being played"))
}

// keepFunc receives an entry and its number.
type keepFunc func(seq int64, e journal.Entry)

// span is the rows after one key up to and including another.
type span struct{ after, to int64 }

func everything() span { return span{-1, math.MaxInt64} }

// The ends of queries for scan.
const (
	inSpan         = `WHERE seq > ? AND seq <= ? ORDER BY seq`
	inEpisodesSpan = `WHERE episode > ? AND episode <= ? ORDER BY episode`
)

// errStop ends a scan early.
var errStop = errors.New("stop")

// notStop returns nil for errStop.
func notStop(err error) error {
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// maxProbes is how many keys seek tries after a row that cannot be read. A page holds some
// hundred rows, and their keys are rarely further apart.
const maxProbes = 1 << 16

// scan calls each for every row in a span of a query whose first column is the key. If the
// reader leaves out damage, it skips rows that cannot be read.
func (r *reader) scan(query string, in span, each func(c rowReader) error) error {
	s, err := r.conn.Prepare(query)
	if err != nil {
		return err
	}
	defer reset(s)
	for {
		err := r.scanOnce(s, &in, each)
		if err == nil || r.lost == nil || !isDamage(err) {
			return err
		}
		if r.onSkip != nil {
			r.onSkip(err)
			in.to = min(in.to, r.lastKey())
		}
		if !seek(s, &in) {
			return nil
		}
	}
}

// scanFew is scan for tables with few rows an episode. If the reader leaves out damage, it
// reads all rows: damaged pages may hide the way to a row.
func (r *reader) scanFew(query string, in span, each func(c rowReader) error) error {
	if r.lost == nil {
		return r.scan(query, in, each)
	}
	return r.scan(query, everything(), func(c rowReader) error {
		if c.Key <= in.after || c.Key > in.to {
			return nil
		}
		return each(c)
	})
}

// tolerate returns nil if err is damage and the reader leaves out damage.
func (r *reader) tolerate(err error) error {
	if r.lost != nil && isDamage(err) {
		return nil
	}
	return err
}

// scanOnce scans a span up to the first row that cannot be read, and moves its start there.
func (r *reader) scanOnce(s *sqlite.Stmt, in *span, each func(c rowReader) error) error {
	reset(s)
	s.BindInt64(1, in.after)
	s.BindInt64(2, in.to)
	for {
		found, err := s.Step()
		if err != nil || !found {
			return err
		}
		c := newRowReader(s)
		if c.Key <= in.after {
			return fmt.Errorf("%w: row %d comes after row %d", ErrDamaged, c.Key, in.after)
		}
		in.after = c.Key
		if err := r.tolerate(each(c)); err != nil {
			return err
		}
	}
}

// lastKey returns a number that no key of a row exceeds. Without it, seek tries thousands of keys after the last row.
func (r *reader) lastKey() int64 {
	return int64(max(r.lost.Entries, r.lost.Texts, r.lost.Episodes))
}

// seek moves the start of a span to the next key from which rows can be read.
func seek(s *sqlite.Stmt, in *span) bool {
	for range maxProbes {
		if in.after >= in.to {
			return false
		}
		in.after++
		reset(s)
		s.BindInt64(1, in.after)
		s.BindInt64(2, in.to)
		if found, err := s.Step(); err == nil && (!found || s.ColumnInt64(0) > in.after) {
			return found
		}
	}
	return false
}

// complete returns an error if rows are missing.
func (r *reader) complete(got, want int64, what string) error {
	if got == want || r.lost != nil {
		return nil
	}
	return fmt.Errorf("%w: there are %d %s and should be %d", ErrDamaged, got, what, want)
}

// findRow calls each with the row that a query finds by its key.
func findRow(s *sqlite.Stmt, t table, key int64, each func(c rowReader) error) error {
	s.BindInt64(1, key)
	found, err := s.Step()
	switch {
	case err != nil:
		return err
	case !found:
		return errors.Join(rowMissing(t, key), s.Reset())
	}
	return cmp.Or(each(newRowReader(s)), s.Reset())
}
