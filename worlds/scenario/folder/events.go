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

// eventFile is exogenous-events.yaml.
type eventFile struct {
	Events []event `json:"exogenous_events"`
	earlierEventFile
}

// event is an event of exogenous_events.
type event struct {
	Name        *string  `json:"name"`
	Type        string   `json:"type"`
	Description *string  `json:"description"`
	Range       any      `json:"turn_range"`
	Frequency   *int     `json:"frequency"`
	Probability *float64 `json:"probability"`
	Conditions  any      `json:"conditions"`
	Turn        any      `json:"turn"`
	Turns       any      `json:"turns"`
	Once        *bool    `json:"once"`
	earlierEvent
}

// eventList is a list of events under a key. kind is the type of all of them, or "".
type eventList struct {
	key, kind string
	events    []event
}

func (r *reader) readEvents() {
	var f eventFile
	d, ok := r.yaml(eventsFile, &f)
	if !ok || !value(r.off.Events, true) {
		return
	}
	r.events = d
	for _, part := range append([]eventList{{key: "exogenous_events", events: f.Events}}, f.lists()...) {
		r.adviseList(part)
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
	r.addEffects(e, here, &out)
	r.eventConditions(e, here, &out)
	if last := r.script.Turns; len(out.Turns) > 0 && slices.Min(out.Turns) > last || len(out.Range) == 2 && out.Range[0] > last {
		r.advise(d, here, "never happens: the last turn is %d", last)
	}
	out.Once = value(e.Once, out.Type != script.Trend)
	return out
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

var span = regexp.MustCompile(`^(\d+)\s*(?:-|to|\.\.)\s*(\d+)$`)

// turnRange reads [2, 8], "2-8" or {start: 2, end: 8}.
func (r *reader) turnRange(e event, here string) []int {
	if e.Range == nil {
		return r.startAndEnd(e, here)
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
	r.fail(r.events, here+".turn_range", "wants the first turn and the last, as [2, 8]")
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

// conditionMap reads {tension: ">= 7"}.
func (r *reader) conditionMap(d world.Document, key string, m map[string]any) []script.Condition {
	m = r.inParts(d, key, m)
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
