package bulk

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLine is the longest line that is read: a request may carry pictures, but no
// file may make us run out of memory.
const MaxLine = 64 << 20

// errLong is a line over the bound. The reader stands at the next line.
var errLong = errors.New("the line is too long")

// lineReader reads lines of bounded length and knows where they begin.
type lineReader struct {
	r   *bufio.Reader
	max int

	Number int   // of the last line, from 1
	start  int64 // of the last line, in bytes
	at     int64 // of the next line, in bytes
	ended  bool  // the last line had its newline
	buf    []byte
}

func NewLineReader(r io.Reader, maximum int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: maximum}
}

// Next returns the next line without its end, valid until the following call. It
// returns io.EOF after the last, and errLong for a line over the bound.
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
