package earlier

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// plans writes the plan of the scenario, and one for each batch configuration in the folder.
func (c *converter) plans() {
	c.out.Plan = fmt.Sprintf(`# The scenario %s, converted from a folder of the earlier Scenario Lab. The files name the models.
# To try it without a key, put one simulated model into every seat: --set 'agents={all: sim/large}'

`, c.to) + fields{{"kind", "scenario"}, {"seed", 1}, {"episodes", 1}, {"params", fields{{"folder", c.to}}}}.YAML()
	for _, file := range c.matches("*.yaml", "*.yml") {
		m := c.read(file)
		if m == nil || m.values["experiment_name"] == nil && m.values["base_scenario"] == nil && m.values["variations"] == nil {
			continue
		}
		if plan := c.batch(m); plan != "" {
			c.out.Files[slug(strings.TrimSuffix(path.Base(file), path.Ext(file)), '-')+".yaml"] = plan
		}
	}
}

// batch converts a batch configuration to a plan with a matrix.
func (c *converter) batch(m *mapping) string {
	title := strings.Join(strings.Fields(m.text("experiment_name")), " ")
	about := m.text("description")
	if base := m.text("base_scenario"); base != "" {
		folder := path.Base(path.Clean(base))
		if folder == "definition" {
			folder = path.Base(path.Dir(path.Clean(base)))
		}
		if own := path.Base(c.from); folder != own {
			m.note("base_scenario", "%s is another scenario: convert its folder, with this file in it", base)
			return ""
		}
	}
	b := &batch{c: c, agents: fields{}}
	b.variations(m)
	out := fields{{"kind", "scenario"}, {"seed", 1}}
	out.Add("budget", m.take("budget_limit"))
	out.Add("episode_budget", m.take("cost_per_run_limit"))
	if n := m.whole("max_parallel"); n > 0 {
		out.Add("limits", fields{{"live", n}})
	}
	out.Add("agents", b.agents)
	repeat := max(m.whole("runs_per_variation"), 1)
	if len(b.lineup) > 0 || len(b.params) > 0 {
		var matrix fields
		matrix.Add("lineup", b.lineup)
		matrix.Add("params", b.params)
		matrix.Add("repeat", repeat)
		out.Add("plan", fields{{"matrix", matrix}})
	} else {
		out.Add("episodes", repeat)
	}
	out.Add("params", fields{{"folder", c.to}})
	m.drop("runs are in the run file, and report, compare and export read it", "output_dir", "save_individual_runs", "aggregate_metrics", "resume_from")
	m.drop("limits of time belong to providers", "timeout_per_run")
	m.rest()
	var head strings.Builder
	for line := range strings.Lines(strings.TrimSpace(title + "\n" + about)) {
		head.WriteString(strings.TrimRight("# "+strings.TrimSpace(line), " ") + "\n")
	}
	return head.String() + "\n" + out.YAML()
}

// batch collects the variations of a batch configuration.
type batch struct {
	c                      *converter
	agents, lineup, params fields
}

func (b *batch) variations(m *mapping) {
	if v := m.inside("variations"); v != nil {
		for key, add := range map[string]func(*mapping, string, []string){"actor_models": b.models, "scenario_parameters": b.parameter} {
			inner := v.inside(key)
			if inner == nil {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(inner.values)) {
				add(inner, name, list(inner.values[name]))
			}
		}
		v.rest()
		return
	}
	for _, one := range m.entries("variations") {
		kind := one.text("type")
		values := list(one.take("values"))
		switch kind {
		case "actor_model":
			b.models(one, one.text("actor"), values)
		case "scenario_parameter":
			b.parameter(one, one.text("parameter"), values)
		default:
			one.note("type", "%s has no counterpart and is left out", kind)
		}
		one.rest()
	}
}

// models varies the model of an actor.
func (b *batch) models(m *mapping, actor string, models []string) {
	short, ok := b.c.short[strings.ToLower(actor)]
	if !ok || !slices.Contains(b.c.cast, short) {
		m.note("actor", "%s does not play; the variation is left out", actor)
		return
	}
	var names []string
	for _, model := range models {
		one := &mapping{c: b.c, doc: m.doc, at: m.at, values: map[string]any{"values": model}}
		id := one.model("values")
		name := slug(path.Base(id), '-')
		b.agents.Set(name, fields{{"model", id}})
		names = append(names, name)
	}
	b.lineup.Add(short, names)
}

// parameter varies a key of the scenario.
func (b *batch) parameter(_ *mapping, name string, values []string) {
	switch name {
	case "num_turns":
		name = "turns"
	case "context_window":
		name = "context_window_size"
	}
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
		if _, err := strconv.ParseFloat(v, 64); err == nil || v == "true" || v == "false" {
			all[i] = literal(v)
		}
	}
	b.params.Add("set."+name, all)
}
