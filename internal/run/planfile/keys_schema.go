package planfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"parley/internal/kit/yamltree"
	"parley/world"
)

// paramsShape makes the shape of a kind's params from their struct: names from json tags, defaults
// from the values that Defaults sets. The tag doc describes a field, and oneof lists the texts it
// allows, separated by commas.
func paramsShape(k world.Kind) *Shape {
	v := reflect.ValueOf(k.Defaults().Pointer())
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return schemaMap("PARAM", schemaAny())
	}
	return shapeOf(v.Type(), v, 0)
}

// grid returns the shape of a mapping from params, or paths within params, to lists of values.
func grid(params *Shape) *Shape {
	if params.Free != "" {
		return schemaMap("PARAM", &Shape{Form: yamltree.List, Elem: params.Elem, MinLen: 1})
	}
	s := Record()
	s.Within = params
	for _, k := range params.Keys {
		k.Shape, k.Default, k.Required = &Shape{Form: yamltree.List, Elem: k.Shape, MinLen: 1}, "", false
		s.Keys = append(s.Keys, k)
	}
	return s
}

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
		then := Object{"properties": Object{
			"params": params.JSONSchema(),
			"plan": Object{"properties": Object{"matrix": Object{"properties": Object{
				"params":     grid(params).JSONSchema(),
				"variations": Object{"additionalProperties": Object{"properties": Object{"params": variationKeys(params).Key("params").Shape.JSONSchema()}}},
			}}}},
		}}
		if !k.ChoosesModels() {
			then["required"] = []string{"agents"}
			then["properties"].(Object)["agents"] = Object{"minProperties": 1}
		}
		each = append(each, Object{"if": Object{"properties": Object{"kind": Object{"const": k.Name}}, "required": []string{"kind"}}, "then": then})
	}
	all := PlanShape(names, schemaMap("PARAM", schemaAny()))
	if agents := all.Key("agents"); slices.ContainsFunc(kinds, func(k world.Kind) bool { return k.ChoosesModels() }) {
		agents.Required, agents.Shape.MinLen = false, 0 // only some kinds need agents: see each
	}
	root := all.JSONSchema()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "A Parley plan file"
	if len(each) > 0 {
		root["allOf"] = each
		kind := root["properties"].(Object)["kind"].(Object)
		kind["description"] = fmt.Sprint(kind["description"], docs.String())
	}
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("config: schema: %w", err)
	}
	return append(b, '\n'), nil
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
