package llm

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// plainMessage reads a message that has only a role and a text: most do, and encoding/json would read the text seven
// times. ok is false for everything else, which takes the slow path.
func plainMessage(b []byte) (m Message, ok bool) {
	r := plainReader{b}
	var role, text []byte
	escaped, said := false, false
	if !r.take('{') {
		return m, false
	}
	for {
		key, _, fine := r.text()
		if !fine || !r.take(':') {
			return m, false
		}
		value, slashes, fine := r.text()
		switch {
		case !fine:
			return m, false
		case string(key) == "role" && role == nil && !slashes:
			role = value
		case string(key) == "content" && !said:
			text, escaped, said = value, slashes, true
		default:
			return m, false
		}
		if r.take('}') {
			break
		}
		if !r.take(',') {
			return m, false
		}
	}
	if r.skip(); len(r.rest) > 0 || !utf8.Valid(text) {
		return m, false
	}
	switch string(role) {
	case "system", "user", "assistant":
		m.Role = Role(role)
	default:
		return m, false
	}
	if escaped {
		if text, ok = unescaped(text); !ok {
			return m, false
		}
	}
	if len(text) > 0 {
		m.Parts = []Part{{Text: string(text)}}
	}
	return m, true
}

// plainReader reads JSON.
type plainReader struct{ rest []byte }

func (r *plainReader) skip() { r.rest = bytes.TrimLeft(r.rest, " \t\r\n") }

func (r *plainReader) take(c byte) bool {
	if r.skip(); len(r.rest) == 0 || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// text reads a string, and reports whether it contains escapes.
func (r *plainReader) text() (raw []byte, escaped, ok bool) {
	if !r.take('"') {
		return nil, false, false
	}
	for i := 0; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == '"':
			raw, r.rest = r.rest[:i], r.rest[i+1:]
			return raw, escaped, true
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			return nil, false, false
		}
	}
	return nil, false, false
}

// unescaped resolves the escapes of one letter.
func unescaped(raw []byte) (text []byte, ok bool) {
	const letters, mean = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	text = make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '\\' {
			i++
			at := strings.IndexByte(letters, raw[i])
			if at < 0 {
				return nil, false
			}
			c = mean[at]
		}
		text = append(text, c)
	}
	return text, true
}
