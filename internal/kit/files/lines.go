package files

import (
	"bytes"
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

// around is how much Lines reads before and after a line, if the line is not longer.
const around = 256 << 10

// At returns the line at off with its newline. It is valid until the next call.
func (l *Lines) At(off int64) ([]byte, error) {
	for ahead := int64(around); ; ahead *= 2 {
		if at := off - l.from; at >= 0 && at < int64(len(l.buf)) {
			if n := bytes.IndexByte(l.buf[at:], '\n'); n >= 0 {
				return l.buf[at : at+int64(n)+1], nil
			}
		}
		if ahead > 2*max(l.end-off, around) {
			return nil, io.ErrUnexpectedEOF
		}
		l.from = max(0, off-around)
		size := min(off-l.from+ahead, l.end-l.from)
		l.buf = slices.Grow(l.buf[:0], int(max(0, size)))[:max(0, size)]
		if n, err := l.f.ReadAt(l.buf, l.from); n < len(l.buf) {
			l.buf = l.buf[:n]
			return nil, err
		}
	}
}
