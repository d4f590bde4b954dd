package files

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrLongLine is a line over the limit. The reader continues with the next line.
var ErrLongLine = errors.New("the line is too long")

// LineReader reads lines of limited length and tracks their offsets.
type LineReader struct {
	Max    int   // bytes of a line
	Number int   // number of the last line, from 1
	Start  int64 // offset of the last line, in bytes
	At     int64 // offset of the next line, in bytes
	Ended  bool  // the last line ended with a newline

	r   *bufio.Reader
	buf []byte
}

// NewLineReader returns a reader of the lines of r, each of at most maximum bytes.
func NewLineReader(r io.Reader, maximum int) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, 64<<10), Max: maximum}
}

// Next returns the next line without its end. The slice is valid until the following call. Next returns io.EOF
// after the last line, and ErrLongLine for a line over the limit.
func (l *LineReader) Next() ([]byte, error) {
	l.buf, l.Ended, l.Start = l.buf[:0], false, l.At
	long := false
	for {
		piece, err := l.r.ReadSlice('\n')
		l.At += int64(len(piece))
		if len(l.buf)+len(piece) > l.Max {
			long = true
		}
		if !long {
			l.buf = append(l.buf, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || l.At == l.Start) {
			return nil, err
		}
		l.Ended = err == nil
		break
	}
	l.Number++
	if long {
		return nil, ErrLongLine
	}
	line := bytes.TrimSuffix(bytes.TrimSuffix(l.buf, []byte("\n")), []byte("\r"))
	if l.Number == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line, nil
}
