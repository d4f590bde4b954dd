package script

// record describes a mapping of a Script: its keys, and those
// that contain another mapping or a list of mappings.
type record struct {
	name   string
	keys   []string
	inside map[string]*record
}

// scriptKeys describes the keys of a Script and of everything in it, as its JSON has them. Change needs them
// for its errors.
func scriptKeys() *record {
	condition := &record{name: "a condition", keys: []string{"metric", "actor", "op", "value"}}
	return &record{
		name: "a scenario",
		keys: []string{
			"from", "name", "description", "author", "tags", "system_prompt", "initial_world_state", "background", "turns", "turn_duration", "end", "context_window_size",
			"talk", "black_swan_probability", "allow_actor_reflection", "parallel_action_resolution", "actors", "metrics", "validation", "events", "world_state_model",
		},
		inside: map[string]*record{
			"background": {name: "a document", keys: []string{"name", "text"}},
			"end":        condition,
			"talk":       {name: "talk", keys: []string{"public_statements", "bilateral", "coalitions", "max_communications_per_turn", "bilateral_rounds"}},
			"actors": {name: "an actor", keys: []string{
				"short_name", "name", "model", "role", "description", "system_prompt", "goals", "constraints", "expertise", "expertise_level", "decision_style",
				"communication_style", "personality_traits", "preferred_coalitions", "private_information", "public_information", "deaf",
			}},
			"metrics": {
				name:   "a metric",
				keys:   []string{"name", "description", "type", "range", "categories", "extraction", "unit", "actor_specific", "warning_threshold", "critical_threshold"},
				inside: map[string]*record{"extraction": {name: "an extraction", keys: []string{"type", "prompt", "model", "keywords", "scoring", "pattern", "values"}}},
			},
			"validation": {
				name: "validation",
				keys: []string{
					"validation_model", "checks", "scenario_specific_rules", "last_turn_only", "generate_turn_reports", "generate_summary", "halt_on_critical", "max_issues_before_halt",
				},
				inside: map[string]*record{"checks": {name: "a check", keys: []string{"name", "severity", "description"}}},
			},
			"events": {
				name:   "an event",
				keys:   []string{"name", "description", "type", "turn_range", "frequency", "probability", "conditions", "turns", "once"},
				inside: map[string]*record{"conditions": condition},
			},
		},
	}
}
