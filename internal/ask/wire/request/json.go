package request

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/internal/ask/wire/body"
	"parley/llm"
)

// The functions below decode a value and report whether it has the right type. They use no
// reflection, since every call of a conversation reads the whole conversation again.

// Text decodes a string.
func Text(v []byte, to *string) bool {
	if len(v) < 2 || v[0] != '"' {
		return false
	}
	in := v[1 : len(v)-1]
	at := bytes.IndexByte(in, '\\')
	if !utf8.Valid(in) {
		return json.Unmarshal(v, to) == nil
	}
	if at < 0 {
		*to = string(in)
		return true
	}
	var out strings.Builder
	out.Grow(len(in))
	for ; at >= 0; at = bytes.IndexByte(in, '\\') {
		c, ok := unescape(in[at+1:])
		if !ok {
			return json.Unmarshal(v, to) == nil
		}
		out.Write(in[:at])
		out.WriteByte(c)
		in = in[at+2:]
	}
	out.Write(in)
	*to = out.String()
	return true
}

// unescape returns the character that follows a backslash. It leaves \u to others.
func unescape(b []byte) (c byte, ok bool) {
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if len(b) == 0 {
		return 0, false
	}
	i := strings.IndexByte(from, b[0])
	if i < 0 {
		return 0, false
	}
	return to[i], true
}

// Flag decodes a boolean.
func Flag(v []byte, to *bool) bool {
	switch string(v) {
	case "true", "false":
		*to = v[0] == 't'
		return true
	}
	return false
}

// Whole decodes an integer.
func Whole(v []byte, to *int) bool {
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return false
	}
	*to = n
	return true
}

// Integer decodes an integer into a pointer.
func Integer[T int | int64](v []byte, to **T) bool {
	var n int
	if !Whole(v, &n) {
		return false
	}
	at := T(n)
	*to = &at
	return true
}

// Number decodes a number into a pointer.
func Number(v []byte, to **float64) bool {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || len(v) > 0 && (v[0] < '0' || v[0] > '9') && v[0] != '-' {
		return false
	}
	*to = &f
	return true
}

// Texts decodes a list of strings, or a single string.
func Texts(v []byte, to *[]string) bool {
	var one string
	if Text(v, &one) {
		*to = []string{one}
		return true
	}
	var all []string
	ok := body.Elements(v, func(e []byte) bool {
		var s string
		good := Text(e, &s)
		all = append(all, s)
		return good
	})
	if ok {
		*to = all
	}
	return ok
}

// Raw returns a copy of a value.
func Raw(v []byte) json.RawMessage { return append(json.RawMessage(nil), v...) }

// Member returns a member of an object, or nil.
func Member(b []byte, name string) []byte {
	var found []byte
	body.Members(b, func(key, value []byte) bool {
		if string(key) == name && string(value) != "null" {
			found = value
		}
		return true
	})
	return found
}

// String returns the string v, or "" where v is not a string.
func String(v []byte) (s string) {
	Text(v, &s)
	return s
}

// Str returns a member that is a string, or "".
func Str(b []byte, name string) string { return String(Member(b, name)) }

// Effort decodes the name of an effort.
func Effort(v []byte, to *llm.Effort) bool {
	var s string
	if !Text(v, &s) {
		return false
	}
	for _, e := range llm.Efforts() {
		if string(e) == s {
			*to = e
			return true
		}
	}
	return false
}

// Function decodes a tool: its name, description and strictness, and the schema in the member
// that the vendor names.
func Function(b []byte, schema string) (t llm.Tool, ok bool) {
	ok = body.Members(b, func(key, v []byte) bool {
		switch string(key) {
		case "name":
			return Text(v, &t.Name)
		case "description":
			return string(v) == "null" || Text(v, &t.Description)
		case schema:
			if string(v) != "null" {
				t.Parameters = Raw(v)
			}
		case "strict":
			Flag(v, &t.Strict)
		}
		return true
	})
	return t, ok && t.Name != ""
}
