package script

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseConditions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tension >= 7":                 "tension >= 7",
		" tension<3 ":                  "tension < 3",
		"tension >= 7 and trust < 3":   "tension >= 7; trust < 3",
		"a == b AND c != \"d e\"":      "a == b; c != d e",
		"a > 1 && b < 2":               "a > 1; b < 2",
		"east.tension > 1":             "east.tension > 1",
		"north-port.tension == 'high'": "north-port.tension == high",
		"tension":                      "error",
		"tension => 7":                 "error",
		"tension >= ":                  "error",
		"tension > 7 and":              "error",
		"":                             "error",
		"tension >= 7 or trust < 3":    "error",
	} {
		all, err := ParseConditions(text)
		got := "error"
		if err == nil {
			var parts []string
			for _, c := range all {
				parts = append(parts, c.String())
			}
			got = strings.Join(parts, "; ")
		}
		if got != want {
			t.Errorf("%q: %s, want %s (%v)", text, got, want, err)
		}
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	number, word := Value{true, 5, "5"}, Value{true, 1, "High"}
	for text, c := range map[string]struct {
		value Value
		want  bool
	}{
		"m >= 5": {number, true}, "m > 5": {number, false}, "m <= 5": {number, true}, "m < 5": {number, false}, "m == 5.0": {number, true}, "m != 5": {number, false},
		"w == high": {word, true}, "w != high": {word, false}, "w == low": {word, false}, "w != low": {word, true}, "w > high": {word, false}, "w >= 1": {word, true},
		"u == 0": {Value{}, false}, "u != 0": {Value{}, false}, "u < 1": {Value{}, false}, "u != x": {Value{}, false},
	} {
		all, err := ParseConditions(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := all[0].Holds(c.value); got != c.want {
			t.Errorf("%s of %+v: %v", text, c.value, got)
		}
	}
}

func TestChange(t *testing.T) {
	t.Parallel()
	s := &Script{
		Name: "n", Turns: 3, Actors: []Actor{{ShortName: "east", Goals: []string{"a"}}, {ShortName: "west"}},
		Metrics: []Metric{{Name: "m", Range: []float64{0, 1}}}, Events: []Event{{Name: "e", Probability: 0.5}},
	}
	got, err := s.Change(map[string]any{
		"turns": 5, "actors.west.goals": []any{"x"}, "metrics.m.range": []any{0, 9}, "events.e.probability": 1, "talk.bilateral": true, "validation.max_issues_before_halt": 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Turns != 5 || !reflect.DeepEqual(got.Actors[1].Goals, []string{"x"}) || got.Metrics[0].Range[1] != 9 || got.Events[0].Probability != 1 || !got.Talk.Bilateral || got.Validation.MaxIssues != 4 {
		t.Errorf("%+v", got)
	}
	if s.Turns != 3 || s.Actors[1].Goals != nil {
		t.Error("the script itself was changed")
	}
	for key, want := range map[string]string{
		"turnz":             `turnz: a scenario has no key "turnz"`,
		"actors.north.name": `actors.north.name: none is called "north"; there are east, west`,
		"turns.more":        `turns.more: "more" stands below a single value`,
		"actors.east.goal":  `actors.east.goal: a scenario has no key "goal"`,
		"name":              "name: wants a text, found a number",
		"actors.east.goals": "actors.east.goals: wants a list, found a number",
	} {
		if _, err := s.Change(map[string]any{key: 7}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
}

func TestReadValues(t *testing.T) {
	t.Parallel()
	number := Metric{Type: Continuous, Range: []float64{0, 10}}
	word := Metric{Type: Categorical, Categories: []string{"low", "high"}}
	truth := Metric{Type: Boolean}
	for _, c := range []struct {
		metric Metric
		text   string
		want   Value
	}{
		{number, "7.5", Value{true, 7.5, "7.5"}}, {number, "0", Value{true, 0, "0"}}, {number, "10.1", Value{}}, {number, "NaN", Value{}}, {number, "Inf", Value{}}, {number, "", Value{}}, {number, "seven", Value{}},
		{word, "HIGH", Value{true, 1, "high"}}, {word, "none", Value{}}, {word, "", Value{}},
		{truth, "yes", Value{true, 1, "true"}}, {truth, "False", Value{true, 0, "false"}}, {truth, "2", Value{}}, {truth, "", Value{}},
	} {
		if got, ok := c.metric.Read(c.text); got != c.want || ok != c.want.Known {
			t.Errorf("%s %q: %+v", c.metric.Type, c.text, got)
		}
	}
	for _, c := range []struct {
		metric Metric
		number float64
		want   Value
	}{{word, 1, Value{true, 1, "high"}}, {word, 0.5, Value{}}, {word, 2, Value{}}, {word, -1, Value{}}, {truth, 1, Value{true, 1, "true"}}, {truth, 0.5, Value{}}} {
		if got, _ := c.metric.Number(c.number); got != c.want {
			t.Errorf("%s %v: %+v", c.metric.Type, c.number, got)
		}
	}
}
