// Part schema describes what a document may contain: shapes of values that check documents, apply overrides to them,
// and make a JSON Schema.
//
// What it promises: one tree of shapes decides all three, so they always agree. It reports every error of a document,
// with its position, what is allowed, and what was probably meant.
//
// It does not know plans: package config has their table of keys.

package planfile

import (
	"encoding/json"
	"fmt"
)

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
