package trajectory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"parley/journal"
)

// Format is a file format.
type Format string

// The formats. There is no CSV: a row has lists in it.
const (
	JSONL   Format = "jsonl"
	Parquet Format = "parquet"
)

// Formats lists them.
func Formats() []Format { return []Format{JSONL, Parquet} }

// Write writes the rows of the run in j that f wants, as they are read.
func Write(ctx context.Context, w io.Writer, j journal.Journal, f Filter, as Format) (Account, error) {
	out, err := newWriter(w, as)
	if err != nil {
		return Account{}, err
	}
	a, err := Each(ctx, j, f, func(g *Group) error {
		for _, m := range g.Members {
			if err := out.rows(m.Rows); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return a, err
	}
	return a, out.close()
}

// JSON returns the row as one line without a newline.
func (r *Row) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // what models write is full of < and >
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("trajectory: episode %d: %w", r.Episode, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// writer writes rows in a format.
type writer interface {
	rows(rows []Row) error
	close() error
}

func newWriter(w io.Writer, as Format) (writer, error) {
	switch as {
	case JSONL:
		return lines{bufio.NewWriter(w)}, nil
	case Parquet:
		return newColumns(w), nil
	default:
		return nil, fmt.Errorf("trajectory: unknown format %q; want one of jsonl, parquet", as)
	}
}

type lines struct{ *bufio.Writer }

func (l lines) rows(rows []Row) error {
	for i := range rows {
		b, err := rows[i].JSON()
		if err != nil {
			return err
		}
		if _, err := l.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (l lines) close() error { return l.Flush() }

const (
	// groupBytes is the approximate size of a Parquet row group before compression: the maximum that is held
	// in memory.
	groupBytes = 32 << 20
	// dictionaryBytes is the size at which a column stops using a dictionary.
	dictionaryBytes = 1 << 20
)

// columns writes Parquet, in row groups of bounded size.
type columns struct {
	w           *parquet.GenericWriter[Row]
	held, limit int // bytes in this row group
}

func newColumns(w io.Writer) *columns {
	return &columns{limit: groupBytes, w: parquet.NewGenericWriter[Row](w,
		parquet.Compression(&parquet.Zstd), parquet.CreatedBy("parley", "", ""), parquet.DictionaryMaxBytes(dictionaryBytes),
		parquet.ColumnPageBuffers(parquet.NewBufferPool()),
		// Bounds of what models say are long and of no use.
		parquet.SkipPageBounds("messages"), parquet.SkipPageBounds("response"), parquet.SkipPageBounds("reasoning"),
	)}
}

func (c *columns) rows(rows []Row) error {
	for i := range rows {
		r := &rows[i]
		if _, err := c.w.Write(rows[i : i+1]); err != nil {
			return fmt.Errorf("trajectory: parquet: %w", err)
		}
		c.held += 300 + len(r.Messages) + len(r.Response) + len(r.Reasoning) + 8*(len(r.Tokens)+len(r.LossMask)+len(r.Logprobs))
		if c.held < c.limit {
			continue
		}
		c.held = 0
		if err := c.w.Flush(); err != nil {
			return fmt.Errorf("trajectory: parquet: %w", err)
		}
	}
	return nil
}

func (c *columns) close() error {
	if err := c.w.Close(); err != nil {
		return fmt.Errorf("trajectory: parquet: %w", err)
	}
	return nil
}
