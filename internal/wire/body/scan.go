package body

// maxDepth is how deep values may be nested. encoding/json stops at 10,000; nothing
// a model is asked comes near.
const maxDepth = 500

// Valid says whether b is one JSON value. It is an order of magnitude faster than
// json.Valid, which matters since schemas and tools go out with every call.
func Valid(b []byte) bool {
	i, ok := skip(b, space(b, 0), 0)
	return ok && space(b, i) == len(b)
}

// IsNull says whether a value is missing or null.
func IsNull(b []byte) bool { return len(b) == 0 || string(b) == "null" }

// Members hands each member of the object b to f, its key without quotes and as
// written, until f says no. It says whether b is an object and f never said no.
func Members(b []byte, f func(key, value []byte) bool) bool {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	if i = space(b, i+1); i < len(b) && b[i] == '}' {
		return true
	}
	for {
		k, ok := skipString(b, i)
		if !ok {
			return false
		}
		key := b[i+1 : k-1]
		if i = space(b, k); i >= len(b) || b[i] != ':' {
			return false
		}
		v := space(b, i+1)
		if i, ok = skip(b, v, 1); !ok || !f(key, b[v:i]) {
			return false
		}
		if i = space(b, i); i >= len(b) {
			return false
		}
		if b[i] == '}' {
			return true
		}
		if b[i] != ',' {
			return false
		}
		i = space(b, i+1)
	}
}

// Elements does for a list what Members does for an object.
func Elements(b []byte, f func(value []byte) bool) bool {
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		return false
	}
	if i = space(b, i+1); i < len(b) && b[i] == ']' {
		return true
	}
	for {
		v := i
		var ok bool
		if i, ok = skip(b, v, 1); !ok || !f(b[v:i]) {
			return false
		}
		if i = space(b, i); i >= len(b) {
			return false
		}
		if b[i] == ']' {
			return true
		}
		if b[i] != ',' {
			return false
		}
		i = space(b, i+1)
	}
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skip returns the place after the value at i.
func skip(b []byte, i, depth int) (int, bool) {
	if i >= len(b) || depth > maxDepth {
		return i, false
	}
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '{':
		return skipInside(b, i, '}', depth)
	case c == '[':
		return skipInside(b, i, ']', depth)
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

// skipInside skips an object or a list, which begins at i and ends with end.
func skipInside(b []byte, i int, end byte, depth int) (int, bool) {
	if i = space(b, i+1); i < len(b) && b[i] == end {
		return i + 1, true
	}
	for {
		var ok bool
		if end == '}' {
			if i, ok = skipString(b, i); !ok {
				return i, false
			}
			if i = space(b, i); i >= len(b) || b[i] != ':' {
				return i, false
			}
			i = space(b, i+1)
		}
		if i, ok = skip(b, i, depth+1); !ok {
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
	for i++; i < len(b); i++ {
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

// skipEscape returns the last place of the escape whose letter is at i.
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
