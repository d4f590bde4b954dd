package training

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

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

// Write writes what f selects of the run in j, as it is read.
func Write(ctx context.Context, w io.Writer, j journal.Journal, f Filter, as Shape, in Format) (Account, error) {
	unmade := map[string]int{}
	put, end, err := newWriter(w, as, in, func(why string) { unmade[why]++ })
	if err != nil {
		return Account{}, err
	}
	records := 0
	a, err := Each(ctx, j, f, func(g *Group) error {
		if as != Rows && len(g.parts()) == 0 {
			unmade[LeftEmpty]++
		}
		n, err := put(g)
		records += n
		return err
	})
	if a.Rows, a.Unmade = records, unmade; err != nil {
		return a, err
	}
	return a, end()
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

// newWriter returns a function that writes a group and says how many records that were, and one that writes what
// is buffered. left is called with the reason for each record that is not made.
func newWriter(w io.Writer, as Shape, in Format, left func(why string)) (put func(*Group) (int, error), end func() error, err error) {
	switch {
	case !slices.Contains(Shapes(), as):
		return nil, nil, fmt.Errorf("trajectory: unknown shape %q; want one of %s", as, Shapes())
	case in == JSONL:
		put, end = newLines(w, as, left)
	case in == Parquet && as == Rows:
		put, end = newColumns(w, rowsOf, (*Row).size)
	case in == Parquet && as == Sequences:
		put, end = newColumns(w, sequences, (*Sequence).size)
	case in == Parquet:
		return nil, nil, fmt.Errorf("trajectory: %s is written as jsonl only", as)
	default:
		return nil, nil, fmt.Errorf("trajectory: unknown format %q; want one of jsonl, parquet", in)
	}
	return put, end, nil
}

func rowsOf(g *Group) (all []Row) {
	for _, m := range g.Members {
		all = append(all, m.Rows...)
	}
	return all
}

// newLines writes JSON lines.
func newLines(w io.Writer, as Shape, left func(why string)) (put func(*Group) (int, error), end func() error) {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false) // what models write is full of < and >
	put = func(g *Group) (int, error) {
		var all []any
		var err error
		switch as {
		case Rows:
			for _, r := range rowsOf(g) {
				all = append(all, r)
			}
		case Sequences:
			for _, s := range sequences(g) {
				all = append(all, s)
			}
		default:
			if all, err = shaped(g, as, left); err != nil {
				return 0, err
			}
		}
		for _, one := range all {
			if err := e.Encode(one); err != nil {
				return 0, fmt.Errorf("trajectory: group %s: %w", g.ID, err)
			}
		}
		return len(all), nil
	}
	return put, out.Flush
}

const (
	// groupBytes is the approximate size of a Parquet row group before compression: the maximum that is held
	// in memory.
	groupBytes = 32 << 20
	// dictionaryBytes is the size at which a column stops using a dictionary.
	dictionaryBytes = 1 << 20
)

// newColumns writes Parquet, in row groups of bounded size.
func newColumns[T any](w io.Writer, of func(*Group) []T, size func(*T) int) (put func(*Group) (int, error), end func() error) {
	out := parquet.NewGenericWriter[T](w,
		parquet.Compression(&parquet.Zstd), parquet.CreatedBy("parley", "", ""), parquet.DictionaryMaxBytes(dictionaryBytes),
		parquet.ColumnPageBuffers(parquet.NewBufferPool()),
		// Bounds of what models say are long and of no use.
		parquet.SkipPageBounds("messages"), parquet.SkipPageBounds("response"), parquet.SkipPageBounds("reasoning"),
	)
	held := 0 // bytes in this row group
	put = func(g *Group) (int, error) {
		all := of(g)
		for i := range all {
			if _, err := out.Write(all[i : i+1]); err != nil {
				return i, fmt.Errorf("trajectory: parquet: %w", err)
			}
			if held += size(&all[i]); held < groupBytes {
				continue
			}
			held = 0
			if err := out.Flush(); err != nil {
				return i, fmt.Errorf("trajectory: parquet: %w", err)
			}
		}
		return len(all), nil
	}
	end = func() error {
		if err := out.Close(); err != nil {
			return fmt.Errorf("trajectory: parquet: %w", err)
		}
		return nil
	}
	return put, end
}

// size is about how many bytes a row takes before compression.
func (r *Row) size() int {
	return 300 + len(r.Messages) + len(r.Tools) + len(r.Info) + len(r.Dataset) + len(r.Sampling) + len(r.Response) + len(r.Reasoning) + 8*(len(r.Tokens)+len(r.LossMask)+len(r.Logprobs)+4*len(r.Rewards))
}

func (s *Sequence) size() int { return 200 + 8*(3*len(s.Tokens)+4*len(s.Rewards)) }
