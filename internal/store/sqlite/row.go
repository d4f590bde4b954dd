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
	s    *sqlite.Stmt
	i    int
	sum  sealed
	sums []int64 // to be filled in, two groups each
	kept [2]int64
}

// begin fills in the number of a row. The columns after it are for checksums.
func (r *row) begin(t table, key int64, sums int) {
	r.s.BindInt64(1, key)
	r.i, r.sums = 1+sums, r.kept[:sums]
	r.sum.begin(t, key)
}

// seal ends a group of columns: those since begin, or since the last seal.
func (r *row) seal() {
	to := &r.sums[r.sum.groups/2]
	if second := r.sum.groups%2 == 1; second {
		*to = int64(r.sum.next())<<32 | *to&(1<<32-1)
	} else {
		*to = int64(int32(r.sum.next()))
	}
}

func (r *row) int(n int64) {
	r.i++
	r.s.BindInt64(r.i, n)
	r.sum.add(uint64(n))
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
	for i, v := range r.sums {
		r.s.BindInt64(2+i, v)
	}
	if _, err := r.s.Step(); err != nil {
		return err
	}
	return r.s.Reset()
}

// columns reads the columns of a statement's row from left to right. What it reads after
// key is summed up; check compares the sum.
type columns struct {
	s    *sqlite.Stmt
	i    int
	row  int64 // its number, which is the first column
	sum  sealed
	want [2]int64 // checksums, two groups each
}

// newColumns is for the row that s is at.
func newColumns(s *sqlite.Stmt) columns { return columns{s: s, row: s.ColumnInt64(0)} }

// key begins with a row: it reads the checksums after its number, and returns the number.
func (c *columns) key(t table, sums int) int64 {
	c.begin(t, c.row, 1, sums)
	return c.row
}

// begin begins with a row whose checksums are at a place.
func (c *columns) begin(t table, key int64, at, sums int) {
	for i := range sums {
		c.want[i] = c.s.ColumnInt64(at + i)
	}
	c.i = at + sums
	c.sum.begin(t, key)
}

// check compares the checksum of the columns since key, or since the last check.
func (c *columns) check() error {
	want := c.want[c.sum.groups/2] >> (32 * (c.sum.groups % 2))
	if c.sum.next() != uint32(want) {
		return &rowError{table: c.sum.table, key: c.sum.key, why: "does not match its checksum"}
	}
	return nil
}

func (c *columns) int64() int64 {
	n := c.s.ColumnInt64(c.i)
	c.i++
	c.sum.add(uint64(n))
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

// opt is str for text that is mostly not there.
func (c *columns) opt() string {
	if c.s.ColumnLen(c.i) == 0 {
		c.nulls(1)
		return ""
	}
	return c.str()
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
