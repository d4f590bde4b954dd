package script

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
)

// TestReadDecision reads decisions, and answers without one.
func TestReadDecision(t *testing.T) {
	t.Parallel()
	object := `{"reasoning":"why","long_term_goals":["far"],"short_term_goals":["near"],"action":"what"}`
	full := Decision{LongTerm: []string{"far"}, ShortTerm: []string{"near"}, Reasoning: "why", Action: "what"}
	for name, c := range map[string]struct {
		reply world.Reply
		want  Decision
	}{
		"by the schema":    {world.Reply{JSON: json.RawMessage(object)}, full},
		"a failure":        {world.Reply{Failed: llm.KindRefused}, Decision{Failed: llm.KindRefused}},
		"another form":     {world.Reply{JSON: json.RawMessage(`{"action":["what"]}`)}, Decision{}},
		"only white space": {world.Reply{JSON: json.RawMessage(`{"action":" \n "}`)}, Decision{}},
		"not UTF-8":        {world.Reply{JSON: json.RawMessage("{\"action\":\"a\xff\\u0000b\"}")}, Decision{Action: "a\uFFFDb"}},
	} {
		if got := ReadDecision(c.reply); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	long := ReadDecision(world.Reply{JSON: json.RawMessage(`{"action":"` + strings.Repeat("long ", 1<<14) + `"}`)})
	if n := len([]rune(long.Action)); n != MaxWords+1 {
		t.Errorf("%d characters are kept", n)
	}
}

func TestReadUpdate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply world.Reply
		want  Update
	}{
		"an account":    {world.Reply{JSON: json.RawMessage(`{"state":"new","key_changes":["a","b"],"consequences":["c"]}`)}, Update{State: "new", Changes: []string{"a", "b"}, Consequences: []string{"c"}}},
		"no account":    {world.Reply{Text: "All is new."}, Update{}},
		"a failure":     {world.Reply{Failed: llm.KindTimeout}, Update{}},
		"without state": {world.Reply{JSON: json.RawMessage(`{"key_changes":["a"]}`)}, Update{Changes: []string{"a"}}},
	} {
		if got := ReadUpdate(c.reply); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"state": "x", "key_changes": [""]}`)
	f.Add(`{"action": "x", "issues": [{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range []world.Reply{{Text: text}, {JSON: json.RawMessage(text)}} {
			d, u := ReadDecision(r), ReadUpdate(r)
			ReadOpening(r)
			ReadCheck(r, "low")
			m := Metric{Type: Continuous, Range: []float64{0, 10}}
			if v := ReadMetric(r, &m); v.Value.Known && (v.Value.Number < 0 || v.Value.Number > 10) {
				t.Errorf("a value of %v", v.Value.Number)
			}
			if len([]rune(d.Action)) > MaxWords+1 || len([]rune(u.State)) > maxState+1 {
				t.Error("more is kept than allowed")
			}
		}
	})
}
