package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"parley/internal/kit/text"
	"parley/llm"
)

// Tool appends the members that every API has for a tool: name, description, and the schema under
// key.
func Tool(b []byte, t *llm.Tool, key string) ([]byte, error) {
	b = Str(b, "name", t.Name)
	if t.Description != "" {
		b = Str(b, "description", t.Description)
	}
	switch {
	case len(t.Parameters) == 0:
		return append(Key(b, key), `{"type":"object","properties":{}}`...), nil
	case !Valid(t.Parameters):
		return b, fmt.Errorf("the parameters of tool %s are not JSON", t.Name)
	}
	if err := llm.CheckSchema(t.Parameters); err != nil {
		return b, fmt.Errorf("the parameters of tool %s: %w", t.Name, err)
	}
	return Raw(b, key, t.Parameters), nil
}

// Strict reports whether a JSON Schema follows the rules of OpenAI's strict mode: the root is an
// object, every object is closed and requires all of its properties, and strict mode knows all
// keywords.
func Strict(schema []byte) bool {
	isObject := false
	ok := Members(schema, func(k, v []byte) bool {
		if string(k) == "type" {
			isObject = string(v) == `"object"`
		}
		return true
	})
	return ok && isObject && strictNode(schema)
}

func strictNode(node []byte) bool {
	var properties, required []byte
	object, closed := false, false
	ok := Members(node, func(k, v []byte) bool {
		switch string(k) {
		case "type":
			object = bytes.Contains(v, []byte(`"object"`))
		case "properties":
			properties = v
			return each(v, strictNode)
		case "$defs", "definitions":
			return each(v, strictNode)
		case "required":
			required = v
		case "additionalProperties":
			closed = string(v) == "false"
			return closed
		case "items":
			return strictNode(v)
		case "anyOf":
			return Elements(v, strictNode)
		case "enum", "const", "description", "title", "$ref", "$schema", "$id", "pattern", "format", "multipleOf",
			"maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "minItems", "maxItems":
		default:
			return false
		}
		return true
	})
	if !ok || !object && properties == nil {
		return ok
	}
	return closed && requiresAll(properties, required)
}

// each calls f with the value of every member of b.
func each(b []byte, f func([]byte) bool) bool {
	return Members(b, func(_, v []byte) bool { return f(v) })
}

func requiresAll(properties, required []byte) bool {
	if properties == nil {
		return true
	}
	listed := map[string]bool{}
	Elements(required, func(v []byte) bool {
		if len(v) >= 2 {
			listed[string(v[1:len(v)-1])] = true
		}
		return true
	})
	return Members(properties, func(name, _ []byte) bool { return listed[string(name)] })
}

// AppendClosed appends a JSON Schema in the form of Anthropic's structured output: every object is
// closed, and keywords that it refuses (lengths, ranges, patterns) are left out. The validation of
// the answer still checks these. It returns false if the schema has no such form, as with an object
// of any members.
func AppendClosed(b, schema []byte) ([]byte, bool) {
	b = Open(b, '{')
	object, closed, properties := false, false, false
	ok := Members(schema, func(k, v []byte) bool {
		good := true
		switch string(k) {
		case "type":
			object = bytes.Contains(v, []byte(`"object"`))
			b = Raw(b, "type", v)
		case "additionalProperties":
			closed = true
			good = string(v) == "false"
			b = Raw(b, "additionalProperties", v)
		case "properties", "$defs", "definitions":
			properties = properties || string(k) == "properties"
			b, good = appendClosedAll(b, string(k), v)
		case "items":
			b, good = AppendClosed(Key(b, "items"), v)
		case "anyOf", "oneOf", "allOf":
			name := string(k)
			if name == "oneOf" {
				name = "anyOf"
			}
			b, good = appendClosedList(b, name, v)
		case "required", "enum", "const", "description", "title", "$ref", "default", "format":
			b = Raw(b, string(k), v)
		case "patternProperties", "not", "if", "unevaluatedProperties", "propertyNames":
			good = false
		}
		return good
	})
	if object && !closed {
		b = Bool(b, "additionalProperties", false)
	}
	return append(b, '}'), ok && (!object || properties)
}

func appendClosedAll(b []byte, key string, members []byte) ([]byte, bool) {
	b = Open(Key(b, key), '{')
	ok := Members(members, func(k, v []byte) bool {
		b = Key(b, string(k))
		var good bool
		b, good = AppendClosed(b, v)
		return good
	})
	return append(b, '}'), ok
}

func appendClosedList(b []byte, key string, list []byte) ([]byte, bool) {
	b = Open(Key(b, key), '[')
	ok := Elements(list, func(v []byte) bool {
		var good bool
		b, good = AppendClosed(b, v)
		return good
	})
	return append(b, ']'), ok
}

