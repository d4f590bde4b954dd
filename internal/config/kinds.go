package config

import (
	"encoding/json"
	"fmt"

	"parley/internal/config/document"
	"parley/internal/config/schema"
	"parley/internal/yamltree"
	"parley/world"
)

// Kind returns the kind of that name. The error lists the kinds and suggests the nearest.
func Kind(kinds []world.Kind, name string) (world.Kind, error) {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		if k.Name == name {
			return k, nil
		}
		names[i] = k.Name
	}
	return world.Kind{}, fmt.Errorf("no kind is called %s%s the kinds are %s", yamltree.Quote(name), schema.Hint(document.Suggestion(name, names)), document.Listed(names))
}

// Param is a param of a kind.
type Param struct {
	Name string `json:"name"`
	// Holds describes the allowed values, as "a whole number".
	Holds   string          `json:"holds"`
	Default json.RawMessage `json:"default,omitempty"`
	Doc     string          `json:"doc,omitempty"`
}

// Params lists the params of a kind in their order.
func Params(k world.Kind) []Param {
	preset := map[string]json.RawMessage{}
	_ = remarshal(k.Defaults().Pointer(), &preset) // a kind without defaults in JSON has none to show
	all := []Param{}
	for _, key := range paramsShape(k).Keys {
		all = append(all, Param{Name: key.Name, Holds: key.Shape.Describe(), Default: preset[key.Name], Doc: key.Doc})
	}
	return all
}
