package earlier

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/worlds/scenario/script"
)

// events converts exogenous-events.yaml. There were three forms of it.
func (c *converter) events() fields {
	file := c.find("exogenous-events")
	if file == "" {
		file = c.find("events")
	}
	m := c.read(file)
	if m == nil {
		return nil
	}
	var all []fields
	for _, l := range []struct{ key, kind string }{
		{"exogenous_events", ""}, {"events", ""}, {"trends", script.EventTrend}, {"random_events", script.EventRandom},
		{"conditional_events", script.EventConditional}, {"scheduled_events", script.EventScheduled},
	} {
		for _, e := range m.entries(l.key) {
			for _, out := range c.event(e, l.kind) {
				name := out.Value("name")
				for n := 2; slices.ContainsFunc(all, func(f fields) bool { return f.Value("name") == out.Value("name") }); n++ {
					out.Set("name", fmt.Sprintf("%s_%d", name, n))
				}
				all = append(all, out)
			}
			e.rest()
		}
	}
	m.rest()
	if len(all) == 0 {
		return nil
	}
	return fields{{"exogenous_events", all}}
}

// event converts an event. It makes several of one whose effects change over the turns.
func (c *converter) event(e *mapping, kind string) []fields {
	name := e.text("name", "id")
	delete(e.values, "id")
	if name == "" {
		name = "event"
	}
	description := e.text("description")
	if on := e.flag("enabled"); on != nil && !*on {
		e.note("enabled", "%s is left out", name)
		e.values = nil
		return nil
	}
	if written := strings.ToLower(e.text("type")); written != "" {
		kind = written
	}
	out := fields{{"name", name}}
	when, kind, ok := c.when(e, name, kind)
	if !ok {
		e.values = nil
		return nil
	}
	once := e.flag("once")
	repeats := kind == script.EventTrend && when.Value("frequency") == nil || len(numbers(when.Value("turns"))) > 1
	if when.Value("frequency") == nil && kind == script.EventTrend {
		kind = script.EventRandom // by chance in each turn
	}
	finish := func(description string, turns []any) fields {
		f := slices.Clone(out)
		f.Add("description", description)
		f.Add("type", kind)
		f = append(f, when...)
		if turns != nil {
			f.Set("turn_range", turns)
		}
		if once != nil && kind != script.EventTrend {
			f.Add("once", *once)
		} else if repeats {
			f.Add("once", false)
		}
		return f
	}
	more, stages := e.effects()
	if len(stages) == 0 {
		return []fields{finish(join(description, more), nil)}
	}
	var all []fields
	for _, s := range stages {
		all = append(all, finish(join(description, more, s.text), s.turns))
	}
	return all
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// stage is an effect of an event in some turns.
type stage struct {
	text  string
	turns []any
}

// effects takes what happens: texts, and stages that have turns of their own.
func (m *mapping) effects() (text string, stages []stage) {
	var texts []string
	for _, key := range []string{"effect", "effects", "impact"} {
		if items, ok := m.values[key].([]any); ok {
			for i, item := range items {
				inner, _ := item.(map[string]any)
				s := &mapping{c: m.c, doc: m.doc, at: m.key(key) + "[" + strconv.Itoa(i) + "]", values: inner}
				if turns := s.turnRange(); turns != nil {
					stages = append(stages, stage{turns: turns, text: join(s.text("description"), s.text("effect", "impact"))})
					s.rest()
					continue
				}
				if inner != nil {
					s.note("", "is written as a text")
				}
				texts = append(texts, flat(item))
			}
			delete(m.values, key)
			continue
		}
		if t := m.text(key); t != "" {
			texts = append(texts, t)
		}
	}
	if len(texts) > 0 && len(stages) > 0 {
		m.note("effects", "what has no turn is told in the turns of the others")
	}
	return strings.Join(texts, " "), stages
}

// when converts when an event happens. It is not ok if it never can.
func (c *converter) when(e *mapping, name, kind string) (out fields, as string, ok bool) {
	turns := numbers(e.take("turns"))
	turns = append(turns, numbers(e.take("turn"))...)
	if s := e.inside("schedule"); s != nil {
		turns = append(turns, numbers(s.take("turns", "turn"))...)
		s.rest()
	} else {
		turns = append(turns, numbers(e.take("schedule"))...)
	}
	chance := e.take("probability", "probability_per_turn", "chance")
	every := e.whole("frequency", "interval")
	if kind == "" {
		kind = impliedType(every, turns, chance)
	}
	out.Add("turn_range", anyOrNil(e.turnRange()))
	conditions := c.conditions(e, "conditions", "condition", "trigger")
	switch {
	case kind == script.EventConditional && len(conditions) == 0:
		e.note("conditions", "%s is left out: it never happens", name)
		return nil, kind, false
	case kind == script.EventScheduled && len(turns) == 0:
		e.note("turn", "%s is left out: it has no turn", name)
		return nil, kind, false
	case kind == script.EventRandom && chance == nil:
		e.note("probability", "%s has none; 0 is written, so it never happens until you write another", name)
		chance = 0
	case kind == script.EventTrend && every == 0 && chance == nil:
		every = 1
		e.note("frequency", "%s has none; 1 is written", name)
	}
	if kind == script.EventTrend && out.Value("turn_range") == nil {
		out.Add("turn_range", []any{1, c.turns})
	}
	out.Add("frequency", every)
	out.Add("probability", chance)
	out.Add("conditions", conditions)
	out.Add("turns", anyOrNil(turns))
	return out, kind, true
}

func impliedType(every int, turns []any, chance any) string {
	switch {
	case every > 0:
		return script.EventTrend
	case len(turns) > 0:
		return script.EventScheduled
	case chance != nil:
		return script.EventRandom
	}
	return script.EventConditional
}

// anyOrNil returns nil for an empty list.
func anyOrNil(v []any) any {
	if len(v) == 0 {
		return nil
	}
	return v
}

// turnRange takes the first and the last turn, in any form.
func (m *mapping) turnRange() []any {
	var first, last int
	switch v := m.take("turn_range").(type) {
	case []any:
		if n := numbers(v); len(n) == 2 {
			first, last = n[0].(int), n[1].(int)
		}
	case map[string]any:
		first, last = toInt(v["start"]), toInt(v["end"])
	case string:
		parts := strings.FieldsFunc(v, func(r rune) bool { return r < '0' || r > '9' })
		if len(parts) == 2 {
			first, last = toInt(parts[0]), toInt(parts[1])
		}
	}
	start, end := m.whole("start_turn"), m.whole("end_turn")
	if n := m.whole("turn"); n > 0 {
		start, end = n, n
	}
	if first == 0 {
		first = start
	}
	if last == 0 {
		last = end
	}
	switch {
	case first == 0 && last == 0:
		return nil
	case last == 0:
		last = max(first, m.c.turns)
	}
	return []any{max(first, 1), last}
}

func toInt(v any) int {
	text, _ := script.PlainText(v)
	n, _ := strconv.Atoi(text)
	return n
}

// conditions takes conditions in any form. All had to hold, and one on a metric that is not measured never did, so then it returns
// none.
func (c *converter) conditions(m *mapping, keys ...string) fields {
	all := &conditions{mapping: m, key: keys[0]}
	all.read(m.take(keys...))
	if all.never {
		return nil
	}
	return all.out
}

// conditions are those of one event, while they are converted.
type conditions struct {
	*mapping
	key   string
	out   fields
	never bool
}

func (c *conditions) read(v any) {
	switch v := v.(type) {
	case nil:
	case []any:
		for _, item := range v {
			c.read(item)
		}
	case map[string]any:
		if pattern, ok := script.PlainText(v["pattern"]); ok {
			sensitivity, _ := script.PlainText(v["sensitivity"])
			c.seen(pattern, sensitivity)
			return
		}
		if name, ok := script.PlainText(v["metric"]); ok {
			op, _ := script.PlainText(first(v, "operator", "op"))
			with, _ := script.PlainText(first(v, "value", "threshold"))
			c.keep(name, op+" "+with)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			with, _ := script.PlainText(v[name])
			c.keep(name, with)
		}
	default:
		text, _ := script.PlainText(v)
		all, err := script.ParseConditions(text)
		if err != nil {
			c.note(c.key, "%q is not a comparison of a metric with a value", text)
			c.never = true
		}
		for _, one := range all {
			name, _, _ := strings.Cut(one.String(), " ")
			c.keep(name, one.Op+" "+one.Value)
		}
	}
}

// keep adds a comparison of a metric that is written.
func (c *conditions) keep(name, with string) {
	cond, err := script.Compare(name, with)
	metric := slug(cond.Metric, '_')
	switch _, known := c.c.metrics[metric]; {
	case err != nil:
		c.note(c.key, "%s %s is not a comparison with a value", name, with)
		c.never = true
	case !known:
		c.note(c.key, "there is no metric %s, so it never holds", name)
		c.never = true
	default:
		if cond.Actor != "" {
			metric = cond.Actor + "." + metric
		}
		c.out.Add(metric, cond.Op+" "+cond.Value)
	}
}

func first(m map[string]any, names ...string) any {
	for _, name := range names {
		if v := m[name]; v != nil {
			return v
		}
	}
	return nil
}

// seen converts a condition on words of the situation: it adds a metric for each expression.
func (c *conditions) seen(patterns ...string) {
	for _, p := range patterns {
		if p == "" {
			continue
		}
		name := "says_" + slug(p, '_')
		if len(name) > 40 {
			name = strings.TrimRight(name[:40], "_")
		}
		if _, ok := c.c.metrics[name]; !ok {
			description := "Whether the situation says: " + p
			c.c.addMetric(name, fields{{"name", name}, {"description", description}, {"type", "boolean"}, {"extraction", c.byPattern(p, "boolean", description)}})
			c.note(c.key, "the metric %s is added for the words %s", name, p)
		}
		c.out.Add(name, "== true")
	}
}
