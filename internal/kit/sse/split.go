package sse

import (
	"bytes"
	"iter"
)

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
