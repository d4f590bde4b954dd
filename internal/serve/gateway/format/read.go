package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"parley/internal/dialect/wire/body"
	"parley/llm"
)

type jsonRaw = json.RawMessage

// The functions below read a value into a place and say whether it is of that type. They
// do without reflection, since a conversation is read again with every call of it.

func text(v []byte, to *string) bool {
	if len(v) < 2 || v[0] != '"' {
		return false
	}
	if in := v[1 : len(v)-1]; bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		*to = string(in)
		return true
	}
	return json.Unmarshal(v, to) == nil
}

func flag(v []byte, to *bool) bool {
	switch string(v) {
	case "true", "false":
		*to = v[0] == 't'
		return true
	}
	return false
}

func whole(v []byte, to *int) bool {
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return false
	}
	*to = n
	return true
}

// integer reads a number that may be missing.
func integer[T int | int64](v []byte, to **T) bool {
	var n int
	if !whole(v, &n) {
		return false
	}
	at := T(n)
	*to = &at
	return true
}

// count reads a number of tokens or answers. It may be written as a float, as some programs
// do, but what servers would make different numbers of is refused.
func (c *Call) count(key string, v []byte) (n int, ok bool) {
	f, err := strconv.ParseFloat(string(v), 64)
	switch {
	case v[0] == '"' || err != nil || f != math.Trunc(f):
		c.refuse("%s is %s: want a whole number", key, excerpt(v))
	case math.Abs(f) > maxCount:
		c.refuse("%s is %s: want at most %d", key, excerpt(v), maxCount)
	default:
		return int(f), true
	}
	return 0, false
}

// tokens reads a limit on the length of an answer. Where there are several the largest
// counts, since servers differ in which they obey. One below 1 means no limit to some servers.
func (c *Call) tokens(key string, v []byte) bool {
	n, ok := c.count(key, v)
	if ok && n < 1 {
		c.unlimited = true
		return false // it is left to the provider to refuse
	}
	c.Request.MaxTokens = max(c.Request.MaxTokens, n)
	return true
}

// answers reads a number of answers.
func (c *Call) answers(key string, v []byte, to *int) bool {
	n, ok := c.count(key, v)
	if ok && n < 1 {
		return false
	}
	*to = max(*to, n)
	return true
}

// refuse notes why the request cannot be served, unless something else was wrong before.
func (c *Call) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func excerpt(v []byte) string {
	if len(v) > 40 {
		return string(v[:40]) + "…"
	}
	return string(v)
}

func number(v []byte, to **float64) bool {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || len(v) > 0 && (v[0] < '0' || v[0] > '9') && v[0] != '-' {
		return false
	}
	*to = &f
	return true
}

func texts(v []byte, to *[]string) bool {
	var one string
	if text(v, &one) {
		*to = []string{one}
		return true
	}
	var all []string
	ok := body.Elements(v, func(e []byte) bool {
		var s string
		good := text(e, &s)
		all = append(all, s)
		return good
	})
	if ok {
		*to = all
	}
	return ok
}

func raw(v []byte) jsonRaw { return append(jsonRaw(nil), v...) }

// member returns a member of an object, or nil.
func member(b []byte, name string) []byte {
	var found []byte
	body.Members(b, func(key, value []byte) bool {
		if string(key) == name && string(value) != "null" {
			found = value
		}
		return true
	})
	return found
}

// str returns a member that is a string, or "".
func str(b []byte, name string) string {
	var s string
	text(member(b, name), &s)
	return s
}

func effort(v []byte, to *llm.Effort) bool {
	var s string
	if !text(v, &s) {
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

// function reads a tool: name, description, a schema by either vendor's name for it, strict.
func function(b []byte, schema string) (t llm.Tool, ok bool) {
	ok = body.Members(b, func(key, v []byte) bool {
		switch string(key) {
		case "name":
			return text(v, &t.Name)
		case "description":
			return string(v) == "null" || text(v, &t.Description)
		case schema:
			if string(v) != "null" {
				t.Parameters = raw(v)
			}
		case "strict":
			flag(v, &t.Strict)
		}
		return true
	})
	return t, ok && t.Name != ""
}
