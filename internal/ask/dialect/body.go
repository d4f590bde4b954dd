package dialect

import (
	"io"

	"parley/internal/ask/batch"
)

// stream writes a draft while it is read: a head, the lines, and a tail.
type stream struct {
	head, tail string
	between    string // lines
	key        string
	lines      []batch.Request
	write      func(dst []byte, l *batch.Request) ([]byte, error) // appends a line
	extra      int                                                // bytes of a line without its ID and body

	next  int // line; len(lines): the tail; beyond: the end
	begun bool
	buf   []byte // written and not read
	at    int
}

// size returns the number of bytes in all.
func (s *stream) size() int64 {
	n := int64(len(s.head) + len(s.tail) + len(s.between)*max(0, len(s.lines)-1))
	for i := range s.lines {
		n += int64(len(batch.CustomID(s.key, s.lines[i].ID)) + s.lines[i].Bytes + s.extra)
	}
	return n
}

// reader returns a reader of the whole stream.
func (s *stream) reader() io.ReadCloser {
	c := *s
	c.next, c.begun, c.buf, c.at = 0, false, nil, 0
	return io.NopCloser(&c)
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for s.at == len(s.buf) {
		if s.begun && s.next > len(s.lines) {
			return 0, io.EOF
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.buf[s.at:])
	s.at += n
	return n, nil
}

func (s *stream) fill() error {
	s.buf, s.at = s.buf[:0], 0
	if !s.begun {
		s.begun = true
		s.buf = append(s.buf, s.head...)
	}
	// Several lines at once: a write to a connection costs more than a line.
	for ; s.next < len(s.lines) && len(s.buf) < 32<<10; s.next++ {
		if s.next > 0 {
			s.buf = append(s.buf, s.between...)
		}
		var err error
		if s.buf, err = s.write(s.buf, &s.lines[s.next]); err != nil {
			return err
		}
	}
	if s.next == len(s.lines) && len(s.buf) < 32<<10 {
		s.next++
		s.buf = append(s.buf, s.tail...)
	}
	return nil
}
