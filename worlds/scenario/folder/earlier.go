package folder

import (
	"strings"

	"parley/world"
	"parley/worlds/scenario/script"
)

// The spellings of Scenario Lab that have an equal today. They are read as today's, with advice how to write them. The
// readers of today's spelling do not know them, except that they embed the keys and call the functions here.

// earlierSituation has the earlier keys of scenario.yaml.
type earlierSituation struct {
	NumTurns  *int `json:"num_turns"`
	OldWindow *int `json:"context_window"`
}

// earlierActor has the earlier keys of the file of an actor.
type earlierActor struct {
	OldModel         *string `json:"llm_model"`
	OldDecisionStyle *string `json:"decision_making_style"`
}

// earlierEventFile has the earlier lists of events: events, and a list for each type.
type earlierEventFile struct {
	Plain       []event `json:"events"`
	Trends      []event `json:"trends"`
	Random      []event `json:"random_events"`
	Conditional []event `json:"conditional_events"`
	Scheduled   []event `json:"scheduled_events"`
}

// lists returns the earlier lists of events.
func (f *earlierEventFile) lists() []eventList {
	return []eventList{
		{"events", "", f.Plain}, {"trends", script.Trend, f.Trends}, {"random_events", script.Random, f.Random},
		{"conditional_events", script.Conditional, f.Conditional}, {"scheduled_events", script.Scheduled, f.Scheduled},
	}
}

// adviseList says what to write instead of an earlier list.
func (r *reader) adviseList(l eventList) {
	switch {
	case len(l.events) == 0:
	case l.kind != "":
		r.advise(r.events, l.key, "is read as exogenous_events of type %s: write exogenous_events, each with its type", l.kind)
	case l.key == "events":
		r.advise(r.events, l.key, "is read as exogenous_events: write exogenous_events")
	}
}

// earlierEvent has the earlier keys of an event.
type earlierEvent struct {
	ID        *string `json:"id"`
	Effects   any     `json:"effects"`
	Impact    any     `json:"impact"`
	Start     *int    `json:"start_turn"`
	End       *int    `json:"end_turn"`
	Interval  *int    `json:"interval"`
	Condition any     `json:"condition"`
	Trigger   any     `json:"trigger"`
}

// addEffects adds effects and impact to the description.
func (r *reader) addEffects(e event, here string, out *script.Event) {
	for _, more := range []struct {
		key string
		v   any
	}{{"effects", e.Effects}, {"impact", e.Impact}} {
		if texts := r.texts(r.events, here+"."+more.key, more.v); len(texts) > 0 {
			out.Description = strings.TrimSpace(out.Description + " " + strings.Join(texts, ". "))
			r.advise(r.events, here+"."+more.key, "is added to description: write it there")
		}
	}
}

// startAndEnd reads start_turn and end_turn as a range of turns, or returns nil.
func (r *reader) startAndEnd(e event, here string) []int {
	if e.Start == nil && e.End == nil {
		return nil
	}
	for _, k := range []struct {
		name string
		v    *int
	}{{"start_turn", e.Start}, {"end_turn", e.End}} {
		if k.v != nil {
			r.advise(r.events, here+"."+k.name, "is read as part of turn_range: write turn_range: [FIRST, LAST]")
		}
	}
	return []int{value(e.Start, 1), value(e.End, r.script.Turns)}
}

// eventConditions reads the conditions of an event, under any of their names.
func (r *reader) eventConditions(e event, here string, out *script.Event) {
	given := ""
	for _, one := range []struct {
		key string
		v   any
	}{{"conditions", e.Conditions}, {"condition", e.Condition}, {"trigger", e.Trigger}} {
		switch {
		case one.v == nil:
			continue
		case given != "":
			r.fail(r.events, here+"."+one.key, "conflicts with %s, which means the same; give one of them", given)
			continue
		case one.key != "conditions":
			r.advise(r.events, here+"."+one.key, "is read as conditions: write conditions")
		}
		given = one.key
		out.Conditions = append(out.Conditions, r.conditions(r.events, here+"."+one.key, one.v)...)
	}
}

// inParts reads {metric: tension, operator: ">=", value: 7} as {tension: ">= 7"}. It returns other mappings as they are, and
// nil after an error.
func (r *reader) inParts(d world.Document, key string, m map[string]any) map[string]any {
	name, ok := m["metric"].(string)
	if !ok {
		return m
	}
	op, okOp := plain(first(m, "operator", "op"))
	with, okValue := plain(first(m, "value", "threshold"))
	if !okOp || !okValue {
		r.fail(d, key, "wants metric, operator and value; better {%s: \">= 7\"}", name)
		return nil
	}
	return map[string]any{name: op + " " + with}
}

func first(m map[string]any, names ...string) any {
	for _, name := range names {
		if v := m[name]; v != nil {
			return v
		}
	}
	return nil
}

// either returns the given one of two spellings of a key. Both are an error; the
// second comes with advice.
func either[T any](r *reader, d world.Document, in, key string, v *T, also string, other *T) *T {
	at := func(k string) string {
		if in == "" {
			return k
		}
		return in + "." + k
	}
	switch {
	case other == nil:
		return v
	case v != nil:
		r.fail(d, at(also), "conflicts with %s, which means the same; give one of them, best %s", key, key)
		return v
	}
	r.advise(d, at(also), "is read as %s: write %s", key, key)
	return other
}

// onlyIf returns p if yes: an id besides a name is not a second spelling of the name.
func onlyIf[T any](yes bool, p *T) *T {
	if yes {
		return p
	}
	return nil
}
