package body

import (
	"bytes"
	"fmt"

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
