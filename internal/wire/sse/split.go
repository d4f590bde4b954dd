package sse

import (
	"bytes"
	"iter"
)

// Splitter takes a stream apart into events, each with the bytes it came in. The zero
// value is ready.
type Splitter struct {
	buf  []byte
	from int // where the next event begins
	at   int // how far it was looked for its end
}

// Feed adds bytes of the stream. What Next returned before is not to be used any more.
func (s *Splitter) Feed(p []byte) {
	if s.from > 0 {
		s.buf = s.buf[:copy(s.buf, s.buf[s.from:])]
		s.at -= s.from
		s.from = 0
	}
	s.buf = append(s.buf, p...)
}

// Next returns the bytes of the next whole event, with the empty line that ends it.
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

// Rest returns what is left of a stream that ended.
func (s *Splitter) Rest() []byte { return s.buf[s.from:] }

// Len is how many bytes are held.
func (s *Splitter) Len() int { return len(s.buf) - s.from }

// Split returns the bytes of each event of a whole stream, without copying them. The last may
// lack the empty line that ends it.
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

// Marks returns where each event of a whole stream ends that was written with Begin and End.
func Marks(stream []byte) []int {
	marks := make([]int, 0, len(stream)/128+8)
	for at := 0; at < len(stream); {
		if n := bytes.Index(stream[at:], []byte("\n\n")); n >= 0 {
			at += n + 2
		} else {
			at = len(stream)
		}
		marks = append(marks, at)
	}
	return marks
}

// Parse reads the bytes of one event. One without data, such as a comment, has none.
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

// Begin appends the head of an event, up to its data. It has no name where name is empty.
func Begin(b []byte, name string) []byte {
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	return append(b, "data: "...)
}

// End appends what ends an event.
func End(b []byte) []byte { return append(b, '\n', '\n') }
