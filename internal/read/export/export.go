// Package export writes a run for other programs: as tables of calls, episodes, messages, scores, labels and what kinds make of
// notes, in JSON lines, CSV or Parquet; or as a log of Inspect (inspect.go).
//
// What it promises: a table has the columns of Columns, in that order, in every format and for
// every run. The same run gives the same bytes. Rows are written as they are read, so memory
// does not grow with calls. You can export a run while it is played. docs/how-to/export.md
// describes every column, and a test checks that.
//
// It is not for files: it writes to an io.Writer, and the caller decides what to do with an
// incomplete export. It is not for looking at a run: that is package results.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/world"
)

// Table is the name of a table.
type Table string

// The tables.
const (
	Calls    Table = "calls"    // requests and their replies
	Episodes Table = "episodes" // episodes and their outcomes
	Messages Table = "messages" // the messages of prompts
	Scores   Table = "scores"   // the scores of outcomes
	Labels   Table = "labels"   // what people said about episodes, from the file beside the run file
)

// tables lists the tables.
func tables() []Table { return []Table{Calls, Episodes, Messages, Scores, Labels} }

// Format is the name of a format.
type Format string

// The formats.
const (
	JSONL   Format = "jsonl"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Formats lists the formats.
func Formats() []Format { return []Format{JSONL, CSV, Parquet} }

// Type is the type of a column's values.
type Type string

// The types. A value of any type may be missing.
const (
	Text    Type = "text"
	JSON    Type = "json" // in a text
	Integer Type = "integer"
	Double  Type = "double"
	Boolean Type = "boolean"
	Time    Type = "time" // to the microsecond, UTC
)

// Column is a column of a table.
type Column struct {
	Name string
	Type Type
	Doc  string // what it is, as docs/how-to/export.md says it
	few  bool   // it has few different values
}

// Columns lists the columns of one of Tables, in order.
func Columns(t Table) []Column {
	switch t {
	case Calls:
		return plainColumns(callColumns())
	case Episodes:
		return plainColumns(episodeColumns())
	case Messages:
		return plainColumns(messageColumns())
	case Scores:
		return plainColumns(scoreColumns())
	case Labels:
		return plainColumns(labelColumns())
	}
	return nil
}

// ColumnsOf lists the columns of one of AllTables, in order.
func ColumnsOf(kind world.Kind, t Table) []Column {
	if own := noteTable(kind, t); own != nil {
		return plainColumns(noteColumns(own))
	}
	return Columns(t)
}

// Run is a run to write.
type Run struct {
	Store *runfile.Store
	// Kind is the kind that was played, or zero if this program does not know it.
	Kind world.Kind
	// Without are episodes to leave out.
	Without map[int]bool
	// Added are scores that scorers gave to episodes.
	Added map[int][]world.Score
}

// SizeError means that more would be written than allowed.
type SizeError struct {
	Path string // of the run file
	Max  int64  // bytes
}

// Error implements error.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s: its calls repeat texts that the file has once: written out, they have more than %d MB", e.Path, e.Max/1e6)
}

// allowance is how many bytes may still be written, before they are compressed.
type allowance struct{ left, max int64 }

// newAllowance returns an allowance of so many bytes; 0: what is usual for the runs.
func newAllowance(limit int64, stores ...*runfile.Store) *allowance {
	if limit == 0 {
		for _, s := range stores {
			limit += s.Expanded()
		}
	}
	return &allowance{limit, limit}
}

// take takes bytes of the run at path.
func (a *allowance) take(path string, n int64) error {
	if a.left -= n; a.left < 0 {
		return &SizeError{path, a.max}
	}
	return nil
}

// Write writes a table of runs, one after the other, and returns the number of rows. If only names
// columns, the others are left out. If a file is damaged, it continues without the damaged episodes: see runfile.Store.Lost. Rows of these
// episodes that are already written are correct, but incomplete. It ends with a SizeError if it writes more than so many bytes; 0:
// as many as runfile.Store.Expanded allows.
func Write(ctx context.Context, w io.Writer, runs []Run, t Table, f Format, limit int64, only ...string) (rows int, err error) {
	var stores []*runfile.Store
	for _, r := range runs {
		stores = append(stores, r.Store)
	}
	allowed := newAllowance(limit, stores...)
	pick, columns, err := choose(ColumnsOf(runs[0].Kind, t), only)
	if err != nil {
		return 0, err
	}
	e, err := newEncoder(w, f, columns)
	if err != nil {
		return 0, err
	}
	for _, r := range runs {
		n, err := r.write(ctx, e, t, pick, allowed)
		if rows += n; err != nil {
			return rows, err
		}
	}
	return rows, e.close()
}

// choose returns the columns with the given names, in the order of the table, and their indexes. No names mean all.
func choose(all []Column, only []string) (pick []int, chosen []Column, err error) {
	for _, name := range only {
		if !slices.ContainsFunc(all, func(c Column) bool { return c.Name == name }) {
			return nil, nil, fmt.Errorf("the table has no column %q", name)
		}
	}
	for i, c := range all {
		if len(only) == 0 || slices.Contains(only, c.Name) {
			pick, chosen = append(pick, i), append(chosen, c)
		}
	}
	return pick, chosen, nil
}

