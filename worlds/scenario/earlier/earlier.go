// Package earlier converts scenario folders of the earlier Scenario Lab, in each of its spellings, to the
// spelling that package script reads.
//
// What it converts can be played. It reports everything that has no counterpart, with file, line and key. It
// changes no file.
package earlier

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/world"
	"parley/world/part"
	"parley/worlds/scenario/script"
)

// converter collects the files of a converted folder.
type converter struct {
	files  world.Files
	from   string // the folder that is read
	to     string // the name of the folder that is written
	out    part.Converted
	errs   []error
	turns  int
	actors []actor
	short  map[string]string // the short name of an actor by its file, its name or its short name
	cast   []string          // the short names of those who play
	// metrics are those that are written, by name, and order is their order.
	metrics map[string]fields
	order   []string
}

// Convert converts a folder to one with a name. Empty: it keeps its name.
func Convert(files world.Files, folder, name string) (part.Converted, error) {
	c := &converter{
		files: files, from: path.Clean(folder), to: slug(cmp.Or(name, path.Base(path.Clean(folder))), '-'),
		out: part.Converted{Files: map[string]string{}}, short: map[string]string{}, metrics: map[string]fields{},
	}
	if c.find("scenario") == "" {
		return c.out, fmt.Errorf("%s: there is no scenario.yaml in it; name the folder of a scenario", folder)
	}
	c.readActors()
	scenario := c.scenario()
	c.readMetrics()
	checks := c.checks()
	events := c.events()
	end := c.end(scenario)
	c.write("scenario.yaml", append(scenario.out, end...))
	c.writeActors()
	c.writeMetrics()
	c.write("validation-rules.yaml", checks)
	c.write("exogenous-events.yaml", events)
	c.background()
	c.plans()
	if len(c.errs) > 0 {
		return c.out, fmt.Errorf("cannot convert %s: %w", folder, c.errs[0])
	}
	return c.out, nil
}

