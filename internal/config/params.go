package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	"parley/internal/yamltree"
	"parley/world"
)

// paramsShape makes the shape of a kind's params from their struct: names from json tags, defaults
// from the values that Defaults sets. The tag doc describes a field, and oneof lists the texts it
// allows, separated by commas.
func paramsShape(k world.Kind) *shape {
	v := reflect.ValueOf(k.Defaults().Pointer())
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return dict("PARAM", whatever())
	}
	return shapeOf(v.Type(), v, 0)
}

// grid returns the shape of a mapping from params, or paths within params, to lists of values.
func grid(params *shape) *shape {
	if params.free != "" {
		return dict("PARAM", &shape{form: yamltree.List, elem: params.elem, least: 1})
	}
	s := record()
	s.within = params
	for _, k := range params.keys {
		k.shape, k.preset, k.needed = &shape{form: yamltree.List, elem: k.shape, least: 1}, "", false
		s.keys = append(s.keys, k)
	}
	return s
}

// shapeOf returns the shape of values of a Go type. preset holds the defaults of a struct, if there are any.
func shapeOf(t reflect.Type, preset reflect.Value, depth int) *shape {
	if reads := reflect.PointerTo(t); depth > yamltree.MaxDepth || reads.Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return whatever() // its own method reports errors when it is read
	} else if reads.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return words()
	}
	switch t.Kind() {
	case reflect.Pointer:
		if preset.IsValid() {
			preset = preset.Elem()
		}
		return shapeOf(t.Elem(), preset, depth+1)
	case reflect.Struct:
		return structShape(t, preset, depth)
	case reflect.Slice, reflect.Array:
		return listOf(shapeOf(t.Elem(), reflect.Value{}, depth+1))
	case reflect.Map:
		return dict("NAME", shapeOf(t.Elem(), reflect.Value{}, depth+1))
	case reflect.String:
		return words()
	case reflect.Bool:
		return truth()
	case reflect.Float32, reflect.Float64:
		return ratio(math.Inf(-1), math.Inf(1))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := t.Bits() - 1
		return whole(-1<<bits, 1<<bits-1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return whole(0, math.MaxUint64>>(64-t.Bits()))
	}
	return whatever()
}

func structShape(t reflect.Type, preset reflect.Value, depth int) *shape {
	s := record()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		var value reflect.Value
		if preset.IsValid() {
			value = preset.Field(i)
		}
		switch {
		case f.Anonymous && name == "":
			s.keys = append(s.keys, shapeOf(f.Type, value, depth+1).keys...)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		k := key{name: name, shape: shapeOf(f.Type, value, depth+1), doc: f.Tag.Get("doc"), preset: shown(value)}
		if allowed := f.Tag.Get("oneof"); allowed != "" {
			k.shape.oneOf = strings.Split(allowed, ",")
		}
		s.keys = append(s.keys, k)
	}
	return s
}

// shown writes a default for a reader. It omits long values.
func shown(v reflect.Value) string {
	if !v.IsValid() || !v.CanInterface() || v.IsZero() && v.Kind() != reflect.Bool && v.Kind() != reflect.Int && v.Kind() != reflect.Float64 {
		return ""
	}
	b, err := json.Marshal(v.Interface())
	if err != nil || len(b) > 60 {
		return ""
	}
	return strings.Trim(string(b), `"`)
}

// decodeParams decodes values, which the kind's shape has checked, over the kind's defaults. It also
// returns them as JSON with all defaults.
func decodeParams(k world.Kind, values map[string]any) (world.Params, json.RawMessage, error) {
	given, err := json.Marshal(values)
	if err != nil {
		return world.Params{}, nil, fmt.Errorf("params: %w", err)
	}
	params, err := k.Read(given)
	if err != nil {
		return params, nil, err
	}
	full, err := json.Marshal(params.Pointer())
	if err != nil {
		return params, nil, fmt.Errorf("params: %w", err)
	}
	resolved, err := canonical(full, values)
	return params, resolved, err
}

// canonical adds to the JSON of params what was given and omitempty left out.
func canonical(params json.RawMessage, given map[string]any) (json.RawMessage, error) {
	var resolved any
	if err := unmarshal(params, &resolved); err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	return json.Marshal(overlay(resolved, given))
}

// overlay adds to resolved what was given and is missing: a field marked omitempty that was set to
// zero would otherwise get its default again.
func overlay(resolved, given any) any {
	r, ok := resolved.(map[string]any)
	g, ok2 := given.(map[string]any)
	if !ok || !ok2 {
		return resolved
	}
	for name, v := range g {
		if old, there := r[name]; there {
			r[name] = overlay(old, v)
		} else {
			r[name] = v
		}
	}
	return r
}
