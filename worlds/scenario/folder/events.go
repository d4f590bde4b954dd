package folder

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/world"
	"parley/worlds/scenario/script"
)

// eventFile is exogenous-events.yaml. Earlier spellings are the list events, and a list for each type.
type eventFile struct {
	Events      []event `json:"exogenous_events"`
	Plain       []event `json:"events"`
	Trends      []event `json:"trends"`
	Random      []event `json:"random_events"`
	Conditional []event `json:"conditional_events"`
	Scheduled   []event `json:"scheduled_events"`
}

// event is an event in any spelling.
type event struct {
	Name        *string  `json:"name"`
	ID          *string  `json:"id"`
	Type        string   `json:"type"`
	Description *string  `json:"description"`
	Effects     any      `json:"effects"`
	Impact      any      `json:"impact"`
	Range       any      `json:"turn_range"`
	Start       *int     `json:"start_turn"`
	End         *int     `json:"end_turn"`
	Frequency   *int     `json:"frequency"`
	Interval    *int     `json:"interval"`
	Probability *float64 `json:"probability"`
	Conditions  any      `json:"conditions"`
	Condition   any      `json:"condition"`
	Trigger     any      `json:"trigger"`
	Turn        any      `json:"turn"`
	Turns       any      `json:"turns"`
	Once        *bool    `json:"once"`
}

func (r *reader) readEvents() {
	var f eventFile
	d, ok := r.yaml(eventsFile, &f)
	if !ok || !value(r.off.Events, true) {
		return
	}
	r.events = d
	for _, part := range []struct {
		key, kind string
		events    []event
	}{
		{"exogenous_events", "", f.Events}, {"events", "", f.Plain}, {"trends", script.Trend, f.Trends}, {"random_events", script.Random, f.Random},
		{"conditional_events", script.Conditional, f.Conditional}, {"scheduled_events", script.Scheduled, f.Scheduled},
	} {
		if len(part.events) == 0 {
			continue
		}
		if part.kind != "" {
			r.advise(d, part.key, "is read as exogenous_events of type %s: write exogenous_events, each with its type", part.kind)
		} else if part.key == "events" {
			r.advise(d, part.key, "is read as exogenous_events: write exogenous_events")
		}
		for i, e := range part.events {
			here := at(part.key, i)
			r.script.Events = append(r.script.Events, r.event(e, here, part.kind))
			r.eventKeys = append(r.eventKeys, here)
		}
	}
}

func (r *reader) event(e event, here, kind string) script.Event {
	d := r.events
	out := script.Event{
		Name:        strings.TrimSpace(value(either(r, d, here, "name", e.Name, "id", onlyIf(e.Name == nil, e.ID)), "")),
		Description: strings.TrimSpace(value(e.Description, "")),
		Type:        r.eventType(e, here, kind),
		Range:       r.turnRange(e, here),
		Frequency:   value(either(r, d, here, "frequency", e.Frequency, "interval", e.Interval), 0),
		Probability: e.Probability,
		Turns:       r.turns(e, here),
	}
	for _, more := range []struct {
		key string
		v   any
	}{{"effects", e.Effects}, {"impact", e.Impact}} {
		if texts := r.texts(d, here+"."+more.key, more.v); len(texts) > 0 {
			out.Description = strings.TrimSpace(out.Description + " " + strings.Join(texts, ". "))
			r.advise(d, here+"."+more.key, "is added to description: write it there")
		}
	}
	r.eventConditions(e, here, &out)
	if last := r.script.Turns; len(out.Turns) > 0 && slices.Min(out.Turns) > last || len(out.Range) == 2 && out.Range[0] > last {
		r.advise(d, here, "never happens: the last turn is %d", last)
	}
	out.Once = value(e.Once, out.Type != script.Trend)
	return out
}

// onlyIf returns p if yes: an id besides a name is not a second spelling of the name.
func onlyIf[T any](yes bool, p *T) *T {
	if yes {
		return p
	}
	return nil
}

