// Package sse reads and writes server-sent events, in which every format streams its answers.
//
// Read reads a connection to its end. A Splitter gets the bytes as they arrive and returns the
// bytes of each event, for a relay. Begin and End write an event.
//
// It promises to accept what real servers send, and to read no more than the limit. The events of
// a Splitter together are exactly its input.
//
// It does not read the data of events: the packages of the formats do.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
)

// ErrTooLarge is the error of a stream or a line that exceeds its limit.
var ErrTooLarge = errors.New("too large")

// Event is one server-sent event. Its bytes are valid until the next event.
type Event struct {
	Name []byte // the event field; may be empty
	Data []byte // the data fields, joined by newlines
}

// Done reports whether the event is [DONE], which ends OpenAI's streams.
func (e Event) Done() bool { return string(bytes.TrimSpace(e.Data)) == "[DONE]" }

// Read reads events from r and calls each with them, until each returns true. It accepts what real
// servers send: lines that end with \n, \r\n or \r, comments, data in several lines, a byte order
// mark, a last event without its empty line, and a JSON object without a data field. It reads at
// most limit bytes, and calls alive after every line. A clean end is not an error.
func Read(r *bufio.Reader, limit int64, alive func(), each func(Event) (bool, error)) (done bool, err error) {
	p := parser{each: each}
	var raw []byte
	for first := true; ; first = false {
		raw, err = ReadLine(r, raw[:0], limit)
		limit -= int64(len(raw)) + 1
		if first {
			raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
		}
		if err != nil && err != io.EOF {
			return false, err
		}
		if done, e := p.lines(raw); done || e != nil {
			return done, e
		}
		if err == io.EOF {
			return p.flush()
		}
		alive()
	}
}

type parser struct {
	name, data []byte
	some       bool // there was a data field
	each       func(Event) (bool, error)
}

// lines parses a line, or several lines that end with a lone \r.
func (p *parser) lines(raw []byte) (bool, error) {
	for {
		i := bytes.IndexByte(raw, '\r')
		if i < 0 {
			return p.line(raw)
		}
		if done, err := p.line(raw[:i]); done || err != nil {
			return done, err
		}
		if raw = raw[i+1:]; len(raw) == 0 {
			return false, nil // it was \r\n
		}
	}
}

func (p *parser) line(b []byte) (bool, error) {
	if len(b) == 0 {
		return p.flush()
	}
	if b[0] == '{' {
		p.add(b)
		return false, nil
	}
	switch name, value := field(b); string(name) {
	case "data":
		p.add(value)
	case "event":
		p.name = append(p.name[:0], value...)
	}
	return false, nil
}

// field splits a line into the name and the value of its field. A comment has no name.
func field(line []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(line, []byte{':'})
	return name, bytes.TrimPrefix(value, []byte{' '})
}

func (p *parser) add(b []byte) {
	if p.some {
		p.data = append(p.data, '\n')
	}
	p.some = true
	p.data = append(p.data, b...)
}

// flush ends the current event and calls each with it, if it has data.
func (p *parser) flush() (done bool, err error) {
	if p.some {
		done, err = p.each(Event{Name: p.name, Data: p.data})
	}
	p.name, p.data, p.some = p.name[:0], p.data[:0], false
	return done, err
}

// ReadLine appends the next line of r to dst without its \n, up to limit bytes. The last line
// comes with io.EOF.
func ReadLine(r *bufio.Reader, dst []byte, limit int64) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		if int64(len(dst)+len(part)) > limit {
			return dst, ErrTooLarge
		}
		dst = append(dst, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if n := len(dst); err == nil && n > 0 {
			dst = dst[:n-1]
		}
		return dst, err
	}
}

// Splitter splits a stream into the bytes of its events. The zero value is ready to use.
type Splitter struct {
	buf  []byte
	from int // where the next event begins
	at   int // the next byte to look at
}

// Add adds bytes of the stream. It overwrites what Next returned before.
func (s *Splitter) Add(p []byte) {
	if s.from > 0 {
		s.buf = s.buf[:copy(s.buf, s.buf[s.from:])]
		s.at -= s.from
		s.from = 0
	}
	s.buf = append(s.buf, p...)
}

// Next returns the bytes of the next complete event, including the empty line at its end.
func (s *Splitter) Next() (event []byte, ok bool) {
	for {
		end := bytes.IndexByte(s.buf[s.at:], '\n')
		if end < 0 {
			return nil, false
		}
		line := bytes.TrimSuffix(s.buf[s.at:s.at+end], []byte{'\r'})
		s.at += end + 1
		if len(line) == 0 {
			event, s.from = s.buf[s.from:s.at], s.at
			return event, true
		}
	}
}

// Rest returns the bytes after the last complete event.
func (s *Splitter) Rest() []byte { return s.buf[s.from:] }

// Len returns the number of bytes that Next has not returned.
func (s *Splitter) Len() int { return len(s.buf) - s.from }

// Split returns the bytes of each event of a whole stream, without copying them. The last one may
// be incomplete.
func Split(stream []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := Splitter{buf: stream}
		for {
			raw, ok := s.Next()
			if !ok {
				if raw = s.Rest(); len(raw) > 0 {
					yield(raw)
				}
				return
			}
			if !yield(raw) {
				return
			}
		}
	}
}

// Ends returns the end of each event in a stream that Begin and End wrote.
func Ends(stream []byte) []int {
	ends := make([]int, 0, len(stream)/128+8)
	for at := 0; at < len(stream); {
		if n := bytes.Index(stream[at:], []byte("\n\n")); n >= 0 {
			at += n + 2
		} else {
			at = len(stream)
		}
		ends = append(ends, at)
	}
	return ends
}

// Parse parses the bytes of one event. Its data is empty if it is only a comment.
func Parse(event []byte) (e Event) {
	some := false
	for line := range bytes.Lines(event) {
		switch name, value := field(bytes.TrimRight(line, "\r\n")); string(name) {
		case "event":
			e.Name = value
		case "data":
			if !some {
				e.Data, some = value, true
				continue
			}
			e.Data = append(append(append([]byte(nil), e.Data...), '\n'), value...)
		}
	}
	return e
}

// Begin appends the beginning of an event, up to its data. The name may be empty.
func Begin(b []byte, name string) []byte {
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	return append(b, "data: "...)
}

// End appends the end of an event.
func End(b []byte) []byte { return append(b, '\n', '\n') }
