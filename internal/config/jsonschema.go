package config

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"parley/internal/yamltree"
)

type object map[string]any

// schema returns s as a JSON Schema.
func (s *shape) schema() object {
	switch s.form {
	case yamltree.Text:
		o := object{"type": "string"}
		if len(s.oneOf) > 0 {
			o["enum"] = s.oneOf
		}
		if s.least > 0 {
			o["minLength"] = s.least
		}
		return o
	case yamltree.Boolean:
		return object{"type": "boolean"}
	case yamltree.Integer:
		return object{"type": "integer", "minimum": json.Number(strconv.FormatInt(s.low, 10)), "maximum": json.Number(strconv.FormatUint(s.high, 10))}
	case yamltree.Number:
		return s.numberSchema()
	case yamltree.Duration:
		return object{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case yamltree.List:
		o := object{"type": "array", "items": s.elem.schema()}
		if s.least > 0 {
			o["minItems"] = s.least
		}
		return o
	case yamltree.Mapping:
		return s.mappingSchema()
	}
	return object{}
}

func (s *shape) numberSchema() object {
	o := object{"type": "number"}
	low, high := "minimum", "maximum"
	if s.above {
		low = "exclusiveMinimum"
	}
	if s.below {
		high = "exclusiveMaximum"
	}
	if !math.IsInf(s.min, -1) {
		o[low] = s.min
	}
	if s.max < math.MaxFloat64 {
		o[high] = s.max
	}
	return o
}

func (s *shape) mappingSchema() object {
	o := object{"type": "object"}
	if s.least > 0 {
		o["minProperties"] = s.least
	}
	if s.free != "" {
		o["additionalProperties"] = s.elem.schema()
		return o
	}
	properties := object{}
	var needed []string
	for _, k := range s.keys {
		one := k.shape.schema()
		if d := k.describe(); d != "" {
			one["description"] = d
		}
		properties[k.name] = one
		if k.needed {
			needed = append(needed, k.name)
		}
	}
	o["properties"], o["additionalProperties"] = properties, false
	if inner := s.within.innerSchemas(); len(inner) > 0 {
		o["patternProperties"] = inner
	}
	if needed != nil {
		o["required"] = needed
	}
	switch has := func(k string) object { return object{"required": []string{k}} }; {
	case s.either:
		o["oneOf"] = []any{has(s.apart[0]), has(s.apart[1])}
	case s.apart[0] != "":
		o["not"] = object{"required": s.apart}
	}
	if s.short != "" {
		return object{"anyOf": []any{s.key(s.short).shape.schema(), o}}
	}
	return o
}

// innerSchemas returns the schemas of lists of values for paths within params, by pattern.
func (s *shape) innerSchemas() object {
	if s == nil {
		return nil
	}
	inner := object{}
	for _, k := range s.keys {
		if k.shape.form != yamltree.Mapping {
			continue
		}
		list := object{"type": "array", "minItems": 1}
		if k.shape.free != "" {
			list["items"] = k.shape.elem.schema()
		}
		inner["^"+regexp.QuoteMeta(k.name)+"[.]."] = list
	}
	return inner
}

// describe returns a key's description and its default.
func (k key) describe() string {
	if k.preset == "" {
		return k.doc
	}
	return strings.TrimSpace(k.doc + " Default: " + k.preset + ".")
}
