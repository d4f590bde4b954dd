package earlier

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// wide is the largest value of a number whose range the files do not name.
const wide = 1_000_000

func (c *converter) readMetrics() {
	m := c.read(c.find("metrics"))
	if m == nil {
		return
	}
	model := m.model("extraction_model", "model")
	thresholds := m.inside("thresholds")
	for _, one := range m.entries("metrics") {
		c.metric(one, model, thresholds)
	}
	thresholds.rest()
	m.drop("every metric of every turn is in the run file", "export_format", "auto_export", "export_path")
	delete(m.values, "scenario_name")
	delete(m.values, "schema_version")
	m.rest()
}

// metric converts a metric, of any version.
func (c *converter) metric(m *mapping, model string, thresholds *mapping) {
	written := m.text("name")
	name := slug(written, '_')
	if name == "turns" || name == "issues" || name == "" {
		name += "_metric"
	}
	if name != written {
		m.note("name", "%s is written as %s", written, name)
	}
	description := m.text("description")
	if description == "" {
		description = written
	}
	if on := m.flag("enabled"); on != nil && !*on {
		m.note("enabled", "%s is left out", name)
		return
	}
	if _, twice := c.metrics[name]; twice {
		m.note("name", "a second metric is called %s and is left out", name)
		return
	}
	out := fields{{"name", name}, {"description", description}}
	kind := metricType(m.text("type", "data_type"))
	extraction, prompt := c.extraction(m, &kind, model, description)
	categories := list(m.take("categories", "values", "options"))
	if kind == "categorical" && len(categories) < 2 {
		m.note("categories", "%s is left out: it has no categories; write two or more, from least to most", name)
		return
	}
	out.Add("type", kind)
	if kind == "continuous" {
		out.Add("range", m.limits(description+" "+prompt))
	}
	if kind == "categorical" {
		out.Add("categories", categories)
	}
	out.Add("extraction", extraction)
	out.Add("unit", m.text("unit"))
	if on := m.flag("actor_specific"); on != nil && *on {
		out.Add("actor_specific", true)
	}
	out.Add("warning_threshold", m.take("warning_threshold"))
	out.Add("critical_threshold", m.take("critical_threshold"))
	if thresholds != nil {
		if t := thresholds.inside(written); t != nil {
			out.Add("warning_threshold", t.take("warning"))
			out.Add("critical_threshold", t.take("critical"))
			t.rest()
		}
	}
	m.drop("every turn is measured separately, and a report shows all of them", "aggregation")
	m.rest()
	c.addMetric(name, out)
}

func (c *converter) addMetric(name string, out fields) {
	c.metrics[name] = out
	c.order = append(c.order, name)
}

// writeMetrics writes the metrics, those that events need included.
func (c *converter) writeMetrics() {
	var all []fields
	for _, name := range c.order {
		all = append(all, c.metrics[name])
	}
	if len(all) > 0 {
		c.write("metrics.yaml", fields{{"metrics", all}})
	}
}

// metricType returns today's type of a metric.
func metricType(word string) string {
	switch strings.ToLower(word) {
	case "categorical", "category", "string", "str", "text", "enum":
		return "categorical"
	case "boolean", "bool":
		return "boolean"
	}
	return "continuous"
}

