package answer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// coerce converts the strings in v that err is about to what the schema wants, if nothing is lost: "12" to 12,
// "true" to true, "{…}" to the object in it. It reports whether it changed anything.
func coerce(v *any, err *jsonschema.ValidationError) bool {
	changed := false
	for _, leaf := range leaves(err) {
		at := locate(v, leaf.InstanceLocation)
		if at == nil {
			continue
		}
		if s, ok := at.value.(string); ok {
			if wanted, ok := convert(s, leaf.ErrorKind); ok {
				at.set(wanted)
				changed = true
			}
		}
	}
	return changed
}

// leaves returns the innermost errors of err.
func leaves(err *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(err.Causes) == 0 {
		return []*jsonschema.ValidationError{err}
	}
	var all []*jsonschema.ValidationError
	for _, c := range err.Causes {
		all = append(all, leaves(c)...)
	}
	return all
}

// convert returns the value of s in the form that the schema wants.
func convert(s string, wanted jsonschema.ErrorKind) (any, bool) {
	switch k := wanted.(type) {
	case *kind.Enum:
		return among(s, k.Want)
	case *kind.Const:
		return among(s, []any{k.Want})
	case *kind.Type:
		return convertType(s, k.Want)
	}
	return nil, false
}

// among returns the allowed value whose text is s.
func among(s string, allowed []any) (any, bool) {
	for _, a := range allowed {
		switch a.(type) {
		case json.Number, bool:
			if fmt.Sprint(a) == s {
				return a, true
			}
		}
	}
	return nil, false
}

func convertType(s string, types []string) (any, bool) {
	wants := func(names ...string) bool {
		return slices.ContainsFunc(types, func(t string) bool { return slices.Contains(names, t) })
	}
	switch {
	case wants("number", "integer") && isNumber(s):
		return json.Number(s), true
	case wants("boolean") && slices.Contains([]string{"true", "false", "True", "False"}, s):
		return s[1:] == "rue", true
	case wants("object", "array") && s != "" && (s[0] == '{' || s[0] == '['):
		v, err := decode([]byte(s))
		return v, err == nil
	}
	return nil, false
}

// slot is a value inside another, and how to change it.
type slot struct {
	value any
	set   func(any)
}

// locate returns the value at path in v, or nil.
func locate(v *any, path []string) *slot {
	at := &slot{value: *v, set: func(to any) { *v = to }}
	for _, step := range path {
		switch in := at.value.(type) {
		case map[string]any:
			e, ok := in[step]
			if !ok {
				return nil
			}
			at = &slot{value: e, set: func(to any) { in[step] = to }}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			at = &slot{value: in[i], set: func(to any) { in[i] = to }}
		default:
			return nil
		}
	}
	return at
}
