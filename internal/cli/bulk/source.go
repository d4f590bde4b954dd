package bulk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"parley/internal/cli/exit"
	"parley/internal/kit/files"
)

// lineError is about one line of the input. The other lines are still read.
type lineError struct {
	name string // of the input
	line int
	id   json.RawMessage // nil if the line has no readable id
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.name, e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }

// MaxLine is the maximum length of a line. A request may contain pictures, but no file may exhaust the memory.
const MaxLine = 64 << 20

// File is a source that reads one request per line.
type File struct {
	Name  string
	Lines *files.LineReader
	Defs  Defaults
	Close func() error

	size int64        // in bytes; 0 if not known
	read atomic.Int64 // bytes read so far, for the progress line
}

// OpenJSONL opens a file of requests, or stdin for "-".
func OpenJSONL(stdin io.Reader, path string, defs Defaults, stop <-chan struct{}) (*File, error) {
	if path == "-" {
		r := exit.NewReader(stdin, stop)
		return &File{
			Name: "stdin", Lines: files.NewLineReader(r, MaxLine), Defs: defs,
			Close: func() error { return nil },
		}, nil
	}
	f, err := files.Open(path)
	if errors.Is(err, files.ErrNotRegular) {
		return nil, exit.Usagef("%w: for requests from a pipe use --jsonl - and standard input", err)
	}
	if err != nil {
		return nil, exit.AsUsage(err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, exit.AsUsage(errors.Join(err, f.Close()))
	}
	return &File{Name: path, Lines: files.NewLineReader(f, MaxLine), Defs: defs, Close: f.Close, size: info.Size()}, nil
}

// Next returns the next question of the file, or io.EOF.
func (j *File) Next() (Question, error) {
	for {
		line, err := j.Lines.Next()
		j.read.Store(j.Lines.At)
		n := j.Lines.Number
		if errors.Is(err, files.ErrLongLine) {
			return Question{}, &lineError{name: j.Name, line: n, err: fmt.Errorf("%w: at most %d MiB", files.ErrLongLine, j.Lines.Max>>20)}
		}
		if err != nil {
			return Question{}, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		q, err := j.Defs.parse(line, n)
		if err != nil {
			return Question{}, &lineError{name: j.Name, line: n, id: q.ID, err: err}
		}
		q.name, q.Line = j.Name, n
		return q, nil
	}
}

// Share returns the fraction of the input that was read, from 0 to 1, or a negative number if the size is not
// known.
func (j *File) Share() float64 {
	if j.size <= 0 {
		return -1
	}
	return float64(j.read.Load()) / float64(j.size)
}
