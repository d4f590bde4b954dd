package runfile

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zeebo/xxh3"
	"zombiezen.com/go/sqlite"

	"parley/journal"
)

// Every row has a checksum of its table, its number and its values. A reader notices a bit
// that flipped on a disk, and a row that was moved over another. A wide row has several
// groups of columns with a checksum each, so that a query for some columns can check them.
// Pages have no checksums: other programs copy the file and fold its log into it, and would
// leave them wrong.
//
// The checksums detect damage, not forgery.

// table is a table of a run file. Its number is part of the checksums of its rows.
type table int

const (
	tableState table = iota + 1
	tableTexts
	tableEvents
	tableStages
	tableSpecs
	tableProgress
	tableTurns
	tableReplies
	tableOutcomes
)

// describe names the row with the given key.
func (t table) describe(key int64) string {
	if t == tableState {
		return "the state of the run"
	}
	return fmt.Sprintf([...]string{
		tableTexts: "text %d", tableEvents: "entry %d", tableStages: "entry %d (a stage)", tableSpecs: "the description of episode %d",
		tableProgress: "the progress of episode %d", tableTurns: "entry %d (a turn)", tableReplies: "entry %d (a reply)", tableOutcomes: "entry %d (an outcome)",
	}[t], key)
}

// rowError is a row that is missing, or differs from what was written.
type rowError struct {
	Table   table
	Key     int64
	Why     string
	Episode *int // the episode that the row belongs to, if known
}

// Error implements error.
func (e *rowError) Error() string {
	text := journal.ErrDamaged.Error() + ": " + e.Table.describe(e.Key)
	if e.Episode != nil {
		text += fmt.Sprintf(" of episode %d", *e.Episode)
	}
	return text + " " + e.Why
}

// Unwrap returns journal.ErrDamaged.
func (e *rowError) Unwrap() error { return journal.ErrDamaged }

// rowMissing returns an error about a row that is not there.
func rowMissing(t table, key int64) error { return &rowError{Table: t, Key: key, Why: "is missing"} }

// withEpisode adds the episode to a rowError that does not have one.
func withEpisode(episode int, err error) error {
	if e, ok := errors.AsType[*rowError](err); ok && e.Episode == nil {
		e.Episode = &episode
	}
	return err
}

// inserts holds the INSERT statements of a connection, one for each table. It prepares a statement
// once and leaves a parameter bound that has the same value in the next row, as most have: both
// take as long as storing a row. The zero value, with a connection, has none prepared.
type inserts struct {
	Conn    *sqlite.Conn
	byTable [tableOutcomes + 1]insert
}

type insert struct {
	stmt  *sqlite.Stmt
	bound []bound // by parameter, from 0
}

// bound is the value of a parameter. The zero value is NULL, which a new statement binds.
type bound struct {
	is   binding
	n    int64
	text string
}

type binding byte

const (
	boundNull binding = iota
	boundInt
	boundText // at most keptText bytes
	boundMore // not kept
)

// keptText is how long a text is at most that is compared with the next one.
const keptText = 64

// Row begins the row of a table with the given key. The key is the first column, and the columns
// for checksums follow it. Each table has one query.
func (i *inserts) Row(query string, t table, key int64, sums int) (rowWriter, error) {
	in := &i.byTable[t]
	if in.stmt == nil {
		s, err := i.Conn.Prepare(query)
		if err != nil {
			return rowWriter{}, err
		}
		in.stmt, in.bound = s, make([]bound, s.BindParamCount())
	}
	w := rowWriter{insert: in, sums: sums}
	w.bindInt(key)
	w.column += sums
	w.sum.begin(t, key)
	return w, nil
}

// rowWriter fills the parameters of an INSERT statement from left to right. Fill all of them.
// Seal ends each group of columns.
type rowWriter struct {
	*insert
	column int // how many parameters are filled
	sum    rowSum
	stored [2]int64 // checksums, two groups each
	sums   int      // how many columns hold checksums
}

// param returns what the next parameter is bound to.
func (w *rowWriter) param() *bound {
	w.column++
	return &w.bound[w.column-1]
}

func (w *rowWriter) bindInt(n int64) {
	if b := w.param(); b.is != boundInt || b.n != n {
		b.is, b.n = boundInt, n
		w.stmt.BindInt64(w.column, n)
	}
}

// Seal ends a group of columns: those since Row or the last Seal.
func (w *rowWriter) Seal() {
	to := &w.stored[w.sum.group/2]
	if second := w.sum.group%2 == 1; second {
		*to = int64(w.sum.next())<<32 | *to&(1<<32-1)
	} else {
		*to = int64(int32(w.sum.next()))
	}
}

