package schema

import (
	"encoding/json"
	"fmt"
)

// Canonical adds to the JSON of params what was given and omitempty left out.
func Canonical(params json.RawMessage, given map[string]any) (json.RawMessage, error) {
	var resolved any
	if err := Unmarshal(params, &resolved); err != nil {
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
