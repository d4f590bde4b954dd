package format

import (
	"bytes"

	"parley/internal/dialect/wire"
	"parley/internal/dialect/wire/body"
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

// Parse reads an event. One without data, such as a comment, has none.
func Parse(event []byte) (e wire.Event) {
	some := false
	for line := range bytes.Lines(event) {
		line = bytes.TrimRight(line, "\r\n")
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
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

// Ends says whether an event tells that the answer is over: what follows it is only
// bookkeeping. choices is how many answers the stream carries.
func (a API) Ends(e wire.Event, choices int) bool {
	switch a {
	case Chat:
		return choices <= 1 && saysFinish(e.Data, `"finish_reason"`)
	case Messages:
		return saysFinish(e.Data, `"stop_reason"`)
	default:
		return false
	}
}

// Last says whether an event is the last of a stream.
func (a API) Last(e wire.Event) bool {
	switch string(e.Name) {
	case "message_stop", "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return true
	}
	return string(bytes.TrimSpace(e.Data)) == "[DONE]"
}

// Fails says whether an event tells that the answer failed.
func (a API) Fails(e wire.Event) bool {
	if string(e.Name) == "error" {
		return true
	}
	return bytes.Contains(e.Data, []byte(`"error"`)) && (member(e.Data, "error") != nil || str(e.Data, "type") == "error")
}

// saysFinish says whether a member of that name has a string for its value. Inside of a
// text its quotes would be escaped, so that it cannot be taken for what a model said.
func saysFinish(b []byte, name string) bool {
	for {
		i := bytes.Index(b, []byte(name))
		if i < 0 {
			return false
		}
		b = b[i+len(name):]
		rest := bytes.TrimLeft(b, " \t")
		if value, ok := bytes.CutPrefix(rest, []byte{':'}); ok && bytes.HasPrefix(bytes.TrimLeft(value, " \t"), []byte{'"'}) {
			return true
		}
	}
}

// OnlyUsage says whether an event of a chat completion holds what was used and nothing
// else: a client that did not ask for it does not expect it.
func OnlyUsage(e wire.Event) bool {
	if !bytes.Contains(e.Data, []byte(`"usage"`)) {
		return false
	}
	choices := member(e.Data, "choices")
	return choices != nil && member(e.Data, "usage") != nil && body.Elements(choices, func([]byte) bool { return false })
}
