package runfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"zombiezen.com/go/sqlite"
)

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

// one calls each with the row that a query finds by its key.
func one(s *sqlite.Stmt, t rowTable, key int64, each func(c rowReader) error) error {
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
