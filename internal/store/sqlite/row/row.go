// Package row reads and writes the rows of a run file, with their checksums.
//
// Every row has a checksum of its table, its number and its values. A reader notices a bit
// that flipped on a disk, and a row that was moved over another. A wide row has several
// groups of columns with a checksum each, so that a query for some columns can check them.
// Pages have no checksums: other programs copy the file and fold its log into it, and would
// leave them wrong.
//
// The checksums detect damage, not forgery.
package row

import (
	"slices"
	"time"

	"github.com/zeebo/xxh3"
	"zombiezen.com/go/sqlite"
)

// Writer fills the parameters of an INSERT statement from left to right. Fill all of them.
// Seal ends each group of columns.
type Writer struct {
	stmt   *sqlite.Stmt
	column int
	sum    rowSum
	stored [2]int64 // checksums, two groups each
	sums   int      // how many columns hold checksums
}

// NewWriter prepares a statement for the row with the given key. The key is the first column,
// and the columns for checksums follow it.
func NewWriter(conn *sqlite.Conn, query string, t Table, key int64, sums int) (Writer, error) {
	s, err := conn.Prepare(query)
	if err != nil {
		return Writer{}, err
	}
	s.BindInt64(1, key)
	w := Writer{stmt: s, column: 1 + sums, sums: sums}
	w.sum.begin(t, key)
	return w, nil
}

// Seal ends a group of columns: those since NewWriter or the last Seal.
func (w *Writer) Seal() {
	to := &w.stored[w.sum.group/2]
	if second := w.sum.group%2 == 1; second {
		*to = int64(w.sum.next())<<32 | *to&(1<<32-1)
	} else {
		*to = int64(int32(w.sum.next()))
	}
}

// Int writes a number.
func (w *Writer) Int(n int64) {
	w.column++
	w.stmt.BindInt64(w.column, n)
	w.sum.add(uint64(n))
}

// Text writes a text.
func (w *Writer) Text(s string) {
	w.column++
	w.stmt.BindText(w.column, s)
	w.sum.text(s)
}

// Optional writes a text, and NULL for an empty one.
func (w *Writer) Optional(s string) {
	if s == "" {
		w.Null()
		return
	}
	w.Text(s)
}

// JSON writes bytes unchanged, and NULL only for nil.
func (w *Writer) JSON(b []byte) {
	if b == nil {
		w.Null()
		return
	}
	w.sum.present()
	w.Text(string(b))
}

// ID writes the id of a text, and NULL for 0, which is no id.
func (w *Writer) ID(n int64) {
	if n == 0 {
		w.Null()
		return
	}
	w.Int(n)
}

// Time writes a time, and NULL for the zero time.
func (w *Writer) Time(t time.Time) {
	if t.IsZero() {
		w.Null()
		return
	}
	w.sum.present()
	w.Int(t.UnixNano())
}

// Null writes NULL.
func (w *Writer) Null() {
	w.column++
	w.stmt.BindNull(w.column)
	w.sum.add(0)
}

// Nulls writes NULL n times.
func (w *Writer) Nulls(n int) {
	for range n {
		w.Null()
	}
}

// Bytes writes a blob.
func (w *Writer) Bytes(b []byte) {
	w.column++
	w.stmt.BindBytes(w.column, b)
	w.sum.add(xxh3.Hash(b))
}

// Do executes the statement.
func (w *Writer) Do() error {
	for i, v := range w.stored[:w.sums] {
		w.stmt.BindInt64(2+i, v)
	}
	return Step(w.stmt)
}

// Step executes a statement that returns no rows.
func Step(s *sqlite.Stmt) error {
	if _, err := s.Step(); err != nil {
		return err
	}
	return s.Reset()
}

// Reader reads the columns of a statement's current row from left to right. Check compares
// the checksum of each group of columns.
type Reader struct {
	// Key is the first column of the row: its number in its table.
	Key    int64
	stmt   *sqlite.Stmt
	column int
	sum    rowSum
	want   [2]int64 // checksums, two groups each
}

