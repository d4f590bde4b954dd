package jsongen

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Keys that flatten adds. A schema that has one already gets a wrong but harmless value.
const (
	keyGroups = "\x00groups" // lists of alternatives; a value follows one of each
	keyNever  = "\x00never"  // no value is valid
	keyMerged = "\x00merged" // flatten added this allOf
)

// annotation reports whether a keyword has no effect on which values are valid.
func annotation(k string) bool {
	switch k {
	case "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$schema", "$vocabulary", "default", "definitions",
		"deprecated", "description", "example", "examples", "readOnly", "title", "writeOnly":
		return true
	}
	return false
}

// flatten resolves references and merges allOf. The result has one level of plain keywords, and groups
// of alternatives.
func (c *compiler) flatten(m map[string]any, depth int) (map[string]any, error) {
	if depth > maxNested {
		return nil, errTooLarge
	}
	out := plain(m)
	for _, k := range []string{"dependencies", "dependentSchemas", "not", "unevaluatedItems", "unevaluatedProperties"} {
		_, found := m[k]
		c.hard = c.hard || found // only trying can satisfy it
	}
	if ref, ok := reference(m); ok {
		target, err := c.resolve(ref)
		if err != nil {
			return nil, err
		}
		if out, err = c.mergeIn(out, target, depth); err != nil {
			return nil, err
		}
	}
	if all, ok := m["allOf"].([]any); ok {
		c.hard = c.hard || m[keyMerged] == nil
		for _, s := range all {
			var err error
			if out, err = c.mergeIn(out, s, depth); err != nil {
				return nil, err
			}
		}
	}
	c.addGroups(out, m)
	return out, nil
}

// plain returns a copy of m without annotations and without the keywords that flatten handles.
func plain(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		switch k {
		case "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "then", "else", keyMerged:
		default:
			if !annotation(k) {
				out[k] = v
			}
		}
	}
	return out
}

func (c *compiler) addGroups(out, m map[string]any) {
	groups, _ := out[keyGroups].([]any)
	groups = slices.Clone(groups)
	if any, ok := m["anyOf"].([]any); ok {
		groups = append(groups, any)
	}
	if one, ok := m["oneOf"].([]any); ok {
		c.hard = c.hard || len(one) > 1
		groups = append(groups, one)
	}
	if cond, ok := m["if"]; ok {
		c.hard = true
		then, otherwise := orTrue(m["then"]), orTrue(m["else"])
		groups = append(groups, []any{map[string]any{"allOf": []any{cond, then}}, otherwise})
	}
	if len(groups) > 0 {
		out[keyGroups] = groups
	}
}

func orTrue(s any) any {
	if s == nil {
		return true
	}
	return s
}

func reference(m map[string]any) (string, bool) {
	for _, k := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if s, ok := m[k].(string); ok {
			return s, true
		}
	}
	return "", false
}

// resolve returns the target of a reference inside the document.
func (c *compiler) resolve(ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || (pointer != "" && pointer[0] != '/') {
		return nil, fmt.Errorf("$ref %q: only references of the form #/… are supported", ref)
	}
	at := c.doc
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		if un, err := url.PathUnescape(part); err == nil {
			part = un
		}
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			at = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil, fmt.Errorf("$ref %q points to nothing", ref)
			}
			at = v[i]
		default:
			at = nil
		}
		if at == nil {
			return nil, fmt.Errorf("$ref %q points to nothing", ref)
		}
	}
	return at, nil
}

// mergeIn adds the constraints of s to out.
func (c *compiler) mergeIn(out map[string]any, s any, depth int) (map[string]any, error) {
	switch s := s.(type) {
	case bool:
		if !s {
			out[keyNever] = true
		}
		return out, nil
	case map[string]any:
		flat, err := c.flatten(s, depth+1)
		if err != nil {
			return nil, err
		}
		for _, k := range sortedKeys(flat) {
			if have, ok := out[k]; ok {
				out[k] = c.mergeKey(k, have, flat[k])
			} else {
				out[k] = flat[k]
			}
		}
		return out, nil
	default:
		return nil, fmt.Errorf("a schema must be an object or a boolean")
	}
}

func (c *compiler) mergeKey(key string, a, b any) any {
	if reflect.DeepEqual(a, b) && key != keyGroups {
		return a
	}
	switch key {
	case "type":
		return namesOf(widen(typesNamed(a)) & widen(typesNamed(b)))
	case "required":
		return anys(union(stringsOf(a), stringsOf(b)))
	case "properties":
		return mergeMembers(a, b)
	case "additionalProperties", "contains", "propertyNames":
		return map[string]any{"allOf": []any{a, b}, keyMerged: true}
	case "items":
		_, la := a.([]any)
		_, lb := b.([]any)
		if !la && !lb {
			return map[string]any{"allOf": []any{a, b}, keyMerged: true}
		}
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		return larger(a, b, true)
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		return larger(a, b, false)
	case "enum":
		return intersection(a, b)
	case "uniqueItems":
		return true
	case keyGroups:
		la, _ := a.([]any)
		lb, _ := b.([]any)
		return append(slices.Clone(la), lb...)
	}
	c.hard = true
	return b
}

func mergeMembers(a, b any) any {
	pa, _ := a.(map[string]any)
	pb, _ := b.(map[string]any)
	out := maps.Clone(pa)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range pb {
		if have, ok := out[k]; ok && !reflect.DeepEqual(have, v) {
			v = map[string]any{"allOf": []any{have, v}, keyMerged: true}
		}
		out[k] = v
	}
	return out
}

func larger(a, b any, want bool) any {
	x, okX := rat(a)
	y, okY := rat(b)
	if okX && okY && (x.Cmp(y) > 0) == want {
		return a
	}
	return b
}

func intersection(a, b any) any {
	la, _ := a.([]any)
	lb, _ := b.([]any)
	out := []any{}
	for _, v := range la {
		if slices.ContainsFunc(lb, func(w any) bool { return reflect.DeepEqual(v, w) }) {
			out = append(out, v)
		}
	}
	return out
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// rat decodes a number of any reasonable size.
func rat(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 40 {
		return nil, false
	}
	if f, err := n.Float64(); err != nil || f > 1e18 || f < -1e18 {
		return nil, false
	}
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		if e, err := strconv.Atoi(string(n)[i+1:]); err != nil || e < -40 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(string(n))
}
