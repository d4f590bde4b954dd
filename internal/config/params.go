package config

import (
	"encoding/json"
	"fmt"
	"reflect"

	"parley/internal/config/schema"
	"parley/internal/yamltree"
	"parley/world"
)

// paramsShape makes the shape of a kind's params from their struct: names from json tags, defaults
// from the values that Defaults sets. The tag doc describes a field, and oneof lists the texts it
// allows, separated by commas.
func paramsShape(k world.Kind) *schema.Shape {
	v := reflect.ValueOf(k.Defaults().Pointer())
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return schema.Map("PARAM", schema.Any())
	}
	return schema.ShapeOf(v.Type(), v, 0)
}

// grid returns the shape of a mapping from params, or paths within params, to lists of values.
func grid(params *schema.Shape) *schema.Shape {
	if params.Free != "" {
		return schema.Map("PARAM", &schema.Shape{Form: yamltree.List, Elem: params.Elem, MinLen: 1})
	}
	s := schema.Record()
	s.Within = params
	for _, k := range params.Keys {
		k.Shape, k.Default, k.Required = &schema.Shape{Form: yamltree.List, Elem: k.Shape, MinLen: 1}, "", false
		s.Keys = append(s.Keys, k)
	}
	return s
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