// Int writes a number.
func (w *rowWriter) Int(n int64) {
	w.bindInt(n)
	w.sum.add(uint64(n))
}

// Text writes a text.
func (w *rowWriter) Text(s string) {
	w.sum.text(s)
	b := w.param()
	switch {
	case len(s) > keptText:
		*b = bound{is: boundMore}
	case b.is == boundText && b.text == s:
		return
	default:
		*b = bound{is: boundText, text: s}
	}
	w.stmt.BindText(w.column, s)
}

// Optional writes a text, and NULL for an empty one.
func (w *rowWriter) Optional(s string) {
	if s == "" {
		w.Null()
		return
	}
	w.Text(s)
}

// JSON writes bytes unchanged, and NULL only for nil.
func (w *rowWriter) JSON(b []byte) {
	if b == nil {
		w.Null()
		return
	}
	w.sum.present()
	w.Text(string(b))
}

// ID writes the id of a text, and NULL for 0, which is no id.
func (w *rowWriter) ID(n int64) {
	if n == 0 {
		w.Null()
		return
	}
	w.Int(n)
}

// Time writes a time, and NULL for the zero time.
func (w *rowWriter) Time(t time.Time) {
	if t.IsZero() {
		w.Null()
		return
	}
	w.sum.present()
	w.Int(t.UnixNano())
}

// Null writes NULL.
func (w *rowWriter) Null() {
	w.sum.add(0)
	if b := w.param(); b.is != boundNull {
		*b = bound{}
		w.stmt.BindNull(w.column)
	}
}

// Nulls writes NULL n times.
func (w *rowWriter) Nulls(n int) {
	for range n {
		w.Null()
	}
}

// Bytes writes a blob.
func (w *rowWriter) Bytes(b []byte) {
	*w.param() = bound{is: boundMore}
	w.stmt.BindBytes(w.column, b)
	w.sum.add(xxh3.Hash(b))
}

// Do executes the statement.
func (w *rowWriter) Do() error {
	w.column = 1
	for _, v := range w.stored[:w.sums] {
		w.bindInt(v)
	}
	err := stepOnce(w.stmt)
	if err != nil {
		for i := range w.bound {
			w.bound[i] = bound{is: boundMore} // a parameter may not be bound
		}
	}
	return err
}

// stepOnce executes a statement that returns no rows.
func stepOnce(s *sqlite.Stmt) error {
	if _, err := s.Step(); err != nil {
		return err
	}
	return s.Reset()
}

// rowReader reads the columns of a statement's current row from left to right. Check compares
// the checksum of each group of columns.
type rowReader struct {
	// Key is the first column of the row: its number in its table.
	Key    int64
	stmt   *sqlite.Stmt
	column int
	sum    rowSum
	want   [2]int64 // checksums, two groups each
}

// newRowReader returns a reader of the row that s is at.
func newRowReader(s *sqlite.Stmt) rowReader { return rowReader{stmt: s, Key: s.ColumnInt64(0)} }

// Begin starts to read a row whose checksums follow its key.
func (r *rowReader) Begin(t table, sums int) { r.BeginJoined(t, r.Key, 1, sums) }

// BeginJoined starts to read a row that is joined to another one. Its checksums start at
// the given column.
func (r *rowReader) BeginJoined(t table, key int64, column, sums int) {
	for i := range sums {
		r.want[i] = r.stmt.ColumnInt64(column + i)
	}
	r.column = column + sums
	r.sum.begin(t, key)
}

// Column returns the index of the next column.
func (r *rowReader) Column() int { return r.column }

// Check compares the checksum of the columns since Begin or the last Check.
func (r *rowReader) Check() error {
	want := r.want[r.sum.group/2] >> (32 * (r.sum.group % 2))
	if r.sum.next() != uint32(want) {
		return r.Bad("does not match its checksum")
	}
	return nil
}

// Bad returns an error about the row.
func (r *rowReader) Bad(why string) error {
	return &rowError{Table: r.sum.table, Key: r.sum.key, Why: why}
}

// SkipGroup skips a group of columns that the query does not select.
func (r *rowReader) SkipGroup() { r.sum.start(r.sum.group + 1) }

// Peek returns a column by its index, as a number, without a check.
func (r *rowReader) Peek(column int) int { return r.stmt.ColumnInt(column) }