func (r Run) write(ctx context.Context, e encoder, t Table, pick []int, allowed *allowance) (rows int, err error) {
	about, err := outline(ctx, r.Store)
	if err != nil {
		return 0, err
	}
	x := &export{Run: r, run: about.Begun.Run, agents: about.Begun.Agents, variation: results.Variations(about.Begun.Plan), episodes: about.Episodes.Total, encoder: e, pick: pick, allowed: allowed}
	switch t {
	case Calls:
		err = x.writeCalls(ctx)
	case Episodes:
		err = x.writeEpisodes(ctx)
	case Messages:
		err = x.writeMessages(ctx)
	case Scores:
		err = x.writeScores(ctx)
	case Labels:
		err = x.writeLabels(ctx)
	default:
		own := noteTable(r.Kind, t)
		if own == nil {
			return 0, fmt.Errorf("unknown table %q; want one of %v", t, AllTables(r.Kind))
		}
		err = x.writeNotes(ctx, own)
	}
	return x.rows, err
}

// export is a Write of one run in progress.
type export struct {
	Run
	run    string // its id
	agents []world.Agent
	// variation returns the tags of the variation of a cell.
	variation func(cell string) map[string]string
	episodes  int // when it began
	encoder   encoder
	pick      []int // the indexes of the columns to write
	rows      int
	cells     []cell
	allowed   *allowance
}

// replies reads the replies of the run. If the file is damaged, it continues without the damaged
// episodes.
func (x *export) replies(ctx context.Context, prompts bool, each func(runfile.Recorded) error) error {
	last := int64(0)
	read := func() error {
		return x.Store.Replies(ctx, last, prompts, func(e runfile.Recorded) error {
			last = e.Call
			if x.Without[e.Episode] {
				return nil
			}
			return each(e)
		})
	}
	err := read()
	if x.salvaged(ctx, err) {
		err = read()
	}
	return err
}

// salvaged reports whether err means that the file is damaged, and the rest can be read from now
// on.
func (x *export) salvaged(ctx context.Context, err error) bool {
	if !errors.Is(err, runfile.ErrDamaged) || x.Store.Lost() != nil {
		return false
	}
	return x.Store.Salvage(ctx) == nil
}

// encoder writes rows in a format.
type encoder interface {
	// row writes a row. It does not keep cells.
	row(cells []cell) error
	// close writes what is buffered.
	close() error
}

func newEncoder(w io.Writer, f Format, columns []Column) (encoder, error) {
	switch f {
	case JSONL:
		return newJSONL(w, columns), nil
	case CSV:
		return newCSV(w, columns), nil
	case Parquet:
		return newParquet(w, columns)
	default:
		return nil, fmt.Errorf("unknown format %q; want one of %v", f, Formats())
	}
}

// column is a Column with a function that returns its values.
type column[T any] struct {
	Column
	of func(*T) cell
}

// col returns a column.
func col[T any](name string, t Type, doc string, of func(*T) cell) column[T] {
	return column[T]{Column{Name: name, Type: t, Doc: doc}, of}
}

// few returns a column of texts with few different values.
func few[T any](name, doc string, of func(*T) cell) column[T] {
	return column[T]{Column{Name: name, Type: Text, Doc: doc, few: true}, of}
}

func plainColumns[T any](columns []column[T]) []Column {
	out := make([]Column, len(columns))
	for i := range columns {
		out[i] = columns[i].Column
	}
	return out
}

// put writes a row about v.
func put[T any](x *export, columns []column[T], v *T) error {
	x.cells = x.cells[:0]
	size := int64(0)
	for _, i := range x.pick {
		c := columns[i].of(v)
		x.cells = append(x.cells, c)
		size += int64(len(columns[i].Name) + len(c.text)) // JSON lines repeat the name
	}
	if err := x.allowed.take(x.Store.Path(), size); err != nil {
		return err
	}
	x.rows++
	return x.encoder.row(x.cells)
}

// cell is a value of a column, of the column's type. The zero value is null.
type cell struct {
	there bool
	text  string
	n     int64 // an integer, microseconds since 1970, or 1 for true
	f     float64
}

// text returns a text. Bytes that are not UTF-8 become U+FFFD: Parquet and JSON cannot hold them.
func text(s string) cell {
	if !utf8.ValidString(s) { // which is much faster than ToValidUTF8
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return cell{there: true, text: s}
}

// textOrNull returns a text, or null for an empty one.
func textOrNull(s string) cell {
	if s == "" {
		return cell{}
	}
	return text(s)
}

func integer(n int) cell { return cell{there: true, n: int64(n)} }

// integerOrNull returns null for 0.
func integerOrNull(n int) cell { return cell{there: n != 0, n: int64(n)} }

func double(f float64) cell { return cell{there: true, f: f} }

func boolean(yes bool) cell {
	if yes {
		return cell{there: true, n: 1}
	}
	return cell{there: true}
}

func moment(t time.Time) cell { return cell{there: !t.IsZero(), n: t.UnixMicro()} }

func seconds(d time.Duration) cell { return double(d.Seconds()) }

// timeLayout is the layout of a time in text.
const timeLayout = "2006-01-02T15:04:05.000000Z"
