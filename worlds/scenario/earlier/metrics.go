package earlier

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"parley/worlds/scenario/script"
)

// widestRange is the largest value of a number whose range the files do not name.
const widestRange = 1_000_000

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
	if placeholderRE.MatchString(prompt) {
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

// placeholderRE matches a name in braces, which templates of Scenario Lab had.
var placeholderRE = regexp.MustCompile(`\{[a-z_]+\}`)

// pattern takes the regular expression: pattern, regex, or a list of patterns. Broken ones are left out.
func (m *mapping) pattern() string {
	written := list(m.take("pattern", "regex", "patterns"))
	all := slices.DeleteFunc(slices.Clone(written), func(p string) bool {
		why, broken := patternFault(p)
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
	switch fault, broken := patternFault(pattern); {
	case err == nil && re.NumSubexp() > 0: // a group has the value, even yes or no
	case kind == "boolean" && patternWords(pattern) != nil:
		return fields{{"type", "keyword"}, {"keywords", patternWords(pattern)}, {"scoring", "presence"}}
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
	scaleRE = regexp.MustCompile(`(-?\d+(?:\.\d+)?)\s*(?:-|–|to)\s*(\d+(?:\.\d+)?)`)
	endsRE  = regexp.MustCompile(`^[a-z_]*?(\d+)_(\d+)$`)
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
	unit, _ := script.PlainText(m.values["unit"])
	for _, found := range [][]string{endsRE.FindStringSubmatch(unit), scaleRE.FindStringSubmatch(text)} {
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
	m.note("range", "is missing; [0, %d] is written: write the smallest and the largest value, because a value outside is unknown", widestRange)
	return []any{0, widestRange}
}

// lookaroundRE matches what looks ahead or behind.
var lookaroundRE = regexp.MustCompile(`\(\?<?[=!]`)

// patternFault says why an expression cannot be used, or returns "". Those of the earlier Scenario Lab were
// Python's. A broken one never could be used. Any other may be right in Python.
func patternFault(text string) (why string, broken bool) {
	_, err := regexp.Compile(text)
	var e *syntax.Error
	if !errors.As(err, &e) {
		return "", false
	}
	switch e.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidNamedCapture, syntax.ErrInvalidEscape, syntax.ErrInvalidRepeatOp, syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
		if lookaroundRE.MatchString(text) {
			return "looking ahead or behind is not possible", false
		}
		return fmt.Sprintf("%s is not possible", e.Expr), false
	}
	return fmt.Sprintf("%q is not a regular expression: %s", text, e.Code), true
}

// wordsRE matches alternatives without signs of a regular expression.
var wordsRE = regexp.MustCompile(`^(?:\(\?:)?[\pL\d '_-]+\)?(?:\|(?:\(\?:)?[\pL\d '_-]+\)?)*$`)

// patternWords returns the words that an expression finds, if it has only these: a|b. Otherwise it returns nil.
func patternWords(text string) []string {
	if !wordsRE.MatchString(text) {
		return nil
	}
	return strings.Split(strings.NewReplacer("(?:", "", ")", "").Replace(text), "|")
}

// checks converts validation-rules.yaml.
func (c *converter) checks() fields {
	m := c.read(c.find("validation-rules"))
	if m == nil {
		return nil
	}
	var out fields
	out.Add("validation_model", m.model("validation_model"))
	checks, rules := m.checkList()
	each, last := m.flag("run_after_each_turn"), m.flag("run_at_scenario_end")
	if each != nil && !*each {
		out.Add("run_after_each_turn", false)
		if last != nil && !*last {
			m.note("run_at_scenario_end", "nothing was ever checked, so the checks are left out")
			checks, rules = nil, nil
		}
	}
	out.Add("generate_turn_reports", m.take("generate_turn_reports"))
	out.Add("generate_summary", m.take("generate_summary", "generate_summary_report"))
	halt := m.flag("halt_on_critical")
	if r := m.inside("reporting"); r != nil {
		if h := r.flag("halt_on_critical"); h != nil {
			halt = h
		}
		r.rest()
	}
	if m.halts() {
		halt = new(bool)
		*halt = true
	}
	if halt != nil {
		out.Add("halt_on_critical", *halt)
	}
	out.Add("max_issues_before_halt", m.whole("max_issues_before_halt"))
	m.drop("findings are in the run file", "report_format")
	m.drop("every call is part of the cost", "include_in_costs")
	rules = append(rules, m.rules("scenario_specific_rules")...)
	rules = append(rules, m.rules("rules")...)
	out.Add("checks", checks)
	out.Add("scenario_specific_rules", rules)
	m.rest()
	if len(checks) == 0 && len(rules) == 0 {
		return nil
	}
	return out
}

// checkList converts the checks. Checks of other names become rules.
func (m *mapping) checkList() (checks fields, rules []string) {
	for _, one := range m.entries("checks") {
		name := one.text("name")
		on := one.flag("enabled")
		description := strings.TrimSpace(one.text("description") + "\n\n" + one.template())
		severity := strings.ToLower(one.text("severity"))
		switch {
		case on != nil && !*on:
			one.values = nil
		case !slices.Contains(script.Checks(), name) || name == script.CheckRules:
			one.note("", "is written as a rule: there is no check of that name")
			rules = append(rules, strings.TrimSpace(name+": "+description))
		default:
			f := fields{{"enabled", true}}
			if slices.Contains(script.Severities(), severity) {
				f.Add("severity", severity)
			} else if severity != "" {
				one.note("severity", "%s is left out; want one of %s", severity, strings.Join(script.Severities(), ", "))
			}
			f.Add("description", description)
			checks.Add(name, f)
		}
		one.rest()
	}
	return checks, rules
}

// template takes the prompt of a check. The form of its answer is of no use: answers follow a schema.
func (m *mapping) template() string {
	text := m.text("prompt_template")
	if text == "" {
		return ""
	}
	m.note("prompt_template", "is added to the description, without its placeholders: the check says itself what it is about")
	return strings.TrimSpace(placeholderRE.ReplaceAllString(text, ""))
}

// halts takes severity_thresholds, and reports whether an issue may end an episode.
func (m *mapping) halts() bool {
	t := m.inside("severity_thresholds")
	if t == nil {
		return false
	}
	halts := false
	for _, level := range script.Severities() {
		switch action := strings.ToLower(t.text(level)); {
		case action == "halt" || action == "stop" || action == "fail" || action == "abort":
			halts = true
			if level != "critical" {
				t.note(level, "%s: only a critical issue can end an episode", action)
			}
		case action != "":
			t.note(level, "%s has no counterpart: every issue is noted", action)
		}
	}
	t.rest()
	return halts
}

// rules takes rules as texts. A rule by a regular expression becomes a text too.
func (m *mapping) rules(key string) []string {
	var all []string
	items, ok := m.values[key].([]any)
	if !ok {
		if _, byName := m.values[key].(map[string]any); !byName {
			return list(m.take(key))
		}
	}
	for i, item := range items {
		if text, ok := script.PlainText(item); ok {
			all = append(all, text)
			items[i] = nil
		}
	}
	for _, one := range m.entries(key) {
		text := strings.Trim(one.text("name", "id")+": "+one.text("description", "rule", "text"), ": ")
		if p := one.pattern(); p != "" {
			one.note("pattern", "a model checks the rule; for a check by an expression, write a rule for parley score")
			text += " (regular expression: " + p + ")"
		}
		if on := one.flag("enabled"); on != nil && !*on {
			one.note("enabled", "the rule is left out")
			continue
		}
		one.drop("all rules are one check", "severity", "type")
		one.rest()
		all = append(all, text)
	}
	return all
}