// IsInt reports whether the next column holds a number. Ask before you read the column.
func (r *rowReader) IsInt() bool { return r.stmt.ColumnType(r.column) == sqlite.TypeInteger }

// Int64 reads a number.
func (r *rowReader) Int64() int64 {
	n := r.stmt.ColumnInt64(r.column)
	r.column++
	r.sum.add(uint64(n))
	return n
}

// Int reads a number.
func (r *rowReader) Int() int { return int(r.Int64()) }

// Nulls skips n columns that hold NULL.
func (r *rowReader) Nulls(n int) {
	r.column += n
	for range n {
		r.sum.add(0)
	}
}

// Text reads a text.
func (r *rowReader) Text() string {
	text := r.stmt.ColumnText(r.column)
	r.column++
	r.sum.text(text)
	return text
}

// Optional reads a text that is mostly NULL.
func (r *rowReader) Optional() string {
	if r.stmt.ColumnLen(r.column) == 0 {
		r.Nulls(1)
		return ""
	}
	return r.Text()
}

// Usual reads a text that mostly is the given short one.
func (r *rowReader) Usual(text string) string {
	var b [16]byte
	if n := len(text); n > len(b) || r.stmt.ColumnLen(r.column) != n || r.stmt.ColumnBytes(r.column, b[:n]) != n || string(b[:n]) != text {
		return r.Text()
	}
	r.column++
	r.sum.text(text)
	return text
}

// Bytes reads a blob into b.
func (r *rowReader) Bytes(b []byte) {
	n := r.stmt.ColumnBytes(r.column, b)
	r.column++
	r.sum.add(xxh3.Hash(b[:n]))
}

// JSON reads what rowWriter.JSON writes.
func (r *rowReader) JSON() []byte {
	if r.null() {
		return nil
	}
	b := make([]byte, r.stmt.ColumnLen(r.column))
	r.skim(b)
	return b
}

// Skim skips what rowWriter.JSON writes and only includes it in the checksum. It uses buf, and returns
// it for the next row, larger if necessary.
func (r *rowReader) Skim(buf []byte) []byte {
	if r.null() {
		return buf
	}
	n := r.stmt.ColumnLen(r.column)
	buf = slices.Grow(buf[:0], n)
	r.skim(buf[:n])
	return buf
}

// skim reads a text into b, which has its size.
func (r *rowReader) skim(b []byte) {
	r.stmt.ColumnBytes(r.column, b)
	r.column++
	r.sum.present()
	r.sum.bytes(b)
}

// Time reads what rowWriter.Time writes.
func (r *rowReader) Time() time.Time {
	if r.null() {
		return time.Time{}
	}
	r.sum.present()
	return time.Unix(0, r.Int64()).UTC()
}

// null skips the next column if it is NULL.
func (r *rowReader) null() bool {
	null := r.stmt.ColumnIsNull(r.column)
	if null {
		r.Nulls(1)
	}
	return null
}

// sum is a checksum in progress. NULL, 0 and the empty text give the same sum, because
// readers do not distinguish them. Where they do, they add present.
type sum uint64

// add adds a number. If one value differs, the result always differs.
func (s *sum) add(v uint64) {
	h := (uint64(*s) ^ v) * 0x9E3779B97F4A7C15
	*s = sum(h ^ h>>32)
}

// text adds a text.
func (s *sum) text(text string) {
	if text == "" {
		s.add(0)
		return
	}
	s.add(xxh3.HashString(text))
}

// bytes adds the bytes of a text.
func (s *sum) bytes(b []byte) {
	if len(b) == 0 {
		s.add(0)
		return
	}
	s.add(xxh3.Hash(b))
}

// present marks that a value is not NULL.
func (s *sum) present() { s.add(0xA5A5A5A5) }

// rowSum is the checksum of a row's current group of columns.
type rowSum struct {
	sum
	table table
	key   int64
	group int
}

func (s *rowSum) begin(t table, key int64) {
	s.table, s.key = t, key
	s.start(0)
}

// start starts the checksum of a group.
func (s *rowSum) start(group int) {
	s.sum, s.group = 0, group
	s.add(uint64(s.table)<<8 | uint64(group))
	s.add(uint64(s.key))
}

// next returns the checksum of the group and starts the next group.
func (s *rowSum) next() uint32 {
	s.add(1)
	v := uint32(s.sum)
	s.start(s.group + 1)
	return v
}

// reset makes s ready for its next use. The error of Reset only repeats the one of Step.
func reset(s *sqlite.Stmt) { _ = s.Reset() }
