package script

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/world"
)

// Change returns s with other values at some keys. A key is a path of names with dots;
// actors, metrics and events go by name: turns, actors.north-port.goals,
// metrics.tension.range, events.strike.probability. It also accepts keys of scenario.yaml that have
// another path in a Script, such as enable_coalition_formation, and
// mappings instead of dots. It reports what cannot be changed, and leaves it unchanged.
func (s *Script) Change(set map[string]any) (*Script, []Problem) {
	begin := *s
	if talk := &begin.Talk; !talk.Bilateral && !talk.Coalitions {
		talk.Max, talk.Rounds = defaultMax, defaultRounds // in case set turns talk on
	}
	var tree map[string]any
	if err := remarshal(begin, &tree); err != nil {
		return s, []Problem{{What: err.Error()}}
	}
	var problems []Problem
	set = flat(set)
	for _, key := range slices.Sorted(maps.Keys(set)) {
		var next map[string]any // decoded after each change, to find the one that does not fit
		err := remarshal(tree, &next)
		if err == nil {
			err = put(next, scriptKeys(), strings.Split(cmp.Or(filed(key), key), "."), set[key])
		}
		if err == nil {
			err = decode(next, &Script{})
		}
		if err != nil {
			problems = append(problems, Problem{Key: key, What: err.Error()})
			continue
		}
		tree = next
	}
	changed := &Script{}
	if err := decode(tree, changed); err != nil {
		return s, append(problems, Problem{What: err.Error()})
	}
	if talk := &changed.Talk; !talk.Bilateral && !talk.Coalitions {
		talk.Max, talk.Rounds = 0, 0
	}
	return changed, problems
}

// remarshal copies a value through JSON.
func remarshal(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}

// flat turns mappings within set into paths.
func flat(set map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range set {
		inner, ok := value.(map[string]any)
		if !ok {
			out[key] = value
			continue
		}
		for rest, v := range flat(inner) {
			out[key+"."+rest] = v
		}
	}
	return out
}

// filed returns the path in a Script of a key of scenario.yaml, if it differs.
func filed(key string) string {
	switch key {
	case "enable_public_statements":
		return "talk.public_statements"
	case "enable_bilateral_communication":
		return "talk.bilateral"
	case "enable_coalition_formation":
		return "talk.coalitions"
	case "max_communications_per_turn", "bilateral_rounds":
		return "talk." + key
	}
	return ""
}

// put sets the value at a path in a record, or in a list of records.
func put(in any, r *keyTree, path []string, value any) error {
	step, rest := path[0], path[1:]
	switch in := in.(type) {
	case map[string]any:
		if r == nil {
			break
		}
		if !slices.Contains(r.keys, step) {
			return fmt.Errorf("%s has no key %q%s", r.name, step, among(step, "keys", r.keys))
		}
		if len(rest) == 0 {
			in[step] = value
			return nil
		}
		inner := r.inside[step]
		if in[step] == nil && inner != nil {
			in[step] = map[string]any{}
		}
		return put(in[step], inner, rest, value)
	case []any:
		if r == nil {
			break
		}
		var names []string
		for i, item := range in {
			name := called(item)
			if names = append(names, name); name != step {
				continue
			}
			if len(rest) == 0 {
				in[i] = value
				return nil
			}
			return put(item, r, rest, value)
		}
		return fmt.Errorf("none is called %q%s", step, among(step, "there are", names))
	}
	return fmt.Errorf("%q is below a single value", step)
}

var listed = regexp.MustCompile(`^(actors|metrics|events)\[(\d+)\]`)

// Called returns the key of a Problem as Change reads it: events[2].turns becomes
// events.strike.turns.
func (s *Script) Called(key string) string {
	m := listed.FindStringSubmatch(key)
	if m == nil {
		return key
	}
	i, err := strconv.Atoi(m[2])
	name := ""
	switch {
	case err != nil:
	case m[1] == "actors" && i < len(s.Actors):
		name = s.Actors[i].ShortName
	case m[1] == "metrics" && i < len(s.Metrics):
		name = s.Metrics[i].Name
	case m[1] == "events" && i < len(s.Events):
		name = s.Events[i].Name
	}
	if name == "" {
		return key
	}
	return m[1] + "." + name + strings.TrimPrefix(key, m[0])
}

func called(item any) string {
	m, ok := item.(map[string]any)
	if !ok {
		return ""
	}
	for _, key := range []string{"short_name", "name"} {
		if name, ok := m[key].(string); ok {
			return name
		}
	}
	return ""
}

func decode(tree map[string]any, into *Script) error {
	b, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	err = world.DecodeStrict(b, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("wants %s, found %s", plainType(wrong.Type.Kind().String()), plainType(wrong.Value))
	}
	return err
}

// plainType returns the name of a type for users.
func plainType(kind string) string {
	kind, _, _ = strings.Cut(kind, " ")
	switch kind {
	case "int":
		return "a whole number"
	case "float64", "number":
		return "a number"
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	case "slice", "array":
		return "a list"
	}
	return "a mapping"
}

// keyTree describes a mapping of a Script: its keys, and those
// that contain another mapping or a list of mappings.
type keyTree struct {
	name   string
	keys   []string
	inside map[string]*keyTree
}

// scriptKeys describes the keys of a Script and of everything in it, as its JSON has them. Change needs them
// for its errors.
func scriptKeys() *keyTree {
	condition := &keyTree{name: "a condition", keys: []string{"metric", "actor", "op", "value"}}
	return &keyTree{
		name: "a scenario",
		keys: []string{
			"from", "name", "description", "author", "tags", "system_prompt", "initial_world_state", "background", "turns", "turn_duration", "end", "context_window_size",
			"talk", "black_swan_probability", "allow_actor_reflection", "parallel_action_resolution", "actors", "metrics", "validation", "events", "world_state_model",
		},
		inside: map[string]*keyTree{
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
				inside: map[string]*keyTree{"extraction": {name: "an extraction", keys: []string{"type", "prompt", "model", "keywords", "scoring", "pattern", "values"}}},
			},
			"validation": {
				name: "validation",
				keys: []string{
					"validation_model", "checks", "scenario_specific_rules", "last_turn_only", "generate_turn_reports", "generate_summary", "halt_on_critical", "max_issues_before_halt",
				},
				inside: map[string]*keyTree{"checks": {name: "a check", keys: []string{"name", "severity", "description"}}},
			},
			"events": {
				name:   "an event",
				keys:   []string{"name", "description", "type", "turn_range", "frequency", "probability", "conditions", "turns", "once"},
				inside: map[string]*keyTree{"conditions": condition},
			},
		},
	}
}
