package seat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"parley/world"
)

// Form is the fields of an answer: texts, numbers and choices, lists of these, objects of these, and lists of such objects. A
// schema with anything else has no form: its answer is written as JSON. A Form does not check whether an answer follows its
// schema: package answer does.
type Form struct {
	Fields []*Field
	single bool // the answer is the value of the only field, not an object
}

// Type is the type of a field's values.
type Type string

// The types.
const (
	Text   Type = "text"
	Number Type = "number"
	Choice Type = "choice"
	Group  Type = "group" // an object
)

// Field is a field of a form. Its texts may be hostile.
type Field struct {
	// Key names the field in a form. The fields of a row of a list have "*" instead of its number.
	Key      string
	Name     string // the property of the answer
	Doc      string
	Type     Type
	List     bool
	Required bool
	Options  []string // of a choice
	// Offered are what a world offers for the items of a list.
	Offered []world.Choice
	Fields  []*Field // of a group

	values []json.RawMessage // of Options
	null   bool              // an empty field is null
}

const (
	maxFields  = 100
	maxOptions = 500
)

// schema is the part of a JSON Schema that forms understand.
type schema struct {
	Type        json.RawMessage   `json:"type"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	Items       json.RawMessage   `json:"items"`
	Enum        []json.RawMessage `json:"enum"`
	Title       string            `json:"title"`
	Description string            `json:"description"`

	Ref   any `json:"$ref"`
	AnyOf any `json:"anyOf"`
	OneOf any `json:"oneOf"`
	AllOf any `json:"allOf"`
	Not   any `json:"not"`
	If    any `json:"if"`
	Const any `json:"const"`
}

// FormOf returns the form of a schema with what a world offers, which may be nil. ok is false if the schema has none.
func FormOf(raw json.RawMessage, offer *world.Offer) (f *Form, ok bool) {
	s, types, ok := read(raw)
	if !ok {
		return nil, false
	}
	f = &Form{single: true}
	if slices.Equal(types, []string{"object"}) {
		f.single = false
		f.Fields, ok = fieldsOf(s, "f", true)
	} else if one := (&Field{Key: "f0", Required: true}); one.scalar(s, types) {
		f.Fields = []*Field{one}
	} else {
		ok = false
	}
	if !ok || len(f.Fields) == 0 {
		return nil, false
	}
	for _, one := range f.Fields {
		if offer != nil && one.Name == offer.Field && one.List && one.Type == Text {
			one.Offered = offer.Choices
		}
	}
	return f, true
}

// read reads a schema and its types. ok is false if it has something that forms do not understand.
func read(raw json.RawMessage) (s schema, types []string, ok bool) {
	if json.Unmarshal(raw, &s) != nil {
		return s, nil, false
	}
	for _, other := range []any{s.Ref, s.AnyOf, s.OneOf, s.AllOf, s.Not, s.If, s.Const} {
		if other != nil {
			return s, nil, false
		}
	}
	var one string
	switch {
	case json.Unmarshal(s.Type, &one) == nil:
		types = []string{one}
	case json.Unmarshal(s.Type, &types) == nil:
	case len(s.Enum) > 0:
		types = []string{"string"}
	default:
		return s, nil, false
	}
	return s, types, true
}

// fieldsOf returns the fields of an object in the order of its schema. Only the properties of the answer itself may
// be lists and objects.
func fieldsOf(s schema, key string, top bool) (out []*Field, ok bool) {
	d := json.NewDecoder(bytes.NewReader(s.Properties))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		var raw json.RawMessage
		if err != nil || d.Decode(&raw) != nil || len(out) == maxFields {
			return nil, false
		}
		f := &Field{Key: key + strconv.Itoa(len(out))}
		f.Name, _ = name.(string)
		f.Required = slices.Contains(s.Required, f.Name)
		if !f.fill(raw, top) {
			return nil, false
		}
		out = append(out, f)
	}
	return out, len(out) > 0
}

// fill fills in a field from its schema.
func (f *Field) fill(raw json.RawMessage, top bool) bool {
	s, types, ok := read(raw)
	if !ok {
		return false
	}
	f.Doc = s.Description
	if top && slices.Equal(types, []string{"array"}) {
		f.List = true
		inner, innerTypes, ok := read(s.Items)
		if !ok {
			return false
		}
		if f.Doc == "" {
			f.Doc = inner.Description
		}
		s, types = inner, innerTypes
	}
	if top && slices.Equal(types, []string{"object"}) {
		f.Type = Group
		key := f.Key + "."
		if f.List {
			key += "*."
		}
		f.Fields, ok = fieldsOf(s, key, false)
		return ok
	}
	return f.scalar(s, types)
}

// scalar fills in a field of single values.
func (f *Field) scalar(s schema, types []string) bool {
	if i := slices.Index(types, "null"); i >= 0 && len(types) == 2 {
		f.null, types = true, slices.Delete(slices.Clone(types), i, i+1)
	}
	if len(types) != 1 || len(s.Enum) > maxOptions {
		return false
	}
	switch {
	case len(s.Enum) > 0:
		f.Type = Choice
		for _, v := range s.Enum {
			var text string
			if json.Unmarshal(v, &text) != nil {
				text = string(v)
			}
			if text == "null" && f.null {
				continue
			}
			f.Options, f.values = append(f.Options, text), append(f.values, v)
		}
		return true
	case types[0] == "boolean":
		f.Type, f.Options, f.values = Choice, []string{"yes", "no"}, []json.RawMessage{json.RawMessage("true"), json.RawMessage("false")}
		return true
	case types[0] == "string":
		f.Type = Text
		return true
	case types[0] == "number" || types[0] == "integer":
		f.Type = Number
		return true
	default:
		return false
	}
}

// Label returns the name of a field in words.
func (f *Field) Label() string {
	if f.Name == "" {
		return "answer"
	}
	return strings.ReplaceAll(f.Name, "_", " ")
}

// MaxRows is how many objects a list in a form can have.
const MaxRows = 20

// Answer returns the answer that was filled in. get returns the texts of a field by its key: those of a list are its
// items, and for a row of a list of objects "*" in the key is replaced with its number. problems says what is wrong
// with a field, by key.
func (f *Form) Answer(get func(key string) []string) (answer json.RawMessage, problems map[string]string) {
	p := fieldProblems{}
	if f.single {
		v, _ := f.Fields[0].value(get(f.Fields[0].Key), f.Fields[0].Key, p)
		return v, p
	}
	return object(f.Fields, "", get, p), p
}

// fieldProblems holds what is wrong with fields, by key.
type fieldProblems map[string]string

// object returns an object of fields. row replaces "*" in their keys.
func object(fields []*Field, row string, get func(string) []string, p fieldProblems) json.RawMessage {
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
func (f *Field) property(key string, get func(string) []string, p fieldProblems) (v json.RawMessage, ok bool) {
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
func (f *Field) rows(get func(string) []string, p fieldProblems) json.RawMessage {
	out := []byte{'['}
	for n := range MaxRows {
		row, empty := strconv.Itoa(n), true
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
func (f *Field) list(texts []string, key string, p fieldProblems) json.RawMessage {
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
func (f *Field) value(texts []string, key string, p fieldProblems) (v json.RawMessage, ok bool) {
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
