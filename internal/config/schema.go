package config

import (
	"strings"

	"parley/world"
)

// SchemaName is the name of the schema file that the first line of a plan made by Init refers to. Write
// Schema beside the plan under this name.
const SchemaName = "plan.schema.json"

// Init returns a commented plan file of a kind to start from.
func Init(k world.Kind) []byte {
	return []byte("# yaml-language-server: $schema=" + SchemaName + "\n" + strings.TrimLeft(k.Example, "\n"))
}
