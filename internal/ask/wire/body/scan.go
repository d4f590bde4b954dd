package body

import "unicode/utf8"

// maxDepth is the maximum nesting of values. encoding/json allows 10,000, but no request needs it.
const maxDepth = 500

// Valid reports whether b is one JSON value. It is ten times faster than json.Valid, which matters
// because schemas and tools are sent with every call.
func Valid(b []byte) bool {
	i, ok := skip(b, space(b, 0), 0)
	return ok && space(b, i) == len(b)
}

// IsNull reports whether a value is missing or null.
func IsNull(b []byte) bool { return len(b) == 0 || string(b) == "null" }

// Members calls f with each member of the object b, until f returns false. Keys have no quotes and
// are not decoded. It reports whether b is an object and f always returned true.
func Members(b []byte, f func(key, value []byte) bool) bool {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	_, ok := members(b, i, f)
	return ok
}

// Object calls f with each member of b, and reports whether b is one object and f always returned
// true. It refuses names that encoding/json could take for others: with an escape, a capital, or a
// character that is not ASCII.
func Object(b []byte, f func(key, value []byte) bool) bool {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	end, ok := members(b, i, func(key, value []byte) bool {
		for _, c := range key {
			if c == '\\' || c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
				return false
			}
		}
		return f(key, value)
	})
	return ok && space(b, end) == len(b)
}

// members calls f with the members of the object at i and returns its end.
func members(b []byte, i int, f func(key, value []byte) bool) (int, bool) {
	return inside(b, i, '}', 0, func(key []byte, i int) (int, bool) {
		end, ok := skip(b, i, 1)
		return end, ok && f(key, b[i:end])
	})
}

// Elements does for a list what Members does for an object.
func Elements(b []byte, f func(value []byte) bool) bool {
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		return false
	}
	_, ok := inside(b, i, ']', 0, func(_ []byte, i int) (int, bool) {
		end, ok := skip(b, i, 1)
		return end, ok && f(b[i:end])
	})
	return ok
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skip returns the end of the value at i.
func skip(b []byte, i, depth int) (int, bool) {
	if i >= len(b) || depth > maxDepth {
		return i, false
	}
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '{':
		return inside(b, i, '}', depth, nil)
	case c == '[':
		return inside(b, i, ']', depth, nil)
	case c == 't':
		return skipWord(b, i, "true")
	case c == 'f':
		return skipWord(b, i, "false")
	case c == 'n':
		return skipWord(b, i, "null")
	default:
		return skipNumber(b, i)
	}
}

// inside reads an object or a list, which begins at i and ends with end, and returns the position after end. If read is
// set, it reads each value instead of skip: it gets the name, which is nil in a list, and the position, and returns its end.
func inside(b []byte, i int, end byte, depth int, read func(key []byte, i int) (int, bool)) (int, bool) {
	if i = space(b, i+1); i < len(b) && b[i] == end {
		return i + 1, true
	}
	for {
		var key []byte
		var ok bool
		if end == '}' {
			from := i
			if i, ok = skipString(b, i); !ok {
				return i, false
			}
			key = b[from+1 : i-1]
			if i = space(b, i); i >= len(b) || b[i] != ':' {
				return i, false
			}
			i = space(b, i+1)
		}
		if read == nil {
			i, ok = skip(b, i, depth+1)
		} else {
			i, ok = read(key, i)
		}
		if !ok {
			return i, false
		}
		if i = space(b, i); i >= len(b) {
			return i, false
		}
		if b[i] == end {
			return i + 1, true
		}
		if b[i] != ',' {
			return i, false
		}
		i = space(b, i+1)
	}
}

func skipString(b []byte, i int) (int, bool) {
	if i >= len(b) || b[i] != '"' {
		return i, false
	}
	for i = plain(b, i+1); i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, true
		case c < ' ':
			return i, false
		case c == '\\':
			n, ok := skipEscape(b, i+1)
			if !ok {
				return i, false
			}
			i = n
		}
	}
	return i, false
}

// skipEscape returns the last byte of the escape whose letter is at i.
func skipEscape(b []byte, i int) (int, bool) {
	if i >= len(b) {
		return i, false
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i, true
	case 'u':
		if i+4 >= len(b) {
			return i, false
		}
		for _, c := range b[i+1 : i+5] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return i, false
			}
		}
		return i + 4, true
	}
	return i, false
}

func skipWord(b []byte, i int, word string) (int, bool) {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return i, false
	}
	return i + len(word), true
}

func skipNumber(b []byte, i int) (int, bool) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	start := i
	i = digits(b, i)
	if i == start || i-start > 1 && b[start] == '0' {
		return i, false
	}
	if i < len(b) && b[i] == '.' {
		start = i + 1
		if i = digits(b, start); i == start {
			return i, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start = i
		if i = digits(b, i); i == start {
			return i, false
		}
	}
	return i, true
}

func digits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// ObjectEnd finds the end of a JSON object that arrives in pieces. It does not check what is inside.
type ObjectEnd struct {
	depth         int
	quoted, after bool // in a string, and after a backslash in it
	found         bool
}

// Add adds a piece.
func (o *ObjectEnd) Add(piece string) {
	for i := range len(piece) {
		switch c := piece[i]; {
		case o.after:
			o.after = false
		case o.quoted:
			o.after, o.quoted = c == '\\', c != '"'
		case c == '"':
			o.quoted = true
		case c == '{' || c == '[':
			o.depth++
		case c == '}' || c == ']':
			o.depth--
			o.found = o.found || o.depth == 0
		}
	}
}

// Found reports whether the end has arrived.
func (o *ObjectEnd) Found() bool { return o.found }
