package planfile

import (
	"encoding/json"
	"fmt"

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
