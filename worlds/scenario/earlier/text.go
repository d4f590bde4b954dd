package earlier

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// flat returns any value as one text.
func flat(v any) string {
	if text, ok := yamlfileText(v); ok {
		return text
	}
	var parts []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			parts = append(parts, flat(item))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, name+": "+flat(v[name]))
		}
	}
	return strings.Join(parts, "; ")
}

// texts takes a text, a list of texts or a mapping of names to texts. Deeper values become texts.
func (m *mapping) texts(key string) any {
	switch v := m.take(key).(type) {
	case nil:
		return nil
	case []any:
		list := make([]any, 0, len(v))
		for _, item := range v {
			if text := flat(item); text != "" {
				list = append(list, text)
			}
		}
		return list
	case map[string]any:
		var f fields
		for _, name := range slices.Sorted(maps.Keys(v)) {
			f.Add(name, flat(v[name]))
		}
		return f
	default:
		text, _ := yamlfileText(v)
		return text
	}
}

// list returns a value as texts: the entries of a list, or the value itself.
func list(v any) []string {
	items, ok := v.([]any)
	if !ok && v != nil {
		items = []any{v}
	}
	var all []string
	for _, item := range items {
		if text := flat(item); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// numbers returns the whole numbers of a value: of a list, or itself.
func numbers(v any) []any {
	var all []any
	for _, text := range list(v) {
		if n, err := strconv.Atoi(text); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// slug returns a name of lower-case letters and digits. Everything else becomes a mark.
func slug(name string, mark rune) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return mark
	}, strings.ToLower(strings.TrimSpace(name)))
	return strings.Trim(out, string(mark))
}
