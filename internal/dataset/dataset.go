// Package dataset reads the rows of datasets: JSON, JSON lines, YAML and Parquet,
// told apart by the name of the file.
//
// It promises that every row comes as one JSON value, in the file's order and one after the
// other, and that what is wrong with a file is told with the line or row. No file, however it
// is made, takes more memory or time than the bounds of this package allow, and reading ends
// when the context does.
package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"parley/internal/files"
)

// The bounds of a dataset. What is read becomes part of the run, so these are about what a
// run file can sensibly hold.
const (
	// MaxBytes is how much JSON the rows of a file may be together.
	MaxBytes = 256 << 20
	// MaxRow is how much JSON one row may be.
	MaxRow = 16 << 20
	// MaxRows is how many rows a file may have.
	MaxRows = 1_000_000
	// maxFile is the largest file that is opened. JSON may have white space to throw away.
	maxFile = 1 << 30
)

// limits are the bounds of one file. Tests have smaller ones.
type limits struct {
	bytes, row, rows int
}

func standard() limits { return limits{bytes: MaxBytes, row: MaxRow, rows: MaxRows} }

// Rows returns the rows of a file. It ends with the first error. A row is the caller's to
// keep.
func Rows(ctx context.Context, path string) iter.Seq2[json.RawMessage, error] {
	return rowsWithin(ctx, path, standard())
}

func rowsWithin(ctx context.Context, path string, l limits) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		n, stopped := 0, false
		take := l.guard(ctx, func(row json.RawMessage) bool {
			n++
			stopped = !yield(row, nil)
			return !stopped
		})
		err := open(ctx, path, l, take)
		if err == nil && n == 0 {
			err = errors.New("has no rows")
		}
		if err != nil && !stopped {
			yield(nil, fmt.Errorf("dataset: %s: %w", path, plain(err, path)))
		}
	}
}

// plain is an error without the name of the file, which stands before it already.
func plain(err error, path string) error {
	if large, ok := errors.AsType[*files.TooLargeError](err); ok {
		return fmt.Errorf("is larger than %s", files.Size(large.Most))
	}
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	if text, ok := strings.CutPrefix(err.Error(), path+": "); ok {
		return errors.New(text)
	}
	return err
}

// errEnough ends reading: nobody wants more rows.
var errEnough = errors.New("enough")

// taker takes a row, or says why reading must end.
type taker func(row json.RawMessage) error

// guard counts the rows that are passed on.
func (l limits) guard(ctx context.Context, pass func(json.RawMessage) bool) taker {
	rows, bytes := 0, 0
	return func(row json.RawMessage) error {
		rows++
		bytes += len(row)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case len(row) > l.row:
			return fmt.Errorf("row %d: is larger than %s", rows, files.Size(int64(l.row)))
		case rows > l.rows:
			return fmt.Errorf("has more than %d rows: split it", l.rows)
		case bytes > l.bytes:
			return fmt.Errorf("row %d: the rows up to here are more than %s of JSON: split the file, or leave out columns that are not needed", rows, files.Size(int64(l.bytes)))
		case !pass(row):
			return errEnough
		}
		return nil
	}
}

// open reads the file at path, row by row.
func open(ctx context.Context, path string, l limits, take taker) (err error) {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxFile {
		return &files.TooLargeError{Path: path, Most: maxFile}
	}
	err = read(ctx, strings.ToLower(filepath.Ext(path)), f, info.Size(), l, take)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// file is what is read: in order, or anywhere.
type file interface {
	io.Reader
	io.ReaderAt
}

func read(ctx context.Context, ext string, f file, size int64, l limits, take taker) error {
	switch ext {
	case ".json":
		return fromJSON(files.Reader(ctx, f), l, take)
	case ".jsonl", ".ndjson":
		return fromLines(files.Reader(ctx, f), l, take)
	case ".yaml", ".yml":
		return fromYAML(ctx, f, l, take)
	case ".parquet":
		return fromParquet(ctx, f, size, l, take)
	default:
		return errors.New("the name must end in .json, .jsonl, .yaml or .parquet")
	}
}
