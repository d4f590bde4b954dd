// Package sse reads and writes server-sent events, as every format streams its answers.
//
// Read takes a connection to its end. A Splitter is fed with what has arrived and keeps the bytes
// of each event, for what is passed on unchanged. Begin and End write an event.
//
// It promises to take what servers really send, to read no more than it is allowed, and that the
// events of a Splitter are together the bytes it was fed.
//
// It is not for what the events say: each format has a package for that.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrTooLarge is the error of a stream or a line that is longer than it may be.
var ErrTooLarge = errors.New("too large")

// Event is one server-sent event. Its bytes are good until the next one.
type Event struct {
	Name []byte // of the event field; may be empty
	Data []byte // of the data fields, joined by newlines
}

// Done says whether the data of the event is the mark that ends OpenAI's streams.
func (e Event) Done() bool { return string(bytes.TrimSpace(e.Data)) == "[DONE]" }

// Read reads events from r and hands each over, until one says done. It takes
// what servers really send: lines ended by \n, \r\n or \r, comments, data over several
// lines, a byte order mark, a last event without its empty line, and a bare JSON object
// where a data field should be. It reads no more than limit bytes, and calls alive at
// every line. A clean end returns no error.
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
	some       bool // a data field was seen
	each       func(Event) (bool, error)
}

// lines takes a line, or several that are ended by a lone \r.
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

// field cuts a line into the name of its field, which a comment lacks, and the value.
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

// flush hands over the event that was gathered, if any.
func (p *parser) flush() (done bool, err error) {
	if p.some {
		done, err = p.each(Event{Name: p.name, Data: p.data})
	}
	p.name, p.data, p.some = p.name[:0], p.data[:0], false
	return done, err
}

// ReadLine appends to dst the next line of r without its \n, up to limit bytes. The
// last line comes with io.EOF.
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