// find returns the path of a file of the folder, or "". Some folders have a folder definition for their files.
func (c *converter) find(name string) string {
	for _, pattern := range []string{name + ".yaml", name + ".yml", "definition/" + name + ".yaml", "definition/" + name + ".yml"} {
		if found := c.files.Match(c.from + "/" + pattern); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// matches returns the files of the folder, and of its folder definition, that match a pattern.
func (c *converter) matches(patterns ...string) []string {
	var all []string
	for _, p := range patterns {
		all = append(all, c.files.Match(c.from+"/"+p)...)
		all = append(all, c.files.Match(c.from+"/definition/"+p)...)
	}
	return all
}

// read reads a file. It returns nil if there is none, or if it is not a mapping.
func (c *converter) read(file string) *mapping {
	if file == "" {
		return nil
	}
	m := map[string]any{}
	doc, err := c.files.YAML(file, &m)
	if err != nil || doc == nil {
		c.errs = append(c.errs, err)
		return nil
	}
	return &mapping{c: c, doc: doc, values: m}
}

// write adds a file, unless it is empty.
func (c *converter) write(name string, f fields) {
	if len(f) > 0 {
		c.out.Files[c.to+"/"+name] = c.yaml(f)
	}
}

// background copies the documents.
func (c *converter) background() {
	for _, file := range c.matches("background/*.md", "background/*.txt") {
		text, err := c.files.Text(file)
		if err != nil {
			c.errs = append(c.errs, err)
			continue
		}
		c.out.Files[c.to+"/background/"+path.Base(file)] = text
	}
}

// mapping is a mapping of a file. Its keys are taken one by one. What is left has no counterpart.
type mapping struct {
	c      *converter
	doc    world.Document
	at     string // its key in the file; "" for all of it
	values map[string]any
}

// key returns the path of a key in the file.
func (m *mapping) key(k string) string {
	switch {
	case m.at == "":
		return k
	case k == "":
		return m.at
	}
	return m.at + "." + k
}

// note reports what happens to a key.
func (m *mapping) note(key, format string, args ...any) {
	m.c.out.Report = append(m.c.out.Report, m.doc.Place(m.key(key))+": "+fmt.Sprintf(format, args...))
}

// take removes the first of several keys with the same meaning and returns its value, or nil.
func (m *mapping) take(keys ...string) any {
	var value any
	for _, k := range keys {
		v, there := m.values[k]
		switch {
		case there && v != nil && value != nil:
			m.note(k, "is left out: an earlier key means the same")
		case there && value == nil:
			value = v
		}
		delete(m.values, k)
	}
	return value
}

// text takes a single value as text.
func (m *mapping) text(keys ...string) string {
	v := m.take(keys...)
	text, ok := script.PlainText(v)
	if !ok && v != nil {
		text = flat(v)
	}
	return text
}

// flag takes true or false. It returns nil for everything else.
func (m *mapping) flag(key string) *bool {
	if v, ok := m.values[key].(bool); ok {
		delete(m.values, key)
		return &v
	}
	return nil
}

// whole takes a whole number, or returns 0.
func (m *mapping) whole(keys ...string) int {
	n, _ := strconv.Atoi(m.text(keys...))
	return n
}

// drop removes keys that have no effect, and says why.
func (m *mapping) drop(why string, keys ...string) {
	for _, k := range keys {
		if m.values[k] != nil {
			m.note(k, "is left out: %s", why)
		}
		delete(m.values, k)
	}
}

// rest reports the keys that nobody took.
func (m *mapping) rest() {
	if m == nil {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(m.values)) {
		if m.values[k] != nil {
			m.note(k, "has no counterpart and is left out")
		}
	}
}

// inside returns a mapping inside m, or nil.
func (m *mapping) inside(key string) *mapping {
	v, ok := m.values[key].(map[string]any)
	if !ok {
		return nil
	}
	delete(m.values, key)
	return &mapping{c: m.c, doc: m.doc, at: m.key(key), values: v}
}

// entries returns the mappings of a list, or of a mapping by name. A name is added to those that lack it.
func (m *mapping) entries(key string) []*mapping {
	var all []*mapping
	switch v := m.values[key].(type) {
	case []any:
		for i, item := range v {
			at := m.key(key) + "[" + strconv.Itoa(i) + "]"
			if inner, ok := item.(map[string]any); ok {
				all = append(all, &mapping{c: m.c, doc: m.doc, at: at, values: inner})
			} else if item != nil {
				m.c.out.Report = append(m.c.out.Report, m.doc.Place(at)+": is not a mapping and is left out")
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner, ok := v[name].(map[string]any)
			if !ok {
				inner = map[string]any{"description": v[name]}
			}
			if inner["name"] == nil {
				inner["name"] = name
			}
			all = append(all, &mapping{c: m.c, doc: m.doc, at: m.key(key) + "." + name, values: inner})
		}
	case nil:
	default:
		return nil // rest reports it
	}
	delete(m.values, key)
	return all
}

// model takes a model. Scenario Lab called models through OpenRouter, except those of Ollama.
func (m *mapping) model(keys ...string) string {
	name := m.text(keys...)
	provider, rest, ok := strings.Cut(name, "/")
	switch {
	case name == "" || provider == "openrouter" || provider == "ollama" || provider == "sim":
		return name
	case provider == "local":
		m.note(keys[0], "%s: models on your own machine are those of ollama now", name)
		return "ollama/" + rest
	case !ok:
		m.note(keys[0], "%s: has no provider; openrouter/openai/%s is written", name, name)
		return "openrouter/openai/" + name
	}
	return "openrouter/" + name
}

// defaultModel is the model of Scenario Lab where the files name none.
const defaultModel = "openrouter/openai/gpt-4o-mini"

// flat returns any value as one text.
func flat(v any) string {
	if text, ok := script.PlainText(v); ok {
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
		text, _ := script.PlainText(v)
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
