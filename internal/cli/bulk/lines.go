package bulk

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLine is the maximum length of a line. A request may contain pictures, but no file may exhaust the memory.
const MaxLine = 64 << 20

// errLong is a line over the limit. The reader continues with the next line.
var errLong = errors.New("the line is too long")

// lineReader reads lines of limited length and tracks their offsets.
type lineReader struct {
	r   *bufio.Reader
	max int

	Number int   // number of the last line, from 1
	start  int64 // offset of the last line, in bytes
	at     int64 // offset of the next line, in bytes
	ended  bool  // the last line ended with a newline
	buf    []byte
}

// NewLineReader returns a reader of the lines of r, each of at most maximum bytes.
func NewLineReader(r io.Reader, maximum int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: maximum}
}

// Next returns the next line without its end. The slice is valid until the following call. Next returns io.EOF
// after the last line, and errLong for a line over the limit.
func (l *lineReader) Next() ([]byte, error) {
	l.buf, l.ended, l.start = l.buf[:0], false, l.at
	long := false
	for {
		piece, err := l.r.ReadSlice('\n')
		l.at += int64(len(piece))
		if len(l.buf)+len(piece) > l.max {
			long = true
		}
		if !long {
			l.buf = append(l.buf, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || l.at == l.start) {
			return nil, err
		}
		l.ended = err == nil
		break
	}
	l.Number++
	if long {
		return nil, errLong
	}
	line := bytes.TrimSuffix(bytes.TrimSuffix(l.buf, []byte("\n")), []byte("\r"))
	if l.Number == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line, nil
}
