package script

import (
	"fmt"
	"os"
	"path/filepath"
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
		Metrics: []Metric{{Name: "m", Range: []float64{0, 1}}}, Events: []Event{{Name: "e", Probability: new(0.5)}},
	}
	got, err := s.Change(map[string]any{
		"turns": 5, "actors.west.goals": []any{"x"}, "metrics.m.range": []any{0, 9}, "events.e.probability": 1, "talk.bilateral": true, "validation.max_issues_before_halt": 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Turns != 5 || !reflect.DeepEqual(got.Actors[1].Goals, []string{"x"}) || got.Metrics[0].Range[1] != 9 || *got.Events[0].Probability != 1 || !got.Talk.Bilateral || got.Validation.MaxIssues != 4 {
		t.Errorf("%+v", got)
	}
	nested, err := s.Change(map[string]any{"actors": map[string]any{"west": map[string]any{"goals": []any{"x"}}}, "turns": 4})
	if err != nil || nested.Turns != 4 || !reflect.DeepEqual(nested.Actors[1].Goals, []string{"x"}) || nested.Actors[1].ShortName != "west" {
		t.Errorf("%+v (%v)", nested, err)
	}
	if s.Turns != 3 || s.Actors[1].Goals != nil {
		t.Error("the script itself was changed")
	}
	for key, want := range map[string]string{
		"actors.north.name": `actors.north.name: none is called "north"; there are: east, west`,
		"actors.wets.name":  `actors.wets.name: none is called "wets"; did you mean west? there are: east, west`,
		"metrics.m.more":    `metrics.m.more: a metric has no key "more"; keys: name, description, type, range, categories, extraction, unit, actor_specific, warning_threshold, critical_threshold`,
		"talk.roundz":       `talk.roundz: talk has no key "roundz"; keys: public_statements, bilateral, coalitions, max_communications_per_turn, bilateral_rounds`,
		"end.tension.value": `end.tension.value: a condition has no key "tension"; keys: metric, actor, op, value`,
		"turns.more":        `turns.more: "more" is below a single value`,
		"name":              "name: wants a text, found a number",
		"actors.east.goals": "actors.east.goals: wants a list, found a number",
	} {
		if _, err := s.Change(map[string]any{key: 7}); len(err) != 1 || err[0].Key+": "+err[0].What != want {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
}

// TestKeysAreThoseOfAScript compares the list of keys with the types.
func TestKeysAreThoseOfAScript(t *testing.T) {
	t.Parallel()
	var check func(typ reflect.Type, r *keyTree)
	check = func(typ reflect.Type, r *keyTree) {
		var keys []string
		inside := map[string]bool{}
		for f := range typ.Fields() {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			keys = append(keys, key)
			field := f.Type
			if field.Kind() == reflect.Slice || field.Kind() == reflect.Pointer {
				field = field.Elem()
			}
			if field.Kind() != reflect.Struct {
				continue
			}
			inside[key] = true
			if r.inside[key] == nil {
				t.Errorf("%s: %s is not listed as a mapping", typ, key)
				continue
			}
			check(field, r.inside[key])
		}
		if !reflect.DeepEqual(keys, r.keys) || len(inside) != len(r.inside) {
			t.Errorf("%s has %v, listed are %v", typ, keys, r.keys)
		}
	}
	check(reflect.TypeFor[Script](), scriptKeys())
}

// TestChangeNamesTheNearest checks that a misspelled key names the nearest one.
func TestChangeNamesTheNearest(t *testing.T) {
	t.Parallel()
	s := &Script{Name: "n", Turns: 3, Actors: []Actor{{ShortName: "east"}}, Metrics: []Metric{{Name: "tension", Type: Continuous, Range: []float64{0, 10}}}}
	for key, want := range map[string]string{"turnz": "did you mean turns?", "actors.east.goal": "did you mean goals?", "metrics.tensoin.range": "did you mean tension?"} {
		if _, err := s.Change(map[string]any{key: 7}); len(err) != 1 || !strings.Contains(err[0].What, want) {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
	if got := (Condition{Metric: "tnesion", Op: ">", Value: "1"}).wrong(s); !strings.Contains(got, "did you mean tension?") {
		t.Error(got)
	}
}

// TestChangeTalk checks that talk that is turned on has limits, whether its key is written as in the
// file or as in a script, and that a limit of 0 is kept.
func TestChangeTalk(t *testing.T) {
	t.Parallel()
	s := &Script{Name: "n", Turns: 3}
	for _, c := range []struct {
		set  map[string]any
		want Talk
	}{
		{map[string]any{"enable_bilateral_communication": true}, Talk{Bilateral: true, Max: 2, Rounds: 1}},
		{map[string]any{"talk.coalitions": true, "bilateral_rounds": 3}, Talk{Coalitions: true, Max: 2, Rounds: 3}},
		{map[string]any{"talk.bilateral": true, "max_communications_per_turn": 0}, Talk{Bilateral: true, Rounds: 1}},
		{map[string]any{"enable_public_statements": true}, Talk{Statements: true}},
		{map[string]any{"turns": 9}, Talk{}},
	} {
		got, err := s.Change(c.set)
		if err != nil || got.Talk != c.want {
			t.Errorf("%v: %+v (%v), want %+v", c.set, got, err, c.want)
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

func TestMeasure(t *testing.T) {
	t.Parallel()
	wide := []float64{-1e30, 1e30}
	keyword := func(scoring string, words ...string) Metric {
		return Metric{Type: Continuous, Range: wide, Extraction: Extraction{Type: ByKeyword, Keywords: words, Scoring: scoring}}
	}
	pattern := func(p string) Metric {
		return Metric{Type: Continuous, Range: wide, Extraction: Extraction{Type: ByPattern, Pattern: p}}
	}
	levels := Metric{Type: Categorical, Categories: []string{"low", "High"}, Extraction: Extraction{Type: ByPattern, Pattern: `alert: (\w+)`}}
	narrow := keyword("count", "war")
	narrow.Range = []float64{0, 2}
	for name, c := range map[string]struct {
		metric Metric
		text   string
		want   string // the value, or why it is not known
	}{
		"count":             {keyword("count", "war", "peace"), "War, warfare and peace.", "3"},
		"count of none":     {keyword("count", "war"), "Peace.", "0"},
		"presence":          {keyword("presence", "war"), "war war", "1"},
		"no presence":       {keyword("presence", "war"), "peace", "0"},
		"density":           {keyword("density", "war"), "war and peace at last", "20"},
		"density of none":   {keyword("density", "war"), "", "0"},
		"out of range":      {narrow, "war war war", "out of range"},
		"pattern":           {pattern(`(\d+) percent`), "first 10 percent, then 45 PERCENT", "45"},
		"first group":       {pattern(`(?:level (\d+)|stage (\d+))`), "stage 7", "7"},
		"no group":          {pattern(`\d+`), "it is 12", "12"},
		"no match":          {pattern(`(\d+) percent`), "none", "nothing matches the pattern"},
		"thousands":         {pattern(`([\d,]+) people`), "1,204,000 people", "1.204e+06"},
		"power":             {pattern(`(10\^\d+) operations`), "10^25 operations", "1e+25"},
		"too great a power": {pattern(`(10\^\d+)`), "10^999", "what matches is no value"},
		"no number":         {pattern(`is (\w+)`), "is large", "what matches is no value"},
		"category":          {levels, "alert: HIGH", "1"},
		"no category":       {levels, "alert: purple", "what matches is no value"},
	} {
		v := c.metric.Measure(c.text, 1)
		got := v.Unknown
		if v.Value.Known {
			got = fmt.Sprint(v.Value.Number)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	manual := Metric{Type: Boolean, Extraction: Extraction{Type: byHand, Values: []string{"true", "", "no"}}}
	for turn, want := range []Value{{}, {Known: true, Number: 1, Text: "true"}, {}, {Known: true, Text: "false"}, {}} {
		if got := manual.Measure("", turn); got.Value != want {
			t.Errorf("by hand, turn %d: %+v", turn, got)
		}
	}
}

// TestEveryKeyIsDocumented compares the keys that files may have with their document.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "worlds", "scenario.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range []any{situation{}, features{}, actor{}, metricFile{}, metric{}, extraction{}, checkFile{}, checks{}, eventFile{}, event{}} {
		for f := range reflect.TypeOf(file).Fields() {
			n++
			if key := f.Tag.Get("json"); !strings.Contains(string(b), "`"+key+"`") && !strings.Contains(string(b), "`"+key+":") {
				t.Errorf("docs/worlds/scenario.md does not explain %s", key)
			}
		}
	}
	if n < 80 {
		t.Errorf("%d keys: is one of the files forgotten?", n)
	}
}
