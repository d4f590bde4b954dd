package earlier

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/worlds/scenario/script"
)

// situation is scenario.yaml while it is converted.
type situation struct {
	*mapping
	out    fields
	length *mapping // scenario_length, whose condition needs the metrics
	params *mapping // parameters, where some folders have what others have at the top
}

// defaultTurns is how many turns Scenario Lab played if nothing said how many.
const defaultTurns = 10

func (c *converter) scenario() *situation {
	s := &situation{mapping: c.read(c.find("scenario"))}
	if s.mapping == nil {
		return s
	}
	s.out.Add("name", s.text("name"))
	for _, k := range []string{"description", "author"} {
		s.out.Add(k, s.text(k))
	}
	s.out.Add("tags", s.texts("tags"))
	s.out.Add("system_prompt", s.text("system_prompt"))
	s.out.Add("initial_world_state", s.text("initial_world_state"))
	s.out.Add("background_information", s.texts("background_information"))
	if s.params = s.inside("parameters"); s.params == nil {
		s.params = &mapping{c: c, doc: s.doc, values: map[string]any{}}
	}
	s.out.Add("turn_duration", cmp.Or(s.text("turn_duration"), s.params.text("turn_duration")))
	s.readTurns()
	s.params.rest()
	s.readCast()
	s.readModel()
	s.out.Add("context_window_size", s.whole("context_window_size", "context_window"))
	s.talk()
	for _, k := range []string{"enable_black_swans", "allow_actor_reflection", "parallel_action_resolution"} {
		s.out.Add(k, s.take(k))
	}
	s.out.Add("black_swan_probability", s.take("black_swan_probability"))
	delete(s.values, "schema_version") // of the earlier files
	s.rest()
	return s
}

func (s *situation) readModel() {
	model := s.model("world_state_model")
	if model == "" {
		model = defaultModel
		s.note("world_state_model", "is missing; %s is written, which was the default", model)
	}
	s.out.Add("world_state_model", model)
}

// readTurns reads the number of turns.
func (s *situation) readTurns() {
	s.length = s.inside("scenario_length")
	n := cmp.Or(s.whole("turns", "num_turns", "max_turns"), s.params.whole("max_turns", "num_turns", "turns"))
	if s.length != nil {
		if l := s.length.whole("turns"); n == 0 {
			n = l
		}
	}
	if n == 0 {
		n = defaultTurns
		s.note("turns", "is missing; %d is written, which was the default", n)
	}
	s.c.turns = n
	s.out.Add("turns", n)
}

// readCast reads who plays. Actors were named by their files or by their short names.
func (s *situation) readCast() {
	names := list(s.take("actors"))
	for i, name := range names {
		stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".yaml"), ".yml")
		short, ok := s.c.short[strings.ToLower(stem)]
		switch {
		case !ok:
			s.note("actors", "%s has no file and is left out", names[i])
		case !slices.Contains(s.c.cast, short):
			s.c.cast = append(s.c.cast, short)
		}
	}
	if len(s.c.cast) == 0 {
		for _, a := range s.c.actors {
			s.c.cast = append(s.c.cast, a.short)
		}
		s.note("actors", "is missing; every file in actors plays")
	}
	s.out.Add("actors", s.c.cast)
}

// talk reads how actors may speak, and the features.
func (s *situation) talk() {
	flags := []string{"enable_public_statements", "enable_bilateral_communication", "enable_coalition_formation"}
	var given bool
	var talk fields
	for _, k := range flags {
		if v := s.take(k); v != nil {
			given = true
			talk.Add(k, v)
		}
	}
	limit := s.whole("max_communications_per_turn")
	var features fields
	if f := s.inside("features"); f != nil {
		for _, k := range []string{"communications", "exogenous_events", "metrics_extraction", "quality_assurance", "context_management"} {
			on, there := true, f.values[k] != nil
			if inner := f.inside(k); inner != nil {
				if v := inner.flag("enabled"); v != nil {
					on = *v
				}
				if n := inner.whole("max_per_turn", "max_communications_per_turn"); k == "communications" && n > 0 {
					limit = n
				}
				inner.rest()
			} else if v := f.flag(k); v != nil {
				on = *v
			}
			if !on {
				features.Add(k, false)
			}
			if k == "communications" && there && on && !given {
				talk.Add(flags[1], true)
				if len(s.c.cast) > 2 {
					talk.Add(flags[2], true)
				}
				f.note(k, "does not say how: private messages are allowed, and coalitions of three or more")
			}
		}
		f.rest()
	}
	if talk.Value(flags[2]) == true && len(s.c.cast) < 3 {
		talk.Set(flags[2], false)
		s.note(flags[2], "is written as false: a coalition needs three actors")
	}
	if talk.Value(flags[1]) == true || talk.Value(flags[2]) == true {
		talk.Add("max_communications_per_turn", limit)
	}
	s.out = append(s.out, talk...)
	s.out.Add("features", features)
}

