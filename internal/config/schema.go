package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/internal/config/schema"
	"parley/world"
)

// SchemaName is the name of the schema file that the first line of a plan made by Init refers to. Write
// Schema beside the plan under this name.
const SchemaName = "plan.schema.json"

// Schema returns a JSON Schema (2020-12) of plan files for these kinds, made from the table that
// decodes them.
func Schema(kinds []world.Kind) ([]byte, error) {
	names := make([]string, len(kinds))
	var docs strings.Builder
	var each []any
	for i, k := range kinds {
		names[i] = k.Name
		fmt.Fprintf(&docs, "\n- %s: %s", k.Name, k.Doc)
		params := paramsShape(k)
		then := schema.Object{"properties": schema.Object{
			"params": params.JSONSchema(),
			"plan": schema.Object{"properties": schema.Object{"matrix": schema.Object{"properties": schema.Object{
				"params":     grid(params).JSONSchema(),
				"variations": schema.Object{"additionalProperties": schema.Object{"properties": schema.Object{"params": variationKeys(params).Key("params").Shape.JSONSchema()}}},
			}}}},
		}}
		if !k.Casts() {
			then["required"] = []string{"agents"}
			then["properties"].(schema.Object)["agents"] = schema.Object{"minProperties": 1}
		}
		each = append(each, schema.Object{"if": schema.Object{"properties": schema.Object{"kind": schema.Object{"const": k.Name}}, "required": []string{"kind"}}, "then": then})
	}
	all := keys(names, schema.Map("PARAM", schema.Any()))
	if agents := all.Key("agents"); slices.ContainsFunc(kinds, func(k world.Kind) bool { return k.Casts() }) {
		agents.Required, agents.Shape.MinLen = false, 0 // only some kinds need agents: see each
	}
	root := all.JSONSchema()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "A Parley plan file"
	if len(each) > 0 {
		root["allOf"] = each
		kind := root["properties"].(schema.Object)["kind"].(schema.Object)
		kind["description"] = fmt.Sprint(kind["description"], docs.String())
	}
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("config: schema: %w", err)
	}
	return append(b, '\n'), nil
}

// Init returns a commented plan file of a kind to start from.
func Init(k world.Kind) []byte {
	return []byte("# yaml-language-server: $schema=" + SchemaName + "\n" + strings.TrimLeft(k.Example, "\n"))
}
