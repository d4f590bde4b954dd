package planfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"parley/internal/ask/provider"
	"parley/llm"
	"parley/world"
)

// MaxConcurrency is the largest number of calls in flight that can be set.
const MaxConcurrency = 1_000_000

// PlanShape describes everything a plan file may hold: names, values, defaults and what they mean. The tags of decodedPlan and of the structs
// in it say so. params is the shape of the kind's params. The order is that of the reference.
func PlanShape(kinds []string, params *Shape) *Shape {
	s := documented[decodedPlan]()
	s.Exclusive = [2]string{"episodes", "plan"}
	s.Key("kind").Shape.OneOf = kinds
	s.Key("params").Shape = params

	accounts := s.Key("providers")
	accounts.Doc = strings.Replace(accounts.Doc, "PRESETS", strings.Join(provider.PresetNames(), ", "), 1)
	accounts.Shape.Elem = providerShape()

	agents := s.Key("agents").Shape
	agents.Filled = true
	agent := documented[world.Agent]()
	agents.Elem = agent
	agent.Shorthand, agent.Exclusive, agent.AnyOf = "model", [2]string{"model", "bot"}, []string{"model", "bot", "program"}
	program := agent.Key("program").Shape
	program.Shorthand, program.AnyOf = "preset", []string{"preset", "command"}
	agent.Key("effort").Shape.OneOf = efforts()

	plan := s.Key("plan").Shape
	plan.Filled = true
	plan.Key("until").Shape.Exclusive = [2]string{"seat", "agent"}
	matrix := plan.Key("matrix").Shape
	matrix.Key("params").Shape = grid(params)
	matrix.Key("variations").Shape.Elem.Key("params").Shape = variationParams(params)
	return s
}

// variationParams is the shape of the params of a variation: those of the plan hold for what is left out.
func variationParams(params *Shape) *Shape {
	own := *params
	own.Keys = slices.Clone(params.Keys)
	for i := range own.Keys {
		own.Keys[i].Required, own.Keys[i].Default = false, "the plan's"
	}
	return &own
}

// documented is the shape of the fields of a struct that have a doc. The others, as its name, are not written in plan files.
func documented[T any]() *Shape {
	s := structShape(reflect.TypeFor[T](), reflect.Value{}, 0)
	s.Keys = slices.DeleteFunc(s.Keys, func(k Key) bool { return k.Doc == "" })
	return s
}

func providerShape() *Shape {
	s := documented[provider.Provider]()
	s.Key("dialect").Shape.OneOf = provider.Dialects()
	s.Key("key_header").Shape.OneOf = provider.KeyHeaders()
	s.Key("batch").Shape.Key("api").Shape.OneOf = provider.BatchAPIs()
	s.Key("capabilities").Shape.Elem.Key("efforts").Shape.Elem.OneOf = efforts()
	return s
}

func efforts() []string {
	var names []string
	for _, e := range llm.Efforts() {
		names = append(names, string(e))
	}
	return names
}

// paramsShape makes the shape of a kind's params from their struct: names from json tags, defaults
// from the values that Defaults sets. The tag doc describes a field, and oneof lists the texts it
// allows, separated by commas.
func paramsShape(k world.Kind) *Shape {
	v := reflect.ValueOf(k.Defaults().Pointer())
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return mapShape("PARAM", anyShape())
	}
	return shapeOf(v.Type(), v, 0)
}

// grid returns the shape of a mapping from params, or paths within params, to lists of values.
func grid(params *Shape) *Shape {
	if params.Free != "" {
		return mapShape("PARAM", oneOrMore(params.Elem))
	}
	s := Record()
	s.Within = params
	for _, k := range params.Keys {
		k.Shape, k.Default, k.Required = oneOrMore(k.Shape), "", false
		s.Keys = append(s.Keys, k)
	}
	return s
}

// Schema returns a JSON Schema (2020-12) of plan files for these kinds, made from the shape that
// decodes them.
func Schema(kinds []world.Kind) ([]byte, error) {
	names := make([]string, len(kinds))
	var docs strings.Builder
	var each []any
	for i, k := range kinds {
		names[i] = k.Name
		fmt.Fprintf(&docs, "\n- %s: %s", k.Name, k.Doc)
		params := paramsShape(k)
		then := object{"properties": object{
			"params": params.JSONSchema(),
			"plan": object{"properties": object{"matrix": object{"properties": object{
				"params":     grid(params).JSONSchema(),
				"variations": object{"additionalProperties": object{"properties": object{"params": variationParams(params).JSONSchema()}}},
			}}}},
		}}
		if !k.ChoosesModels() {
			then["required"] = []string{"agents"}
			then["properties"].(object)["agents"] = object{"minProperties": 1}
		}
		each = append(each, object{"if": object{"properties": object{"kind": object{"const": k.Name}}, "required": []string{"kind"}}, "then": then})
	}
	all := PlanShape(names, mapShape("PARAM", anyShape()))
	if agents := all.Key("agents"); slices.ContainsFunc(kinds, func(k world.Kind) bool { return k.ChoosesModels() }) {
		agents.Required, agents.Shape.Filled = false, false // only some kinds need agents: see each
	}
	root := all.JSONSchema()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "A Parley plan file"
	if len(each) > 0 {
		root["allOf"] = each
		kind := root["properties"].(object)["kind"].(object)
		kind["description"] = fmt.Sprint(kind["description"], docs.String())
	}
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
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

// SchemaName is the name of the schema file that the first line of a plan made by Init refers to. Write
// Schema beside the plan under this name.
const SchemaName = "plan.schema.json"

// Init returns a plan file that names its schema.
func Init(plan string) []byte {
	return []byte("# yaml-language-server: $schema=" + SchemaName + "\n" + strings.TrimLeft(plan, "\n"))
}
