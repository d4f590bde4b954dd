package earlier

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// fields are the keys of a mapping, in the order in which they are written, and their values: texts, numbers, true or false,
// lists, mappings or fields.
type fields [][2]any

// literal is a text that is written as it is.
type literal string

// Add adds a key, unless its value is empty.
func (f *fields) Add(key string, value any) {
	empty := false
	switch v := value.(type) {
	case nil:
		empty = true
	case string:
		empty = v == ""
	case int:
		empty = v == 0
	case []string:
		empty = len(v) == 0
	case []any:
		empty = len(v) == 0
	case fields:
		empty = len(v) == 0
	case []fields:
		empty = len(v) == 0
	}
	if empty {
		return
	}
	*f = append(*f, [2]any{key, value})
}

// Set replaces the value of a key, or adds the key.
func (f *fields) Set(key string, value any) {
	if i := f.index(key); i >= 0 {
		(*f)[i][1] = value
		return
	}
	*f = append(*f, [2]any{key, value})
}

// Value returns the value of a key, or nil.
func (f *fields) Value(key string) any {
	if i := f.index(key); i >= 0 {
		return (*f)[i][1]
	}
	return nil
}

func (f *fields) index(key string) int {
	return slices.IndexFunc(*f, func(one [2]any) bool { return one[0] == key })
}

// yamlText returns a single value as text.
func yamlText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v), true
	case bool:
		return strconv.FormatBool(v), true
	case literal:
		return string(v), true
	case int:
		return strconv.Itoa(v), true
	case json.Number:
		return v.String(), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// YAML returns the fields as a file.
func (f fields) YAML() string {
	var b strings.Builder
	writeFields(&b, f, "")
	return b.String()
}

func writeFields(b *strings.Builder, f fields, indent string) {
	for i, one := range f {
		if i > 0 || indent == "" {
			b.WriteString(indent)
		}
		name, _ := yamlText(one[0])
		b.WriteString(scalar(name, "") + ":")
		writeValue(b, one[1], indent)
	}
}

// writeValue writes a value after its key or its dash, and ends the line.
func writeValue(b *strings.Builder, v any, indent string) {
	switch v := v.(type) {
	case fields:
		b.WriteString("\n" + indent + "  ")
		writeFields(b, v, indent+"  ")
	case map[string]any:
		writeValue(b, sorted(v), indent)
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		writeValue(b, list, indent)
	case []fields:
		list := make([]any, len(v))
		for i, f := range v {
			list[i] = f
		}
		writeValue(b, list, indent)
	case []any:
		writeList(b, v, indent)
	case string:
		b.WriteString(" " + scalar(v, indent) + "\n")
	default:
		text, _ := yamlText(v)
		b.WriteString(" " + text + "\n")
	}
}

// writeList writes short lists of single values in one line, and others with a line for each entry.
func writeList(b *strings.Builder, list []any, indent string) {
	short := make([]string, len(list))
	for i, item := range list {
		if text, ok := item.(string); ok {
			short[i] = scalar(text, "")
		} else {
			short[i], _ = yamlText(item)
		}
	}
	line := "[" + strings.Join(short, ", ") + "]"
	long := func(item any) bool {
		text, ok := yamlText(item)
		return !ok || strings.ContainsAny(text, "\n,[]{}#")
	}
	if len(line) < 100 && !slices.ContainsFunc(list, long) {
		b.WriteString(" " + line + "\n")
		return
	}
	b.WriteString("\n")
	for _, item := range list {
		b.WriteString(indent + "  -")
		switch item := item.(type) {
		case fields:
			b.WriteString(" ")
			writeFields(b, item, indent+"    ")
		case map[string]any:
			b.WriteString(" ")
			writeFields(b, sorted(item), indent+"    ")
		default:
			writeValue(b, item, indent+"  ")
		}
	}
}

// sorted returns a mapping as fields, by name.
func sorted(m map[string]any) fields {
	var f fields
	for _, k := range slices.Sorted(maps.Keys(m)) {
		f = append(f, [2]any{k, m[k]})
	}
	return f
}

// bareRE matches texts that YAML reads as themselves without quotes.
var bareRE = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 _./();'%-]*$`)

// scalar writes a text: as it is if YAML reads it as the same text, in a block if it has several lines, or in quotes.
func scalar(text, indent string) string {
	switch strings.ToLower(text) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf":
		return strconv.Quote(text)
	}
	if lines, ok := block(text, indent); ok {
		return lines
	}
	if bareRE.MatchString(text) && !strings.HasSuffix(text, " ") {
		return text
	}
	var b strings.Builder
	e := json.NewEncoder(&b) // YAML reads the texts of JSON
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return strconv.Quote(text) // cannot happen: it is a text
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// block writes a text of several lines that needs no escapes.
func block(text, indent string) (string, bool) {
	if !strings.Contains(text, "\n") || strings.TrimSpace(text) != text || strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff
	}) {
		return "", false
	}
	var b strings.Builder
	b.WriteString("|-")
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \n"); line == "" {
			b.WriteString("\n")
			continue
		}
		b.WriteString("\n" + indent + "  " + line)
	}
	return b.String(), true
}
