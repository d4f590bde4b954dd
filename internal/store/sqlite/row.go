package sqlite

import (
	"errors"
	"time"

	"zombiezen.com/go/sqlite"
)

// within runs f in a transaction that is begun by the given statement, and undoes all of
// it if anything fails.
func within(c *sqlite.Conn, begin string, f func() error) error {
	if err := run(c, begin); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = run(c, "COMMIT")
	}
	if err != nil && !c.AutocommitEnabled() { // some failures have undone it already
		err = errors.Join(err, run(c, "ROLLBACK"))
	}
	return err
}

func run(c *sqlite.Conn, statement string) error {
	s, err := c.Prepare(statement)
	if err != nil {
		return err
	}
	return (&row{s: s}).do()
}

// done makes s ready for the next time. What Reset says is only what the last Step said.
func done(s *sqlite.Stmt) { _ = s.Reset() }

// row fills the parameters of a statement from left to right. All of them must be filled.
type row struct {
	s *sqlite.Stmt
	i int
}

func (r *row) int(n int64) {
	r.i++
	r.s.BindInt64(r.i, n)
}

// opt is text that is mostly not there.
func (r *row) opt(s string) {
	if s == "" {
		r.null()
		return
	}
	r.str(s)
}

func (r *row) str(s string) {
	r.i++
	r.s.BindText(r.i, s)
}

// raw is JSON kept to the byte; nil is kept apart from what is empty.
func (r *row) raw(b []byte) {
	if b == nil {
		r.null()
		return
	}
	r.str(string(b))
}

// id is that of a text; there is no text 0.
func (r *row) id(n int64) {
	if n == 0 {
		r.null()
		return
	}
	r.int(n)
}

func (r *row) time(t time.Time) {
	if t.IsZero() {
		r.null()
		return
	}
	r.int(t.UnixNano())
}

func (r *row) null() {
	r.i++
	r.s.BindNull(r.i)
}

func (r *row) do() error {
	if _, err := r.s.Step(); err != nil {
		return err
	}
	return r.s.Reset()
}

// columns reads the columns of a statement's row from left to right.
type columns struct {
	s *sqlite.Stmt
	i int
}

func (c *columns) int64() int64 {
	c.i++
	return c.s.ColumnInt64(c.i - 1)
}

func (c *columns) skip(n int) { c.i += n }

func (c *columns) int() int { return int(c.int64()) }

func (c *columns) str() string {
	c.i++
	return c.s.ColumnText(c.i - 1)
}

func (c *columns) raw() []byte {
	if c.s.ColumnIsNull(c.i) {
		c.i++
		return nil
	}
	return append([]byte{}, c.str()...)
}

func (c *columns) time() time.Time {
	if c.s.ColumnIsNull(c.i) {
		c.i++
		return time.Time{}
	}
	return time.Unix(0, c.int64()).UTC()
}

// isInt says whether the next column holds a number.
func (c *columns) isInt() bool { return c.s.ColumnType(c.i) == sqlite.TypeInteger }
