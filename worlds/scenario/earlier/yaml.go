package earlier

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"
)

// fields are the keys of a mapping, in the order in which they are written, and their values: texts, numbers, true or false,
// lists, mappings or fields.
type fields [][2]any

// Add adds a key, unless its value is empty.
func (f *fields) Add(key string, value any) {
	empty := false
	switch v := value.(type) {
	case nil:
		empty = true
	case string:
		empty = v == ""
	case int:
		empty = v == 0
	case []string:
		empty = len(v) == 0
	case []any:
		empty = len(v) == 0
	case fields:
		empty = len(v) == 0
	case []fields:
		empty = len(v) == 0
	}
	if empty {
		return
	}
	*f = append(*f, [2]any{key, value})
}

// Set replaces the value of a key, or adds the key.
func (f *fields) Set(key string, value any) {
	if i := f.index(key); i >= 0 {
		(*f)[i][1] = value
		return
	}
	*f = append(*f, [2]any{key, value})
}

// Value returns the value of a key, or nil.
func (f *fields) Value(key string) any {
	if i := f.index(key); i >= 0 {
		return (*f)[i][1]
	}
	return nil
}

func (f *fields) index(key string) int {
	return slices.IndexFunc(*f, func(one [2]any) bool { return one[0] == key })
}

// MarshalYAML keeps the order of the keys.
func (f fields) MarshalYAML() (any, error) {
	all := make(yaml.MapSlice, len(f))
	for i, one := range f {
		all[i] = yaml.MapItem{Key: one[0], Value: one[1]}
	}
	return all, nil
}

// yaml returns fields as a file: with blocks for texts of several lines, unless the library then reads some text as another.
func (c *converter) yaml(f fields) string {
	asIs := yaml.CustomMarshaler(func(n json.Number) ([]byte, error) { return []byte(n), nil })
	quoted := yaml.CustomMarshaler(func(text string) ([]byte, error) { return json.Marshal(text) }) // YAML reads the texts of JSON
	blocks, err := yaml.MarshalWithOptions(f, asIs, yaml.IndentSequence(true), yaml.UseLiteralStyleIfMultiline(true))
	quotes, failed := yaml.MarshalWithOptions(f, asIs, yaml.IndentSequence(true), quoted)
	if err = errors.Join(err, failed); err != nil {
		c.errs = append(c.errs, err)
		return ""
	}
	var got, want any
	if yaml.Unmarshal(blocks, &got) == nil && yaml.Unmarshal(quotes, &want) == nil && fmt.Sprintf("%#v", got) == fmt.Sprintf("%#v", want) {
		return string(blocks)
	}
	return string(quotes)
}