// end reads the condition that ends the scenario. It can name only metrics that are written.
func (c *converter) end(s *situation) fields {
	if s.mapping == nil || s.length == nil {
		return nil
	}
	l := s.length
	defer l.rest()
	delete(l.values, "type")
	if l.values["condition"] == nil {
		return nil
	}
	conditions := c.conditions(l, "condition")
	if len(conditions) == 0 {
		l.note("condition", "is left out: the scenario ends after its last turn")
		return nil
	}
	return fields{{"scenario_length", fields{{"type", "condition"}, {"condition", conditions}}}}
}

// actor is an actor that was read.
type actor struct {
	short string
	out   fields
}

// readActors reads the files of actors.
func (c *converter) readActors() {
	var all []*mapping
	for _, file := range c.matches("actors/*.yaml", "actors/*.yml") {
		m := c.read(file)
		if m == nil {
			continue
		}
		stem := strings.TrimSuffix(path.Base(file), path.Ext(file))
		written := m.text("short_name")
		short := slug(written, '-')
		if short == "" {
			short = slug(stem, '-')
		}
		if slices.Contains([]string{script.Narrator, script.Analyst, script.Validator}, short) {
			short += "-actor"
		}
		for slices.ContainsFunc(c.actors, func(a actor) bool { return a.short == short }) {
			short += "-2"
		}
		if written != "" && written != short {
			m.note("short_name", "%s is written as %s", written, short)
		}
		name := m.text("name")
		if name == "" {
			name = stem
		}
		for _, called := range []string{name, stem, written, short} {
			c.short[strings.ToLower(called)] = short
		}
		c.actors = append(c.actors, actor{short, fields{{"name", name}, {"short_name", short}}})
		all = append(all, m)
	}
	for i, m := range all {
		m.actor(&c.actors[i].out)
	}
}

// actor converts the keys of an actor, except its names.
func (m *mapping) actor(out *fields) {
	model := m.model("model", "llm_model")
	if model == "" {
		model = defaultModel
		m.note("llm_model", "is missing; %s is written, which was the default", model)
	}
	out.Add("model", model)
	for _, k := range []string{"role", "description", "system_prompt"} {
		out.Add(k, m.text(k))
	}
	for _, k := range []string{"goals", "constraints", "expertise"} {
		out.Add(k, m.texts(k))
	}
	out.Add("expertise_level", m.text("expertise_level"))
	out.Add("decision_style", m.text("decision_style", "decision_making_style"))
	out.Add("communication_style", m.text("communication_style"))
	out.Add("personality_traits", m.texts("personality_traits"))
	out.Add("preferred_coalitions", m.partners())
	out.Add("private_information", m.texts("private_information"))
	if access := m.inside("information_access"); access != nil {
		var a fields
		if public := access.flag("public"); public == nil {
			a.Add("public", access.texts("public"))
		} else if !*public {
			a.Add("public", false)
		}
		a.Add("private", access.texts("private"))
		access.rest()
		out.Add("information_access", a)
	}
	if m.text("control") == "human" {
		m.note("control", "human: give the seat an agent that is a person, in agents of the plan")
	}
	m.drop("answers follow a schema", "response_format")
	m.rest()
}

// partners returns the preferred partners that exist.
func (m *mapping) partners() []string {
	var all []string
	for _, name := range list(m.take("preferred_coalitions")) {
		if short, ok := m.c.short[strings.ToLower(name)]; ok {
			all = append(all, short)
			continue
		}
		m.note("preferred_coalitions", "%s is not an actor and is left out", name)
	}
	return all
}

// writeActors writes the actors that play.
func (c *converter) writeActors() {
	for _, a := range c.actors {
		if !slices.Contains(c.cast, a.short) {
			c.out.Report = append(c.out.Report, c.from+"/actors: "+a.short+" is not listed under actors in scenario.yaml and is left out")
			continue
		}
		if partners, ok := a.out.Value("preferred_coalitions").([]string); ok {
			a.out.Set("preferred_coalitions", slices.DeleteFunc(partners, func(s string) bool { return !slices.Contains(c.cast, s) }))
		}
		c.write("actors/"+a.short+".yaml", a.out)
	}
}

// plans writes the plan of the scenario, and one for each batch configuration in the folder.
func (c *converter) plans() {
	c.out.Plan = fmt.Sprintf(`# The scenario %s, converted from a folder of the earlier Scenario Lab. The files name the models.
# To try it without a key, put one simulated model into every seat: --set 'agents={all: sim/large}'

`, c.to) + c.yaml(fields{{"kind", "scenario"}, {"seed", 1}, {"episodes", 1}, {"params", fields{{"folder", c.to}}}})
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
	return head.String() + "\n" + c.yaml(out)
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
	case "num_turns", "max_turns":
		name = "turns"
	case "context_window":
		name = "context_window_size"
	}
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
		switch _, err := strconv.ParseFloat(v, 64); {
		case err == nil:
			all[i] = json.Number(v)
		case v == "true", v == "false":
			all[i] = v == "true"
		}
	}
	b.params.Add("set."+name, all)
}
