package planfile

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"parley/internal/kit/yamltree"
)

// Object is a JSON object of a schema.
type Object map[string]any

// JSONSchema returns s as a JSON Schema.
func (s *Shape) JSONSchema() Object {
	switch s.Form {
	case yamltree.Text:
		o := Object{"type": "string"}
		if len(s.oneOf) > 0 {
			o["enum"] = s.oneOf
		}
		if s.MinLen > 0 {
			o["minLength"] = s.MinLen
		}
		return o
	case yamltree.Boolean:
		return Object{"type": "boolean"}
	case yamltree.Integer:
		return Object{"type": "integer", "minimum": json.Number(strconv.FormatInt(s.low, 10)), "maximum": json.Number(strconv.FormatUint(s.high, 10))}
	case yamltree.Number:
		return s.numberSchema()
	case yamltree.Duration:
		return Object{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case yamltree.List:
		o := Object{"type": "array", "items": s.Elem.JSONSchema()}
		if s.MinLen > 0 {
			o["minItems"] = s.MinLen
		}
		return o
	case yamltree.Mapping:
		return s.mappingSchema()
	}
	return Object{}
}

func (s *Shape) numberSchema() Object {
	o := Object{"type": "number"}
	low, high := "minimum", "maximum"
	if s.Above {
		low = "exclusiveMinimum"
	}
	if s.Below {
		high = "exclusiveMaximum"
	}
	if !math.IsInf(s.Min, -1) {
		o[low] = s.Min
	}
	if s.Max < math.MaxFloat64 {
		o[high] = s.Max
	}
	return o
}

func (s *Shape) mappingSchema() Object {
	o := Object{"type": "object"}
	if s.MinLen > 0 {
		o["minProperties"] = s.MinLen
	}
	if s.Free != "" {
		o["additionalProperties"] = s.Elem.JSONSchema()
		return o
	}
	properties := Object{}
	var needed []string
	for _, k := range s.Keys {
		one := k.Shape.JSONSchema()
		if d := k.describe(); d != "" {
			one["description"] = d
		}
		properties[k.Name] = one
		if k.Required {
			needed = append(needed, k.Name)
		}
	}
	o["properties"], o["additionalProperties"] = properties, false
	if inner := s.Within.innerSchemas(); len(inner) > 0 {
		o["patternProperties"] = inner
	}
	if needed != nil {
		o["required"] = needed
	}
	switch has := func(k string) Object { return Object{"required": []string{k}} }; {
	case s.OneRequired:
		o["oneOf"] = []any{has(s.Exclusive[0]), has(s.Exclusive[1])}
	case s.Exclusive[0] != "":
		o["not"] = Object{"required": s.Exclusive}
	}
	if s.Shorthand != "" {
		return Object{"anyOf": []any{s.Key(s.Shorthand).Shape.JSONSchema(), o}}
	}
	return o
}

// innerSchemas returns the schemas of lists of values for paths within params, by pattern.
func (s *Shape) innerSchemas() Object {
	if s == nil {
		return nil
	}
	inner := Object{}
	for _, k := range s.Keys {
		if k.Shape.Form != yamltree.Mapping {
			continue
		}
		list := Object{"type": "array", "minItems": 1}
		if k.Shape.Free != "" {
			list["items"] = k.Shape.Elem.JSONSchema()
		}
		inner["^"+regexp.QuoteMeta(k.Name)+"[.]."] = list
	}
	return inner
}

// describe returns a key's description and its default.
func (k Key) describe() string {
	if k.Default == "" {
		return k.Doc
	}
	return strings.TrimSpace(k.Doc + " Default: " + k.Default + ".")
}
