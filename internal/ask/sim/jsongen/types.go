package jsongen

import (
	"encoding/json"
	"maps"
	"slices"
)

// typeNames lists the types in the order of their bits.
func typeNames() []string {
	return []string{"null", "boolean", "integer", "number", "string", "array", "object"}
}

// typesNamed decodes the value of a type keyword.
func typesNamed(v any) types {
	var t types
	for _, name := range stringsOf(v) {
		if i := slices.Index(typeNames(), name); i >= 0 {
			t |= 1 << i
		}
	}
	return t
}

func namesOf(t types) []any {
	out := []any{}
	for i, name := range typeNames() {
		if t&(1<<i) != 0 && !(name == "integer" && t&tNumber != 0) {
			out = append(out, name)
		}
	}
	return out
}

// widen adds integer to number, since every integer is a number.
func widen(t types) types {
	if t&tNumber != 0 {
		t |= tInteger
	}
	return t
}

// typesOf returns the types that a flat schema allows. Without a type keyword, the other keywords
// decide.
func typesOf(m map[string]any) types {
	if v, ok := m["type"]; ok {
		return typesNamed(v)
	}
	if m["enum"] != nil {
		return tAny
	}
	if _, ok := m["const"]; ok {
		return tAny
	}
	for _, hint := range keywordTypes() {
		for _, k := range hint.keys {
			if _, ok := m[k]; ok {
				return hint.types
			}
		}
	}
	return tString
}

type keywordType struct {
	types types
	keys  []string
}

// keywordTypes returns the types that keywords apply to.
func keywordTypes() []keywordType {
	return []keywordType{
		{tObject, []string{"properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames"}},
		{tArray, []string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"}},
		{tString, []string{"pattern", "minLength", "maxLength", "format"}},
		{tNumber, []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	}
}

func typeOfValue(v any) types {
	switch v := v.(type) {
	case nil:
		return tNull
	case bool:
		return tBool
	case json.Number:
		if x, ok := rat(v); ok && x.IsInt() {
			return tInteger | tNumber
		}
		return tNumber
	case string:
		return tString
	case []any:
		return tArray
	default:
		return tObject
	}
}

// stringsOf decodes a string or a list of strings.
func stringsOf(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	default:
		return nil
	}
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// count decodes a keyword that is a number of things.
func count(m map[string]any, key string, otherwise int) int {
	n, ok := m[key].(json.Number)
	if !ok {
		return otherwise
	}
	f, err := n.Float64()
	if err != nil || f < 0 || f > maxBytes {
		return maxBytes
	}
	return int(f)
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