// extraction converts how a metric is measured. It also returns the prompt.
func (c *converter) extraction(m *mapping, kind *string, model, description string) (out fields, prompt string) {
	e := m.inside("extraction")
	if e == nil {
		e = &mapping{c: c, doc: m.doc, at: m.at, values: m.values} // version 1 has the keys at the metric
	} else {
		defer e.rest()
	}
	how := strings.ToLower(e.text("extraction_type", "extraction_method"))
	if e.at != m.at {
		how = strings.ToLower(e.text("type"))
	}
	if own := e.model("model"); own != "" {
		model = own
	}
	prompt = e.text("prompt", "extraction_prompt", "prompt_template")
	if placeholder.MatchString(prompt) {
		e.note("prompt", "its placeholders in braces are not filled: the text is part of the question anyway")
	}
	pattern := e.pattern()
	keywords, scoring := list(e.take("keywords")), e.text("scoring")
	switch {
	case how == "manual":
		out.Add("type", "manual")
		out.Add("values", e.take("values"))
		return out, prompt
	case len(keywords) > 0:
		if scoring == "" && *kind == "boolean" {
			scoring = "presence"
		}
		out = fields{{"type", "keyword"}, {"keywords", keywords}}
		out.Add("scoring", scoring)
		return out, prompt
	case pattern != "":
		return e.byPattern(pattern, *kind, description), prompt
	}
	out.Add("type", "llm")
	out.Add("prompt", prompt)
	out.Add("model", model)
	return out, prompt
}

// placeholder matches a name in braces, which templates of Scenario Lab had.
var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// pattern takes the regular expression: pattern, regex, or a list of patterns. Broken ones are left out.
func (m *mapping) pattern() string {
	written := list(m.take("pattern", "regex", "patterns"))
	all := slices.DeleteFunc(slices.Clone(written), func(p string) bool {
		why, broken := expressionFault(p)
		if broken {
			m.note("pattern", "%s; it is left out", why)
		}
		return broken
	})
	if len(all) == 0 && len(written) > 0 {
		m.note("pattern", "none is left: a model is asked instead")
	}
	if len(all) > 1 {
		for i, p := range all {
			all[i] = "(?:" + p + ")"
		}
	}
	return strings.Join(all, "|")
}

// byPattern measures with a regular expression, if today's can say the same.
func (m *mapping) byPattern(pattern, kind, description string) fields {
	re, err := regexp.Compile(pattern)
	switch fault, broken := expressionFault(pattern); {
	case err == nil && re.NumSubexp() > 0: // a group has the value, even yes or no
	case kind == "boolean" && expressionWords(pattern) != nil:
		return fields{{"type", "keyword"}, {"keywords", expressionWords(pattern)}, {"scoring", "presence"}}
	case kind == "boolean" || err != nil:
		m.note("pattern", "%s: a model is asked instead", cmp.Or(fault, "a pattern finds a value, not whether something is there"))
		if broken {
			return fields{{"type", "llm"}, {"prompt", description}}
		}
		return fields{{"type", "llm"}, {"prompt", description + " The text to look for, as a regular expression: " + pattern}}
	}
	return fields{{"type", "pattern"}, {"pattern", pattern}}
}

var (
	scale = regexp.MustCompile(`(-?\d+(?:\.\d+)?)\s*(?:-|–|to)\s*(\d+(?:\.\d+)?)`)
	ends  = regexp.MustCompile(`^[a-z_]*?(\d+)_(\d+)$`)
)

// limits returns the range of a number: as written, or as its text or its unit says.
func (m *mapping) limits(text string) []any {
	if r, ok := m.take("range").([]any); ok && len(r) == 2 {
		return r
	}
	low, high := m.take("min", "min_value"), m.take("max", "max_value")
	if low != nil && high != nil {
		return []any{low, high}
	}
	unit, _ := yamlfileText(m.values["unit"])
	for _, found := range [][]string{ends.FindStringSubmatch(unit), scale.FindStringSubmatch(text)} {
		if found == nil {
			continue
		}
		low, err1 := strconv.ParseFloat(found[1], 64)
		high, err2 := strconv.ParseFloat(found[2], 64)
		if err1 == nil && err2 == nil && low < high {
			m.note("range", "is missing; [%s, %s] is read from the text", found[1], found[2])
			return []any{low, high}
		}
	}
	if slices.Contains([]string{"percent", "percentage", "%"}, unit) {
		return []any{0, 100}
	}
	m.note("range", "is missing; [0, %d] is written: write the smallest and the largest value, because a value outside is unknown", wide)
	return []any{0, wide}
}
