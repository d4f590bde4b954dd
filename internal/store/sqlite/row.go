package sqlite

import (
	"errors"
	"time"

	"github.com/zeebo/xxh3"
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
// What it fills in after begin is summed up; seal fills in the sum.
type row struct {
	s   *sqlite.Stmt
	i   int
	sum sealed
}

// begin fills in the number of a row.
func (r *row) begin(t table, key int64) {
	r.i++
	r.s.BindInt64(r.i, key)
	r.sum.begin(t, key)
}

// seal fills in the checksum of the columns since begin, or since the last seal.
func (r *row) seal() {
	r.i++
	r.s.BindInt64(r.i, r.sum.next())
}

func (r *row) int(n int64) {
	r.i++
	r.s.BindInt64(r.i, n)
	r.sum.add(uint64(n)) //nolint:gosec // the bits are what counts
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
	r.sum.str(s)
}

// raw is JSON kept to the byte; nil is kept apart from what is empty.
func (r *row) raw(b []byte) {
	if b == nil {
		r.null()
		return
	}
	r.sum.present()
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
	r.sum.present()
	r.int(t.UnixNano())
}

func (r *row) null() {
	r.i++
	r.s.BindNull(r.i)
	r.sum.add(0)
}

func (r *row) nulls(n int) {
	for range n {
		r.null()
	}
}

func (r *row) bytes(b []byte) {
	r.i++
	r.s.BindBytes(r.i, b)
	r.sum.add(xxh3.Hash(b))
}

func (r *row) do() error {
	if _, err := r.s.Step(); err != nil {
		return err
	}
	return r.s.Reset()
}

// columns reads the columns of a statement's row from left to right. What it reads after
// key is summed up; check compares the sum.
type columns struct {
	s   *sqlite.Stmt
	i   int
	sum sealed
}

// key reads the number of a row.
func (c *columns) key(t table) int64 {
	n := c.s.ColumnInt64(c.i)
	c.i++
	c.sum.begin(t, n)
	return n
}

// check reads the checksum of the columns since key, or since the last check, and says if
// it is another.
func (c *columns) check() error {
	is := c.s.ColumnInt64(c.i)
	c.i++
	if t, key := c.sum.table, c.sum.key; c.sum.next() != is {
		return &rowError{table: t, key: key, why: "does not match its checksum"}
	}
	return nil
}

func (c *columns) int64() int64 {
	n := c.s.ColumnInt64(c.i)
	c.i++
	c.sum.add(uint64(n)) //nolint:gosec // the bits are what counts
	return n
}

// nulls passes columns that nothing was written to.
func (c *columns) nulls(n int) {
	c.i += n
	for range n {
		c.sum.add(0)
	}
}

func (c *columns) int() int { return int(c.int64()) }

func (c *columns) str() string {
	text := c.s.ColumnText(c.i)
	c.i++
	c.sum.str(text)
	return text
}

// bytes reads into b.
func (c *columns) bytes(b []byte) {
	n := c.s.ColumnBytes(c.i, b)
	c.i++
	c.sum.add(xxh3.Hash(b[:n]))
}

func (c *columns) raw() []byte {
	if c.s.ColumnIsNull(c.i) {
		c.nulls(1)
		return nil
	}
	c.sum.present()
	return append([]byte{}, c.str()...)
}

func (c *columns) time() time.Time {
	if c.s.ColumnIsNull(c.i) {
		c.nulls(1)
		return time.Time{}
	}
	c.sum.present()
	return time.Unix(0, c.int64()).UTC()
}
