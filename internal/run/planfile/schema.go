package planfile

import "strings"

// SchemaName is the name of the schema file that the first line of a plan made by Init refers to. Write
// Schema beside the plan under this name.
const SchemaName = "plan.schema.json"

// Init returns a plan file that names its schema.
func Init(plan string) []byte {
	return []byte("# yaml-language-server: $schema=" + SchemaName + "\n" + strings.TrimLeft(plan, "\n"))
}
