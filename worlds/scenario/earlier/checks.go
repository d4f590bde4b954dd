package earlier

import (
	"slices"
	"strings"

	"parley/worlds/scenario/script"
)

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
	return strings.TrimSpace(placeholder.ReplaceAllString(text, ""))
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
		if text, ok := yamlfileText(item); ok {
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