// SchemaName turns name into one that every provider accepts: at most 64 letters, digits, _ and -.
func SchemaName(name string) string {
	if name == "" {
		return "answer"
	}
	good := len(name) <= 64
	for i := range len(name) {
		good = good && isNameByte(name[i])
	}
	if good {
		return name
	}
	b := []byte(name[:min(len(name), 64)])
	for i, c := range b {
		if !isNameByte(c) {
			b[i] = '_'
		}
	}
	return string(b)
}

func isNameByte(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// CheckNames checks that all servers read the JSON value b in the same way: it is valid UTF-8,
// nothing follows it, no object has two members with the same name, and no name escapes a letter, a
// digit or an underscore.
//
// If name is set, it is called with every member. It gets the state of the object, which is 0 for
// the outermost, and returns the state of the member's value. Its error ends the check.
func CheckNames(b []byte, name func(state int, key []byte) (int, error)) error {
	if !utf8.Valid(b) {
		return errors.New("the body is not UTF-8")
	}
	w := walker{b: b, name: name}
	i, ok := w.value(space(b, 0), 0, 0)
	switch {
	case w.err != nil:
		return fmt.Errorf("%s: %w", w.at(), w.err)
	case !ok:
		return fmt.Errorf("at byte %d: %w", i, errSyntax)
	case space(b, i) != len(b):
		return fmt.Errorf("there is more after the value, from byte %d on", space(b, i))
	}
	return nil
}

type walker struct {
	b    []byte
	name func(state int, key []byte) (int, error)
	path []step   // to the current value
	keys [][]byte // names in all open objects, the innermost last
	err  error
}

// step is a step of a path: a member or an element.
type step struct {
	key   []byte // nil for an element
	index int
}

var errSyntax = errors.New("it is not valid JSON, or nested too deep")

// value reads the value at i and returns its end.
func (w *walker) value(i, depth, state int) (int, bool) {
	if i < len(w.b) && depth <= maxDepth {
		switch w.b[i] {
		case '{':
			return w.inside(i, '}', depth, state)
		case '[':
			return w.inside(i, ']', depth, state)
		}
	}
	return skip(w.b, i, depth)
}

// inside reads an object or a list, which begins at i and ends with end.
func (w *walker) inside(i int, end byte, depth, state int) (int, bool) {
	from, n := len(w.keys), 0
	i, ok := inside(w.b, i, end, depth, func(key []byte, i int) (int, bool) {
		inner := state
		if key != nil {
			if inner, w.err = w.member(state, key); w.err != nil {
				return i, false
			}
		}
		w.path = append(w.path, step{key, n})
		n++
		i, ok := w.value(i, depth+1, inner)
		if ok {
			w.path = w.path[:len(w.path)-1]
		}
		return i, ok
	})
	names := w.keys[from:]
	w.keys = w.keys[:from]
	slices.SortFunc(names, bytes.Compare)
	for n := 1; n < len(names) && ok; n++ {
		if bytes.Equal(names[n-1], names[n]) {
			w.err = fmt.Errorf("%s is given twice", short(names[n]))
			return i, false
		}
	}
	return i, ok
}

// member checks the name of a member.
func (w *walker) member(state int, key []byte) (inner int, err error) {
	if bytes.IndexByte(key, '\\') >= 0 {
		if key, err = unescape(key); err != nil {
			return 0, err
		}
	}
	w.keys = append(w.keys, key)
	if w.name == nil {
		return 0, nil
	}
	return w.name(state, key)
}

// unescape decodes a name. It refuses a name that escapes a letter, a digit or an underscore, which
// would hide it from simple readers.
func unescape(key []byte) ([]byte, error) {
	for i := 0; i+5 < len(key); i++ {
		if key[i] != '\\' {
			continue
		}
		if key[i+1] == 'u' {
			n, err := strconv.ParseUint(string(key[i+2:i+6]), 16, 16)
			if c := byte(n); err == nil && n < utf8.RuneSelf && (c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z') {
				return nil, fmt.Errorf("the name %s has %q escaped: write it without the escape", short(key), c)
			}
		}
		i++ // what follows is escaped
	}
	var s string
	if err := json.Unmarshal(append(append([]byte{'"'}, key...), '"'), &s); err != nil {
		return nil, fmt.Errorf("the name %s: %w", short(key), err)
	}
	return []byte(s), nil
}

func short(key []byte) string { return strconv.Quote(text.Excerpt(key, 60)) }

// at returns the current path, such as messages[3].content.
func (w *walker) at() string {
	if len(w.path) == 0 {
		return "the body"
	}
	var b []byte
	for i, s := range w.path[:min(len(w.path), 20)] {
		switch {
		case s.key == nil:
			b = append(strconv.AppendInt(append(b, '['), int64(s.index), 10), ']')
		case i > 0:
			b = append(append(b, '.'), s.key[:min(len(s.key), 60)]...)
		default:
			b = append(b, s.key[:min(len(s.key), 60)]...)
		}
	}
	return string(b)
}
