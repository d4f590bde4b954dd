package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/world"
)

// texts reads a value that is a text, a list of texts, or a mapping of names to
// texts.
func (r *reader) texts(d world.Document, key string, v any) []string {
	var out []string
	switch v := v.(type) {
	case nil:
	case []any:
		for i, item := range v {
			text, ok := plain(item)
			if !ok {
				if text, ok = pairs(item); !ok {
					r.fail(d, key+"["+strconv.Itoa(i)+"]", "wants a text, or a mapping of names to texts")
					continue
				}
			}
			if text != "" {
				out = append(out, text)
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			text, ok := plain(v[name])
			if !ok {
				text = strings.Join(r.texts(d, key+"."+name, v[name]), "; ")
			}
			out = append(out, name+": "+text)
		}
	default:
		if text, ok := plain(v); ok && text != "" {
			out = bullets(text)
		}
	}
	return out
}

// bullets splits a text whose lines are all bullet points. Any other text is one item.
func bullets(text string) []string {
	var items []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		item, ok := strings.CutPrefix(line, "- ")
		if !ok {
			if item, ok = strings.CutPrefix(line, "* "); !ok {
				return []string{text}
			}
		}
		items = append(items, strings.TrimSpace(item))
	}
	return items
}

// plain returns a single value as text.
func plain(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v), true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// pairs formats a mapping of single values as "name: text; name: text".
func pairs(v any) (string, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return "", false
	}
	parts := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		text, ok := plain(m[name])
		if !ok {
			return "", false
		}
		parts = append(parts, name+": "+text)
	}
	return strings.Join(parts, "; "), true
}

// value returns what a pointer points to, or a default.
func value[T any](p *T, or T) T {
	if p == nil {
		return or
	}
	return *p
}

// whole reads a whole number.
func whole(v any) (int, bool) {
	text, ok := plain(v)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

func at(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
