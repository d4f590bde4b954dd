package script

import (
	"strings"

	"parley/world"
)

// situation is scenario.yaml.
type situation struct {
	Name         *string `json:"name"`
	Description  string  `json:"description"`
	Author       string  `json:"author"`
	Tags         any     `json:"tags"`
	Version      any     `json:"schema_version"`
	System       string  `json:"system_prompt"`
	State        string  `json:"initial_world_state"`
	Background   any     `json:"background_information"`
	TurnDuration string  `json:"turn_duration"`

	Turns  *int    `json:"turns"`
	Length *length `json:"scenario_length"`

	Actors any    `json:"actors"`
	Model  string `json:"world_state_model"`

	Window *int `json:"context_window_size"`

	Statements *bool    `json:"enable_public_statements"`
	Bilateral  *bool    `json:"enable_bilateral_communication"`
	Coalitions *bool    `json:"enable_coalition_formation"`
	Max        *int     `json:"max_communications_per_turn"`
	Rounds     *int     `json:"bilateral_rounds"`
	BlackSwans *bool    `json:"enable_black_swans"`
	Swan       *float64 `json:"black_swan_probability"`
	Reflection *bool    `json:"allow_actor_reflection"`
	Parallel   *bool    `json:"parallel_action_resolution"`

	Features features `json:"features"`
}

// length is the length of a scenario.
type length struct {
	Type      string `json:"type" oneof:"fixed,condition"`
	Turns     *int   `json:"turns"`
	Condition any    `json:"condition"`
}

// features turn parts of a scenario off.
type features struct {
	Communications *bool `json:"communications"`
	Events         *bool `json:"exogenous_events"`
	Metrics        *bool `json:"metrics_extraction"`
	Checks         *bool `json:"quality_assurance"`
	Context        *bool `json:"context_management"`
}

// The defaults of a scenario.
const (
	defaultWindow = 3
	defaultSwan   = 0.05
)

func (r *reader) readScenario() {
	var f situation
	d, ok := r.yaml(scenarioFile, &f)
	if !ok {
		return
	}
	r.scenario, r.off = d, f.Features
	s := r.script
	s.Name, s.Description, s.Author = strings.TrimSpace(value(f.Name, "")), strings.TrimSpace(f.Description), f.Author
	s.Tags = r.texts(d, "tags", f.Tags)
	s.System, s.State = strings.TrimSpace(f.System), strings.TrimSpace(f.State)
	s.TurnDuration, s.NarratorModel = strings.TrimSpace(f.TurnDuration), f.Model
	for _, text := range r.texts(d, "background_information", f.Background) {
		s.Background = append(s.Background, Document{Name: "background information", Text: text})
	}
	s.Reflect, s.Parallel = value(f.Reflection, false), value(f.Parallel, false)
	r.readVersion(f.Version)
	r.readLength(&f)
	r.readWindow(&f)
	r.readTalk(&f)
	if s.BlackSwan = value(f.Swan, defaultSwan); !value(f.BlackSwans, f.Swan != nil) {
		s.BlackSwan = 0
	}
	s.Actors = nil
	for i, short := range r.texts(d, "actors", f.Actors) {
		if s.Actor(short) >= 0 {
			r.fail(d, at("actors", i), "%s is listed twice", short)
			continue
		}
		s.Actors = append(s.Actors, Actor{ShortName: short})
	}
}

// readVersion accepts any version so far.
func (r *reader) readVersion(v any) {
	text, ok := plain(v)
	if v == nil || ok && (text == "1" || text == "2" || strings.HasPrefix(text, "1.") || strings.HasPrefix(text, "2.")) {
		return
	}
	r.fail(r.scenario, "schema_version", "wants 1 or 2, or leave it out")
}

// readLength reads the number of turns, and the condition that ends the scenario earlier.
func (r *reader) readLength(f *situation) {
	d, s := r.scenario, r.script
	turns := f.Turns
	if l := f.Length; l != nil {
		if turns != nil && l.Turns != nil && *turns != *l.Turns {
			r.fail(d, "scenario_length.turns", "is %d, and turns is %d: give one of them", *l.Turns, *turns)
		}
		if turns == nil && l.Turns != nil {
			turns, r.spelled["turns"] = l.Turns, "scenario_length.turns"
			if l.Condition == nil {
				r.advise(d, "scenario_length.turns", "is read as turns: write turns")
			}
		}
		switch {
		case l.Type == "condition" && l.Condition == nil:
			r.fail(d, "scenario_length.condition", "is missing: what ends the scenario, as tension >= 9")
		case l.Type == "fixed" && l.Condition != nil:
			r.fail(d, "scenario_length.condition", "conflicts with type: fixed; write type: condition, or leave it out")
		case l.Condition != nil:
			s.End = r.conditions(d, "scenario_length.condition", l.Condition)
			r.spelled["end"] = "scenario_length.condition"
		}
	}
	if turns == nil {
		what := "is missing: the number of turns"
		if s.End != nil {
			what = "is missing: the maximum number of turns, because the condition may never hold"
		}
		r.fail(d, "turns", "%s", what)
		s.Turns = MaxTurns // avoids further errors
		return
	}
	s.Turns = *turns
}

func (r *reader) readWindow(f *situation) {
	s := r.script
	s.Window = value(f.Window, defaultWindow)
	if !value(f.Features.Context, true) {
		s.Window = max(1, min(s.Turns, MaxTurns)) // everything is remembered
	}
}

func (r *reader) readTalk(f *situation) {
	t := &r.script.Talk
	if !value(f.Features.Communications, true) {
		return
	}
	t.Statements, t.Bilateral, t.Coalitions = value(f.Statements, false), value(f.Bilateral, false), value(f.Coalitions, false)
	if t.Bilateral || t.Coalitions {
		t.Max, t.Rounds = value(f.Max, defaultMax), value(f.Rounds, defaultRounds)
		return
	}
	const idle = "has no effect: neither enable_bilateral_communication nor enable_coalition_formation is true"
	if f.Max != nil {
		r.advise(r.scenario, "max_communications_per_turn", idle)
	}
	if f.Rounds != nil {
		r.advise(r.scenario, "bilateral_rounds", idle)
	}
}

// conditions reads conditions: a mapping of metrics to comparisons, a text, or a
// list of either.
func (r *reader) conditions(d world.Document, key string, v any) []Condition {
	switch v := v.(type) {
	case map[string]any:
		return r.conditionMap(d, key, v)
	case []any:
		var all []Condition
		for i, item := range v {
			all = append(all, r.conditions(d, at(key, i), item)...)
		}
		return all
	case string:
		all, err := ParseConditions(v)
		if err != nil {
			r.fail(d, key, "%v", err)
		}
		return all
	}
	r.fail(d, key, "wants metrics and comparisons, as {tension: \">= 7\"}")
	return nil
}
