// Package eventstream reads and writes the event streams of AWS, in which Bedrock streams its answers.
//
// It promises to read no more than its limit. The frames themselves are read and written by the AWS SDK.
package eventstream

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"parley/internal/ask/wire/fault"
	"parley/internal/kit/sse"
)

// MediaType is the content type of a stream.
const MediaType = "application/vnd.amazon.eventstream"

// The headers of a frame.
const (
	eventType     = ":event-type"
	exceptionType = ":exception-type"
	messageType   = ":message-type"
	contentType   = ":content-type"
)

// Read reads frames from r and calls each with them, until each returns true. The name of an event is its type, or that of
// an exception. It reads at most limit bytes, and calls alive after every frame. A clean end is not an error.
func Read(r io.Reader, limit int64, alive func(), each func(sse.Event) (bool, error)) (done bool, err error) {
	from := &source{r: r}
	bounded := &io.LimitedReader{R: from, N: limit}
	dec := eventstream.NewDecoder()
	var buf []byte
	for {
		var prelude [8]byte
		n, err := io.ReadFull(bounded, prelude[:])
		if err == nil && !plausible(prelude) {
			return false, fault.Malformed("a frame of the event stream is damaged", nil)
		}
		var m eventstream.Message
		if err == nil {
			m, err = dec.Decode(io.MultiReader(bytes.NewReader(prelude[:n]), bounded), buf[:0])
		}
		switch {
		case bounded.N <= 0:
			return false, sse.ErrTooLarge
		case err != nil && from.err == io.EOF: // also in the middle of a frame: the caller knows what is missing
			return false, nil
		case err != nil && from.err != nil:
			return false, from.err
		case err != nil:
			return false, fault.Malformed("a frame of the event stream is damaged", err)
		}
		alive()
		e := sse.Event{Data: m.Payload}
		for _, name := range []string{exceptionType, eventType} {
			if v := m.Headers.Get(name); v != nil {
				e.Name = []byte(v.String())
				break
			}
		}
		if done, err := each(e); done || err != nil {
			return done, err
		}
		buf = m.Payload
	}
}

// plausible reports whether the lengths of a frame and its headers fit. Bedrock's headers are short; very many would take long to read.
func plausible(prelude [8]byte) bool {
	length, headers := int64(binary.BigEndian.Uint32(prelude[:])), int64(binary.BigEndian.Uint32(prelude[4:]))
	return headers <= maxHeaders && 16+headers <= length && length <= maxFrame
}

const maxHeaders, maxFrame = 4 << 10, 24 << 20

// source remembers how its reader ended.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.err = err
	return n, err
}

// Append appends an event.
func Append(b []byte, name string, payload []byte) []byte {
	return frame(b, payload, eventType, name, "event")
}

// AppendException appends an exception, which ends a stream.
func AppendException(b []byte, name string, payload []byte) []byte {
	return frame(b, payload, exceptionType, name, "exception")
}

func frame(b, payload []byte, kind, name, message string) []byte {
	var m eventstream.Message
	m.Headers.Set(kind, eventstream.StringValue(name))
	m.Headers.Set(contentType, eventstream.StringValue("application/json"))
	m.Headers.Set(messageType, eventstream.StringValue(message))
	m.Payload = payload
	buf := bytes.NewBuffer(b)
	if err := eventstream.NewEncoder().Encode(buf, m); err != nil {
		return b // a buffer takes everything, and our headers are short
	}
	return buf.Bytes()
}

// Ends returns the end of every frame of a stream.
func Ends(stream []byte) (ends []int) {
	for at := 0; at+4 <= len(stream); {
		n := int(binary.BigEndian.Uint32(stream[at:]))
		if n < 16 || n > len(stream)-at {
			break
		}
		at += n
		ends = append(ends, at)
	}
	return ends
}
