package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"parley/internal/kit/files"
)

// fromJSON reads a list of rows, one at a time.
func fromJSON(r io.Reader, l limits, take taker) error {
	gauge := &gauge{r: r, limit: l.row}
	d := json.NewDecoder(gauge)
	first, err := d.Token()
	if err != nil || first != json.Delim('[') {
		if err == nil || errors.Is(err, io.EOF) {
			err = fmt.Errorf("it begins with %v", first)
		}
		return fmt.Errorf("want a list of rows: %w", err)
	}
	for n := 1; d.More(); n++ {
		gauge.from = d.InputOffset()
		var row json.RawMessage
		if err := d.Decode(&row); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		if err := take(row); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("want a list of rows: %w", noEnd(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("there is more after the value")
		}
		return fmt.Errorf("want one list of rows: %w", err)
	}
	return nil
}

// noEnd reports a truncated list as such.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// gauge makes a reader fail once it is far ahead of the start of the row: the decoder would otherwise buffer a row of
// any size.
type gauge struct {
	r     io.Reader
	from  int64 // where the row begins
	at    int64
	limit int
}

// Read implements io.Reader.
func (g *gauge) Read(p []byte) (int, error) {
	if g.at-g.from > 2*int64(g.limit)+(1<<20) {
		return 0, fmt.Errorf("is larger than %s", files.Size(int64(g.limit)))
	}
	n, err := g.r.Read(p)
	g.at += int64(n)
	return n, err
}

// fromLines reads one row per line.
func fromLines(r io.Reader, l limits, take taker) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := oneLine(lines, l.row)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		end := err != nil
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if !json.Valid(line) {
				return fmt.Errorf("line %d: is not JSON", n)
			}
			if err := take(bytes.Clone(line)); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// oneLine reads a line of at most limit bytes. It returns io.EOF with the last.
func oneLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > limit+2 { // with the line's end
			return nil, fmt.Errorf("is larger than %s", files.Size(int64(limit)))
		}
		if err == nil && line == nil {
			return piece, nil
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