// NewReader returns a Reader of the row that s is at.
func NewReader(s *sqlite.Stmt) Reader { return Reader{stmt: s, Key: s.ColumnInt64(0)} }

// Begin starts to read a row whose checksums follow its key.
func (r *Reader) Begin(t Table, sums int) { r.BeginJoined(t, r.Key, 1, sums) }

// BeginJoined starts to read a row that is joined to another one. Its checksums start at
// the given column.
func (r *Reader) BeginJoined(t Table, key int64, column, sums int) {
	for i := range sums {
		r.want[i] = r.stmt.ColumnInt64(column + i)
	}
	r.column = column + sums
	r.sum.begin(t, key)
}

// Column returns the index of the next column.
func (r *Reader) Column() int { return r.column }

// Check compares the checksum of the columns since Begin or the last Check.
func (r *Reader) Check() error {
	want := r.want[r.sum.group/2] >> (32 * (r.sum.group % 2))
	if r.sum.next() != uint32(want) {
		return r.Bad("does not match its checksum")
	}
	return nil
}

// Bad returns an error about the row.
func (r *Reader) Bad(why string) error { return &Error{Table: r.sum.table, Key: r.sum.key, Why: why} }

// SkipGroup skips a group of columns that the query does not select.
func (r *Reader) SkipGroup() { r.sum.start(r.sum.group + 1) }

// Peek returns a column by its index, as a number, without a check.
func (r *Reader) Peek(column int) int { return r.stmt.ColumnInt(column) }

// IsInt reports whether the next column holds a number. Ask before you read the column.
func (r *Reader) IsInt() bool { return r.stmt.ColumnType(r.column) == sqlite.TypeInteger }

// Int64 reads a number.
func (r *Reader) Int64() int64 {
	n := r.stmt.ColumnInt64(r.column)
	r.column++
	r.sum.add(uint64(n))
	return n
}

// Int reads a number.
func (r *Reader) Int() int { return int(r.Int64()) }

// Nulls skips n columns that hold NULL.
func (r *Reader) Nulls(n int) {
	r.column += n
	for range n {
		r.sum.add(0)
	}
}

// Text reads a text.
func (r *Reader) Text() string {
	text := r.stmt.ColumnText(r.column)
	r.column++
	r.sum.text(text)
	return text
}

// Optional reads a text that is mostly NULL.
func (r *Reader) Optional() string {
	if r.stmt.ColumnLen(r.column) == 0 {
		r.Nulls(1)
		return ""
	}
	return r.Text()
}

// Bytes reads a blob into b.
func (r *Reader) Bytes(b []byte) {
	n := r.stmt.ColumnBytes(r.column, b)
	r.column++
	r.sum.add(xxh3.Hash(b[:n]))
}

// JSON reads what Writer.JSON writes.
func (r *Reader) JSON() []byte {
	if r.null() {
		return nil
	}
	b := make([]byte, r.stmt.ColumnLen(r.column))
	r.skim(b)
	return b
}

// Skim skips what Writer.JSON writes and only includes it in the checksum. It uses buf, and returns
// it for the next row, larger if necessary.
func (r *Reader) Skim(buf []byte) []byte {
	if r.null() {
		return buf
	}
	n := r.stmt.ColumnLen(r.column)
	buf = slices.Grow(buf[:0], n)
	r.skim(buf[:n])
	return buf
}

// skim reads a text into b, which has its size.
func (r *Reader) skim(b []byte) {
	r.stmt.ColumnBytes(r.column, b)
	r.column++
	r.sum.present()
	r.sum.bytes(b)
}

// Time reads what Writer.Time writes.
func (r *Reader) Time() time.Time {
	if r.null() {
		return time.Time{}
	}
	r.sum.present()
	return time.Unix(0, r.Int64()).UTC()
}

// null skips the next column if it is NULL.
func (r *Reader) null() bool {
	null := r.stmt.ColumnIsNull(r.column)
	if null {
		r.Nulls(1)
	}
	return null
}
