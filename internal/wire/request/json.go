package request

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"parley/internal/wire/body"
	"parley/llm"
)

// The functions below read a value into a place and say whether it is of that type. They
// do without reflection, since a conversation is read again with every call of it.

// Text reads a string.
func Text(v []byte, to *string) bool {
	if len(v) < 2 || v[0] != '"' {
		return false
	}
	if in := v[1 : len(v)-1]; bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		*to = string(in)
		return true
	}
	return json.Unmarshal(v, to) == nil
}

// Flag reads true or false.
func Flag(v []byte, to *bool) bool {
	switch string(v) {
	case "true", "false":
		*to = v[0] == 't'
		return true
	}
	return false
}

// Whole reads a whole number.
func Whole(v []byte, to *int) bool {
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return false
	}
	*to = n
	return true
}

// Integer reads a number that may be missing.
func Integer[T int | int64](v []byte, to **T) bool {
	var n int
	if !Whole(v, &n) {
		return false
	}
	at := T(n)
	*to = &at
	return true
}

// Number reads a number that may be missing.
func Number(v []byte, to **float64) bool {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || len(v) > 0 && (v[0] < '0' || v[0] > '9') && v[0] != '-' {
		return false
	}
	*to = &f
	return true
}

// Texts reads a list of strings, or one string.
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

// Raw copies a value as it stands.
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

// Effort reads a name that is an effort's.
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

// Function reads a tool: name, description, a schema by either vendor's name for it, strict.
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
