package planfile

import (
	"fmt"

	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
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
	return world.Kind{}, fmt.Errorf("no kind is called %s%s the kinds are %s", yamltree.Quote(name), schemaHint(text.Suggest(name, names)), documentListed(names))
}
