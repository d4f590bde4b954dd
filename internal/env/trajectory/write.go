package trajectory

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"parley/journal"
)

// Format names how rows are written.
type Format string

// The formats.
const (
	JSONL   Format = "jsonl"
	Parquet Format = "parquet"
)

// Formats lists them.
func Formats() []Format { return []Format{JSONL, Parquet} }

// Write writes the rows of the run in j that f wants.
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
		return columns{parquet.NewGenericWriter[Row](w)}, nil
	default:
		return nil, fmt.Errorf("trajectory: there is no format %q: use jsonl, parquet", as)
	}
}

type lines struct{ *bufio.Writer }

func (l lines) rows(rows []Row) error {
	for i := range rows {
		b, err := json.Marshal(&rows[i])
		if err != nil {
			return fmt.Errorf("trajectory: %w", err)
		}
		if _, err := l.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (l lines) close() error { return l.Flush() }

type columns struct{ *parquet.GenericWriter[Row] }

func (c columns) rows(rows []Row) error {
	_, err := c.Write(rows)
	return err
}

func (c columns) close() error { return c.Close() }
