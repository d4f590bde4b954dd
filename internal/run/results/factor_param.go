package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// WithoutParams returns params without those that are factors.
func (f *Factors) WithoutParams(params json.RawMessage) string {
	if !f.Any(OfParam) {
		return string(params)
	}
	for _, x := range f.of {
		if x.sort == OfParam {
			params = without(params, strings.TrimPrefix(x.name, "params."))
		}
	}
	return string(params)
}

func without(raw json.RawMessage, path string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return raw
	}
	head, rest, dotted := strings.Cut(path, ".")
	_, whole := fields[path]
	switch inner, there := fields[head]; {
	case whole:
		delete(fields, path)
	case dotted && there:
		fields[head] = without(inner, rest)
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return raw // not reached: it was JSON
	}
	return b
}

// param returns the value at a path of params, as text. It returns a digest of a long value.
func (r *runFactors) param(params json.RawMessage, path string) string {
	known := r.params[string(params)]
	if known == nil {
		known = map[string]string{}
		r.params[string(params)] = known
	}
	level, ok := known[path]
	if !ok {
		level = valueAt(params, path)
		known[path] = level
	}
	return level
}

func valueAt(raw json.RawMessage, path string) string {
	const longest = 64
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return ""
	}
	if v, ok := fields[path]; ok {
		var s string
		var b bytes.Buffer
		switch {
		case json.Unmarshal(v, &s) == nil && s != "" && len(s) <= longest:
			return s
		case json.Compact(&b, v) == nil && b.Len() <= longest:
			return b.String()
		}
		sum := sha256.Sum256(v)
		return fmt.Sprintf("#%x", sum[:4])
	}
	head, rest, dotted := strings.Cut(path, ".")
	if !dotted {
		return ""
	}
	return valueAt(fields[head], rest)
}

// variedParams returns the params that differ between episodes, two levels deep.
func variedParams(runs []*Run) []string {
	first, varied := map[string]string{}, map[string]bool{}
	var walk func(prefix string, raw json.RawMessage, depth int)
	walk = func(prefix string, raw json.RawMessage, depth int) {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return
		}
		for name, v := range fields {
			was, ok := first[prefix+name]
			switch {
			case !ok:
				first[prefix+name] = string(v)
			case was != string(v):
				varied[prefix+name] = true
			}
			if depth < 2 {
				walk(prefix+name+".", v, depth+1)
			}
		}
	}
	const limit = 1000 // of different params to read
	seen := map[string]bool{}
	for _, spec := range specsOf(runs) {
		if !seen[string(spec.Params)] && len(seen) < limit {
			seen[string(spec.Params)] = true
			walk("", spec.Params, 1)
		}
	}
	for path := range varied { // an inner param is more specific
		if head, _, dotted := strings.Cut(path, "."); dotted {
			delete(varied, head)
		}
	}
	return slices.Sorted(maps.Keys(varied))
}
