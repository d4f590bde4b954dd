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
// bookkeeping. Where a stream carries several answers, each has such an event.
func (a API) Ends(e wire.Event) bool {
	switch a {
	case Chat:
		return saysFinish(e.Data, `"finish_reason"`)
	case Messages:
		return saysFinish(e.Data, `"stop_reason"`)
	default:
		return false
	}
}

// Last says whether an event is the last of a stream.
func (a API) Last(e wire.Event) bool {
	name := string(e.Name)
	if name == "" && a == Responses {
		name = str(e.Data, "type") // some servers leave the other one out
	}
	switch name {
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

// saysFinish says whether a member of that name has a text for its value. Inside of a
// text its quotes would be escaped, so that it cannot be taken for what a model said.
func saysFinish(b []byte, name string) bool {
	for {
		i := bytes.Index(b, []byte(name))
		if i < 0 {
			return false
		}
		b = b[i+len(name):]
		rest := bytes.TrimLeft(b, " \t")
		if value, ok := bytes.CutPrefix(rest, []byte{':'}); ok {
			if value = bytes.TrimLeft(value, " \t"); len(value) > 1 && value[0] == '"' && value[1] != '"' {
				return true
			}
		}
	}
}

// Whole returns the whole answer that the last event of a stream has in it, or nil.
func (a API) Whole(e wire.Event) []byte {
	if a != Responses || !a.Last(e) {
		return nil
	}
	return member(e.Data, "response")
}

// MoveMembers returns the events held with those members of e added to the last of them that
// it does not have, each to the byte. What a chat completion's chunk says of its usage stays
// out. ok is false where there is nothing to add, or no event to add it to.
func MoveMembers(held []byte, e wire.Event) (_ []byte, ok bool) {
	all := Splitter{}
	all.Feed(held)
	var last []byte // the members of the last event that has some
	at, end := 0, -1
	for raw, ok := all.Next(); ok; raw, ok = all.Next() {
		at += len(raw)
		if data := Parse(raw).Data; len(data) > 0 && data[0] == '{' {
			last, end = data, at-len(raw)+bytes.LastIndexByte(raw, '}')
		}
	}
	if end < 0 {
		return held, false
	}
	more := bytes.Clone(held[:end])
	body.Members(e.Data, func(key, value []byte) bool {
		if string(key) != "usage" && !has(last, string(key)) {
			more = append(append(more, ',', '"'), key...)
			more = append(append(more, '"', ':'), value...)
		}
		return true
	})
	return append(more, held[end:]...), len(more) > end
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