// eventType returns the type that is written or, without one, the type that the keys imply.
func (r *reader) eventType(e event, here, kind string) string {
	if e.Type != "" || kind != "" {
		if e.Type != "" && kind != "" && e.Type != kind {
			r.fail(r.events, here+".type", "is %s in a list of events of type %s: write exogenous_events, each with its type", e.Type, kind)
		}
		if e.Type != "" {
			return e.Type
		}
		return kind
	}
	for _, guess := range []struct {
		given bool
		kind  string
	}{
		{e.Frequency != nil || e.Interval != nil, script.Trend},
		{e.Turn != nil || e.Turns != nil, script.Scheduled},
		{e.Conditions != nil || e.Condition != nil || e.Trigger != nil, script.Conditional},
		{e.Probability != nil, script.Random},
	} {
		if guess.given {
			r.advise(r.events, here, "has no type and is read as %s: write type: %s", guess.kind, guess.kind)
			return guess.kind
		}
	}
	return ""
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

var span = regexp.MustCompile(`^(\d+)\s*(?:-|to|\.\.)\s*(\d+)$`)

// turnRange reads [2, 8], "2-8", {start: 2, end: 8}, or start_turn and end_turn.
func (r *reader) turnRange(e event, here string) []int {
	key := here + ".turn_range"
	if e.Range == nil {
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
	var ends []any
	switch v := e.Range.(type) {
	case []any:
		ends = v
	case map[string]any:
		ends = []any{v["start"], v["end"]}
	case string:
		if m := span.FindStringSubmatch(strings.TrimSpace(v)); m != nil {
			ends = []any{m[1], m[2]}
		}
	}
	if len(ends) == 2 {
		first, ok1 := whole(ends[0])
		last, ok2 := whole(ends[1])
		if ok1 && ok2 {
			return []int{first, last}
		}
	}
	r.fail(r.events, key, "wants the first turn and the last, as [2, 8]")
	return nil
}

// turns reads the turns of a scheduled event: a number, or a list.
func (r *reader) turns(e event, here string) []int {
	var all []int
	for _, k := range []struct {
		key string
		v   any
	}{{"turn", e.Turn}, {"turns", e.Turns}} {
		if k.v == nil {
			continue
		}
		items, many := k.v.([]any)
		if !many {
			items = []any{k.v}
		}
		for _, item := range items {
			n, ok := whole(item)
			if !ok {
				r.fail(r.events, here+"."+k.key, "wants the number of a turn, or a list of them")
				return nil
			}
			all = append(all, n)
		}
	}
	return all
}

// conditionMap reads {tension: ">= 7"} or {metric: tension, operator: ">=", value: 7}.
func (r *reader) conditionMap(d world.Document, key string, m map[string]any) []script.Condition {
	if name, ok := m["metric"].(string); ok {
		op, okOp := plain(first(m, "operator", "op"))
		with, okValue := plain(first(m, "value", "threshold"))
		if !okOp || !okValue {
			r.fail(d, key, "wants metric, operator and value; better {%s: \">= 7\"}", name)
			return nil
		}
		m = map[string]any{name: op + " " + with}
	}
	var all []script.Condition
	for _, name := range slices.Sorted(maps.Keys(m)) {
		with, ok := plain(m[name])
		if !ok {
			r.fail(d, key+"."+name, "wants a comparison such as \">= 7\"")
			continue
		}
		if _, err := strconv.ParseFloat(with, 64); err == nil {
			with = "== " + with
		}
		c, err := script.Compare(name, with)
		if err != nil {
			r.fail(d, key+"."+name, "%v", err)
			continue
		}
		all = append(all, c)
	}
	return all
}

func first(m map[string]any, names ...string) any {
	for _, name := range names {
		if v := m[name]; v != nil {
			return v
		}
	}
	return nil
}
