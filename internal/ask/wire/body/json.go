// Package body writes and scans JSON without reflection: with encoding/json, a call through the gateway takes 1.2 to 3
// times the CPU (docs/decisions/dependencies.md). It also puts JSON Schemas into the forms that providers accept.
//
// It promises to append valid JSON whatever the text, if Valid accepts the raw JSON that it is
// given. Invalid UTF-8 is replaced.
//
// It does not know the fields of any format.
package body

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"parley/llm"
)

// The functions below append JSON to a buffer. Each adds a comma first where one is needed.

// Open begins an object or a list: c is { or [.
func Open(b []byte, c byte) []byte { return append(comma(b), c) }

// Key appends the name of a member, which must need no escaping.
func Key(b []byte, key string) []byte {
	b = append(comma(b), '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

// Str appends a member whose value is a string.
func Str(b []byte, key, value string) []byte { return String(Key(b, key), value) }

// Int appends a member whose value is an integer.
func Int(b []byte, key string, value int64) []byte {
	return strconv.AppendInt(Key(b, key), value, 10)
}

// Bool appends a member whose value is true or false.
func Bool(b []byte, key string, value bool) []byte { return strconv.AppendBool(Key(b, key), value) }

// Float appends a member whose value is a number. It omits NaN and infinities.
func Float(b []byte, key string, value float64) []byte {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return b
	}
	return strconv.AppendFloat(Key(b, key), value, 'g', -1, 64)
}

// Raw appends a member whose value is raw JSON.
func Raw(b []byte, key string, value []byte) []byte { return append(Key(b, key), value...) }

// Nullable appends a member whose value is a string, or null if it is empty.
func Nullable(b []byte, key, value string) []byte {
	if value == "" {
		return append(Key(b, key), "null"...)
	}
	return Str(b, key, value)
}

// Ints appends a list of integers.
func Ints(b []byte, key string, values []int) []byte {
	b = append(Key(b, key), '[')
	for i, n := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, ']')
}

// Strings appends a list of strings.
func Strings(b []byte, key string, values []string) []byte {
	b = Open(Key(b, key), '[')
	for _, v := range values {
		b = String(b, v)
	}
	return append(b, ']')
}

// Extra appends the members of a request's Extra, sorted by name. It is an error if a name is one of
// the format's own, or a value is not JSON.
func Extra(b []byte, req *llm.Request, own ...string) ([]byte, error) {
	if len(req.Extra) == 0 {
		return b, nil
	}
	for _, k := range slices.Sorted(maps.Keys(req.Extra)) {
		if slices.Contains(own, k) {
			return b, fmt.Errorf("extra: %s is written by the dialect and cannot be given", k)
		}
		if !Valid(req.Extra[k]) {
			return b, fmt.Errorf("extra: the value of %s is not JSON", k)
		}
		b = append(String(b, k), ':')
		b = append(b, req.Extra[k]...)
	}
	return b, nil
}

// String appends s as a JSON string. Invalid UTF-8 becomes the replacement character, as in
// encoding/json.
func String(b []byte, s string) []byte {
	b = append(comma(b), '"')
	start := 0
	for i := plain(s, 0); i < len(s); i = plain(s, i) {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			b = escape(b, c)
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(b, s[start:i]...)
			b = append(b, "\ufffd"...)
			i++
			start = i
			continue
		}
		i += n
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// Text is String without a comma.
func Text(b []byte, s string) []byte { return append(b, String(b[len(b):], s)...) }

// plain skips bytes of s that need no escaping, from i on. It looks at eight bytes at once, since
// prompts are long, and stops before the first eight bytes that may need it.
func plain[T string | []byte](s T, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// The top bit of a byte is set if it is not ASCII, a control character, a quote or a
		// backslash. Borrows between bytes may set others, which only costs a second look.
		if (w|(w-ones*' ')|(quote-ones)|(slash-ones))&tops != 0 {
			break
		}
	}
	return i
}

const hex = "0123456789abcdef"

func escape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\t':
		return append(b, '\\', 't')
	case '\r':
		return append(b, '\\', 'r')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

func comma(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	switch b[len(b)-1] {
	case '{', '[', ':', ',':
		return b
	}
	return append(b, ',')
}
