package seat

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// MaxRows is how many objects a list in a form can have.
const MaxRows = 20

// Answer returns the answer that was filled in. get returns the texts of a field by its key: those of a list are its
// items, and for a row of a list of objects "*" in the key is replaced with its number. problems says what is wrong
// with a field, by key.
func (f *Form) Answer(get func(key string) []string) (answer json.RawMessage, problems map[string]string) {
	p := problem{}
	if f.single {
		v, _ := f.Fields[0].value(get(f.Fields[0].Key), f.Fields[0].Key, p)
		return v, p
	}
	return object(f.Fields, "", get, p), p
}

// problem holds what is wrong with fields, by key.
type problem map[string]string

// number returns a number as text.
func number(n int) string { return strconv.Itoa(n) }

// object returns an object of fields. row replaces "*" in their keys.
func object(fields []*Field, row string, get func(string) []string, p problem) json.RawMessage {
	out := []byte{'{'}
	for _, f := range fields {
		v, ok := f.property(f.In(row), get, p)
		if !ok {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted(f.Name)...), ':'), v...)
	}
	return append(out, '}')
}

// In returns the key of a field in a row of a list.
func (f *Field) In(row string) string { return strings.Replace(f.Key, "*", row, 1) }

// property returns the value of a field of an object. ok is false if the object does not have it.
func (f *Field) property(key string, get func(string) []string, p problem) (v json.RawMessage, ok bool) {
	switch {
	case f.List && f.Type == Group:
		return f.rows(get, p), true
	case f.List:
		return f.list(get(key), key, p), true
	case f.Type == Group:
		return object(f.Fields, "", get, p), true
	default:
		return f.value(get(key), key, p)
	}
}

// rows returns a list of objects, without those that nobody filled in.
func (f *Field) rows(get func(string) []string, p problem) json.RawMessage {
	out := []byte{'['}
	for n := range MaxRows {
		row, empty := number(n), true
		for _, one := range f.Fields {
			for _, text := range get(one.In(row)) {
				empty = empty && (text == "" || one.Type == Choice && one.Required) // a choice may have been made already
			}
		}
		if empty {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, object(f.Fields, row, get, p)...)
	}
	return append(out, ']')
}

// list returns a list of values.
func (f *Field) list(texts []string, key string, p problem) json.RawMessage {
	out := []byte{'['}
	for _, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}
		if v, ok := f.value([]string{text}, key, p); ok {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, v...)
		}
	}
	return append(out, ']')
}

// value returns a single value. ok is false if there is none.
func (f *Field) value(texts []string, key string, p problem) (v json.RawMessage, ok bool) {
	text := ""
	if len(texts) > 0 {
		text = texts[0]
	}
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "" && f.null:
		return json.RawMessage("null"), true
	case trimmed == "" && !f.Required && !f.List:
		return nil, false
	case f.Type == Choice:
		i := slices.Index(f.Options, trimmed)
		if i < 0 {
			i = slices.IndexFunc(f.Options, func(o string) bool { return strings.EqualFold(trimmed, o) })
		}
		if i >= 0 {
			return f.values[i], true
		}
		p[key] = "choose one of " + strings.Join(f.Options, ", ")
		return nil, false
	case f.Type == Number:
		var n json.Number
		if json.Unmarshal([]byte(trimmed), &n) != nil || n.String() != trimmed {
			p[key] = "write a number"
			return nil, false
		}
		return json.RawMessage(trimmed), true
	default:
		return quoted(text), true
	}
}

// quoted returns a text as JSON.
func quoted(text string) json.RawMessage {
	b, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`) // cannot happen: it is text
	}
	return b
}
