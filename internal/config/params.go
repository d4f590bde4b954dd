package config

import (
	"encoding/json"
	"fmt"

	"parley/internal/config/schema"
	"parley/world"
)

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
	if err := schema.Unmarshal(params, &resolved); err != nil {
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
