package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	"github.com/parquet-go/parquet-go"

	"parley/internal/kit/files"
)

// batchRows is how many rows are decoded at a time.
const batchRows = 8

// fromParquet reads a file whose columns only the file defines. The library trusts the file, so what its footer says is checked
// first. If a damaged file makes the library panic, that becomes an error.
func fromParquet(ctx context.Context, r io.ReaderAt, size int64, l limits, take taker) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("is not a Parquet file, or is damaged: %v", p)
		}
	}()
	r = readerAt{ctx, r}
	if err := checkFooter(r, size); err != nil {
		return err
	}
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	if f.NumRows() > int64(l.rows) {
		return fmt.Errorf("has more than %d rows: split it", l.rows)
	}
	if err := checkColumns(f, l); err != nil {
		return err
	}
	rows := parquet.NewGenericReader[any](f)
	defer func() { err = errors.Join(err, rows.Close()) }()
	batch := make([]any, batchRows)
	for done := 0; ; {
		clear(batch)
		n, err := rows.Read(batch)
		for _, row := range batch[:n] {
			done++
			b, err := appendJSON(nil, reflect.ValueOf(row), l.row)
			if err != nil {
				return fmt.Errorf("row %d: %w", done, err)
			}
			if err := take(b); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == 0:
			return io.ErrNoProgress
		}
	}
}

// readerAt ends reading when its context ends.
type readerAt struct {
	ctx context.Context //nolint:containedctx // it is made for one call of fromParquet
	io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.ReaderAt.ReadAt(p, off)
}

// appendJSON appends a value of a row as encoding/json does, up to limit bytes in all: many values of a row may be the
// same text of a dictionary.
func appendJSON(out []byte, v reflect.Value, limit int) ([]byte, error) {
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		v = v.Elem()
	}
	var err error
	switch {
	case !v.IsValid():
		out = append(out, "null"...)
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		out, err = appendObject(out, v, limit)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		out = append(out, '[')
		for i := range v.Len() {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendJSON(out, v.Index(i), limit); err != nil {
				return nil, err
			}
		}
		out = append(out, ']')
	default:
		if (v.Kind() == reflect.String || v.Kind() == reflect.Slice) && len(out)+v.Len() > limit {
			return nil, tooLong(limit)
		}
		var b []byte
		b, err = json.Marshal(v.Interface())
		out = append(out, b...)
	}
	if err == nil && len(out) > limit {
		err = tooLong(limit)
	}
	return out, err
}

func appendObject(out []byte, v reflect.Value, limit int) ([]byte, error) {
	fields := map[string]reflect.Value{}
	for _, k := range v.MapKeys() {
		fields[k.String()] = v.MapIndex(k)
	}
	out = append(out, '{')
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		out = append(append(out, key...), ':')
		if out, err = appendJSON(out, fields[name], limit); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func tooLong(limit int) error {
	return fmt.Errorf("is larger than %s of JSON", files.Size(int64(limit)))
}
