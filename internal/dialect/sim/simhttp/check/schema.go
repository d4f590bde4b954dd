package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Strict finds the first place where a schema does not follow the rules of native
// structured output: every object must say additionalProperties: false and, where
// allRequired, list all its properties as required. It returns "" when it does.
func Strict(raw json.RawMessage, allRequired bool) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "it is no JSON"
	}
	return strict(v, "", allRequired, 0)
}

func strict(v any, path string, allRequired bool, depth int) string {
	if depth > 100 {
		return "it is too deeply nested"
	}
	switch v := v.(type) {
	case map[string]any:
		if why := strictObject(v, path, allRequired); why != "" {
			return why
		}
		for _, k := range []string{"properties", "$defs", "definitions"} {
			if m, ok := v[k].(map[string]any); ok {
				for _, name := range slices.Sorted(maps.Keys(m)) {
					if why := strict(m[name], path+"/"+k+"/"+name, allRequired, depth+1); why != "" {
						return why
					}
				}
			}
		}
		for _, k := range []string{"items", "anyOf", "oneOf", "allOf", "prefixItems"} {
			if why := strict(v[k], path+"/"+k, allRequired, depth+1); why != "" {
				return why
			}
		}
	case []any:
		for i, s := range v {
			if why := strict(s, fmt.Sprintf("%s/%d", path, i), allRequired, depth+1); why != "" {
				return why
			}
		}
	}
	return ""
}

func strictObject(m map[string]any, path string, allRequired bool) string {
	props, has := m["properties"].(map[string]any)
	if t := m["type"]; t != "object" && !has {
		if list, ok := t.([]any); !ok || !slices.Contains(list, any("object")) {
			return ""
		}
	}
	if path == "" {
		path = "/"
	}
	if m["additionalProperties"] != false {
		return fmt.Sprintf("In context=%s, 'additionalProperties' is required to be supplied and to be false.", path)
	}
	if !allRequired {
		return ""
	}
	list, _ := m["required"].([]any)
	required := make(map[string]bool, len(list))
	for _, v := range list {
		if name, ok := v.(string); ok {
			required[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !required[name] {
			return fmt.Sprintf("In context=%s, 'required' is required to be supplied and to be an array including every key in properties. Missing '%s'.", path, name)
		}
	}
	return ""
}
