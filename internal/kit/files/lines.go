package files

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// Lines reads lines of a file by their offsets. It is fast if most are near the one before.
type Lines struct {
	f    io.ReaderAt
	end  int64 // of the file
	from int64 // offset of buf
	buf  []byte
}

// NewLines returns the lines of f, which has end bytes.
func NewLines(f io.ReaderAt, end int64) *Lines { return &Lines{f: f, end: end} }

// readAround is how much Lines reads before and after a line, if the line is not longer.
const readAround = 256 << 10

// At returns the line at off with its newline. It is valid until the next call.
func (l *Lines) At(off int64) ([]byte, error) {
	for ahead := int64(readAround); ; ahead *= 2 {
		if at := off - l.from; at >= 0 && at < int64(len(l.buf)) {
			if n := bytes.IndexByte(l.buf[at:], '\n'); n >= 0 {
				return l.buf[at : at+int64(n)+1], nil
			}
		}
		if ahead > 2*max(l.end-off, readAround) {
			return nil, io.ErrUnexpectedEOF
		}
		l.from = max(0, off-readAround)
		size := min(off-l.from+ahead, l.end-l.from)
		l.buf = slices.Grow(l.buf[:0], int(max(0, size)))[:max(0, size)]
		if n, err := l.f.ReadAt(l.buf, l.from); n < len(l.buf) {
			l.buf = l.buf[:n]
			return nil, err
		}
	}
}

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
