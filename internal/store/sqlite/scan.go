package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
)

// span is the rows after one and up to another, by number.
type span struct{ after, to int64 }

func everything() span { return span{-1, 1<<63 - 1} }

// What the query of a scan ends with.
const (
	inSpan       = `WHERE seq > ? AND seq <= ? ORDER BY seq`
	inSpanOfRuns = `WHERE episode > ? AND episode <= ? ORDER BY episode`
)

// errFound ends a scan whose further rows are of no use.
var errFound = errors.New("found")

// probes is how many numbers are tried for the next row that can be read, after one that
// cannot. A page holds some hundred rows, and its numbers are seldom further apart.
const probes = 1 << 16

// scan calls each for every row of a span of a query, whose first column is the row's
// number. On a reader that leaves out what is damaged, rows that cannot be read are passed.
func (r *reader) scan(query string, in span, each func(c columns) error) error {
	s, err := r.conn.Prepare(query)
	if err != nil {
		return err
	}
	defer done(s)
	for {
		err := r.pass(s, &in, each)
		if err == nil || r.lost == nil || !isDamage(err) {
			return err
		}
		if r.passed != nil {
			r.passed(err)
		}
		if !seek(s, &in) {
			return nil
		}
	}
}

// scanFew is scan for tables that have few rows an episode. Where damage is to be left out
// it goes through all of them: the way to a row may lead past one that is damaged.
func (r *reader) scanFew(query string, in span, each func(c columns) error) error {
	if r.lost == nil {
		return r.scan(query, in, each)
	}
	return r.scan(query, everything(), func(c columns) error {
		if c.row <= in.after || c.row > in.to {
			return nil
		}
		return each(c)
	})
}

// left is what is left of an error: nothing, where damage is to be left out.
func (r *reader) left(err error) error {
	if r.lost != nil && isDamage(err) {
		return nil
	}
	return err
}

// pass goes through a span as far as it can be read.
func (r *reader) pass(s *sqlite.Stmt, in *span, each func(c columns) error) error {
	done(s)
	s.BindInt64(1, in.after)
	s.BindInt64(2, in.to)
	for {
		found, err := s.Step()
		if err != nil || !found {
			return err
		}
		key := s.ColumnInt64(0)
		if key <= in.after {
			return fmt.Errorf("%w: row %d comes after row %d", ErrDamaged, key, in.after)
		}
		in.after = key
		if err := r.left(each(columns{s: s, row: key})); err != nil {
			return err
		}
	}
}

// seek finds the next number from which on rows can be read.
func seek(s *sqlite.Stmt, in *span) bool {
	for range probes {
		if in.after >= in.to {
			return false
		}
		in.after++
		done(s)
		s.BindInt64(1, in.after)
		s.BindInt64(2, in.to)
		if found, err := s.Step(); err == nil && (!found || s.ColumnInt64(0) > in.after) {
			return found
		}
	}
	return false
}

// complete says if there were fewer rows than there should be.
func (r *reader) complete(got, want int64, what string) error {
	if got == want || r.lost != nil {
		return nil
	}
	return fmt.Errorf("%w: there are %d %s and should be %d", ErrDamaged, got, what, want)
}
