package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change returns s with other values at some keys. A key is a path of names with dots;
// actors, metrics and events go by name: turns, actors.north-port.goals,
// metrics.tension.range, events.strike.probability. Errors name the key.
func (s *Script) Change(set map[string]any) (*Script, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(b, &tree); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if err := put(tree, strings.Split(key, "."), set[key]); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		// Decoding after each change tells which of them does not fit.
		if err := decode(tree, &Script{}); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	changed := &Script{}
	return changed, decode(tree, changed)
}

// put sets the value at a path. Names of mappings may be new: what a script does not have
// shows when it is decoded.
func put(in any, path []string, value any) error {
	step, rest := path[0], path[1:]
	switch in := in.(type) {
	case map[string]any:
		if len(rest) == 0 {
			in[step] = value
			return nil
		}
		if in[step] == nil {
			in[step] = map[string]any{}
		}
		return put(in[step], rest, value)
	case []any:
		var names []string
		for i, item := range in {
			name := called(item)
			if names = append(names, name); name != step {
				continue
			}
			if len(rest) == 0 {
				in[i] = value
				return nil
			}
			return put(item, rest, value)
		}
		return fmt.Errorf("none is called %q%s", step, list("; there are ", names))
	}
	return fmt.Errorf("%q stands below a single value", step)
}

func called(item any) string {
	m, ok := item.(map[string]any)
	if !ok {
		return ""
	}
	for _, key := range []string{"short_name", "name"} {
		if name, ok := m[key].(string); ok {
			return name
		}
	}
	return ""
}

func decode(tree map[string]any, into *Script) error {
	b, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err = d.Decode(into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("wants %s, found %s", plainType(wrong.Type.Kind().String()), plainType(wrong.Value))
	}
	if err != nil {
		return errors.New(strings.Replace(err.Error(), "json: unknown field", "a scenario has no key", 1))
	}
	return nil
}

// plainType says what a type is, in the words of the files.
func plainType(kind string) string {
	kind, _, _ = strings.Cut(kind, " ")
	switch kind {
	case "int":
		return "a whole number"
	case "float64", "number":
		return "a number"
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	case "slice", "array":
		return "a list"
	}
	return "a mapping"
}
