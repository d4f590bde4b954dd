// Package dataset reads the rows of datasets in JSON, JSON lines, YAML or Parquet, depending on the file's extension.
//
// What it promises: every row is one JSON value, in the file's order, and errors name the line or row. No file takes
// more memory or time than the limits of this package allow, but for a Parquet file with pages that hold more than its footer says. Reading
// ends when the context does.
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

	"parley/internal/kit/files"
)

// The limits of a dataset. Rows become part of the run, so these are about what a run file can hold.
const (
	// maxBytes limits the JSON of all rows of a file.
	maxBytes = 256 << 20
	// maxRow limits the JSON of one row.
	maxRow = 16 << 20
	// maxRows limits the number of rows of a file.
	maxRows = 1_000_000
	// maxFile limits the size of a file. JSON may contain white space that is dropped.
	maxFile = 1 << 30
)

// limits are the limits of one file. Tests use smaller ones.
type limits struct {
	bytes, row, rows int
}

func standard() limits { return limits{bytes: maxBytes, row: maxRow, rows: maxRows} }

// Rows yields the rows of a file. It ends with the first error. The caller may keep a row.
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

// plain returns an error without the name of the file, which is already in front of it.
func plain(err error, path string) error {
	if large, ok := errors.AsType[*files.TooLargeError](err); ok {
		return fmt.Errorf("is larger than %s", files.Size(large.Limit))
	}
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	if text, ok := strings.CutPrefix(err.Error(), path+": "); ok {
		return errors.New(text)
	}
	return err
}

// errEnough ends reading: the caller wants no more rows.
var errEnough = errors.New("enough")

// taker takes a row, or says why reading must end.
type taker func(row json.RawMessage) error

// guard counts and limits the rows that are passed on.
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
		return &files.TooLargeError{Path: path, Limit: maxFile}
	}
	err = read(ctx, strings.ToLower(filepath.Ext(path)), f, info.Size(), l, take)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// file can be read in order, or at any offset.
type file interface {
	io.Reader
	io.ReaderAt
}

func read(ctx context.Context, ext string, f file, size int64, l limits, take taker) error {
	switch ext {
	case ".json":
		return fromJSON(files.ContextReader(ctx, f), l, take)
	case ".jsonl", ".ndjson":
		return fromLines(files.ContextReader(ctx, f), l, take)
	case ".yaml", ".yml":
		return fromYAML(ctx, f, l, take)
	case ".parquet":
		return fromParquet(ctx, f, size, l, take)
	default:
		return errors.New("the name must end in .json, .jsonl, .yaml or .parquet")
	}
}
