package script

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/world"
)

// eventFile is exogenous-events.yaml.
type eventFile struct {
	Events []event `json:"exogenous_events"`
}

// event is an event of exogenous_events.
type event struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Description string   `json:"description"`
	Range       any      `json:"turn_range"`
	Frequency   *int     `json:"frequency"`
	Probability *float64 `json:"probability"`
	Conditions  any      `json:"conditions"`
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
	for i, e := range f.Events {
		r.script.Events = append(r.script.Events, r.event(e, at("exogenous_events", i)))
	}
}

func (r *reader) event(e event, here string) Event {
	d := r.events
	out := Event{
		Name:        strings.TrimSpace(e.Name),
		Description: strings.TrimSpace(e.Description),
		Type:        e.Type,
		Range:       r.turnRange(e, here),
		Frequency:   value(e.Frequency, 0),
		Probability: e.Probability,
		Turns:       r.turns(e, here),
	}
	if e.Conditions != nil {
		out.Conditions = r.conditions(d, here+".conditions", e.Conditions)
	}
	if last := r.script.Turns; len(out.Turns) > 0 && slices.Min(out.Turns) > last || len(out.Range) == 2 && out.Range[0] > last {
		r.advise(d, here, "never happens: the last turn is %d", last)
	}
	out.Once = value(e.Once, out.Type != Trend)
	return out
}

var span = regexp.MustCompile(`^(\d+)\s*(?:-|to|\.\.)\s*(\d+)$`)

// turnRange reads [2, 8], "2-8" or {start: 2, end: 8}.
func (r *reader) turnRange(e event, here string) []int {
	if e.Range == nil {
		return nil
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
func (r *reader) conditionMap(d world.Document, key string, m map[string]any) []Condition {
	var all []Condition
	for _, name := range slices.Sorted(maps.Keys(m)) {
		with, ok := plain(m[name])
		if !ok {
			r.fail(d, key+"."+name, "wants a comparison such as \">= 7\"")
			continue
		}
		if _, err := strconv.ParseFloat(with, 64); err == nil {
			with = "== " + with
		}
		c, err := Compare(name, with)
		if err != nil {
			r.fail(d, key+"."+name, "%v", err)
			continue
		}
		all = append(all, c)
	}
	return all
}
