package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"parley/internal/files"
)

// lineError is about one line of the input: the others go on.
type lineError struct {
	name string // of the input
	line int
	id   json.RawMessage // nil if the line has none that can be read
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.name, e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }

// jsonl is a source that reads a request a line.
type jsonl struct {
	name  string
	lines *lineReader
	defs  defaults
	close func() error

	size int64        // in bytes; 0 if not known
	read atomic.Int64 // bytes so far, for the progress line
}

// openJSONL opens a file of requests, or stdin for "-".
func openJSONL(stdin io.Reader, path string, defs defaults, stop <-chan struct{}) (*jsonl, error) {
	if path == "-" {
		r := newPatientReader(stdin, stop)
		return &jsonl{
			name: "stdin", lines: newLineReader(r, maxLine), defs: defs,
			close: func() error { return nil },
		}, nil
	}
	f, err := files.Open(path)
	if errors.Is(err, files.ErrNotRegular) {
		return nil, usage("%w: for requests from a pipe use --jsonl - and standard input", err)
	}
	if err != nil {
		return nil, asUsage(err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, asUsage(errors.Join(err, f.Close()))
	}
	return &jsonl{name: path, lines: newLineReader(f, maxLine), defs: defs, close: f.Close, size: info.Size()}, nil
}

func (j *jsonl) next() (question, error) {
	for {
		line, err := j.lines.next()
		j.read.Store(j.lines.at)
		n := j.lines.number
		if errors.Is(err, errLong) {
			return question{}, &lineError{name: j.name, line: n, err: fmt.Errorf("%w: at most %d MiB", errLong, j.lines.max>>20)}
		}
		if err != nil {
			return question{}, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		q, err := j.defs.parse(line, n)
		if err != nil {
			return question{}, &lineError{name: j.name, line: n, id: q.id, err: err}
		}
		q.name, q.line = j.name, n
		return q, nil
	}
}

// share returns how much of the input was read, from 0 to 1; negative if its size
// is not known.
func (j *jsonl) share() float64 {
	if j.size <= 0 {
		return -1
	}
	return float64(j.read.Load()) / float64(j.size)
}

// single is a source of one question.
type single struct {
	q    question
	over bool
}

func (s *single) next() (question, error) {
	if s.over {
		return question{}, io.EOF
	}
	s.over = true
	return s.q, nil
}
