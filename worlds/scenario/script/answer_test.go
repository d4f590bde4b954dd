package script

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
)

func TestSections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, reasoning, action string }{
		"bold with colon":           {"**REASONING:** why\n**ACTION:** what", "why", "what"},
		"colon after bold":          {"**REASONING**: why\n**ACTION**: what", "why", "what"},
		"bold without colon":        {"**REASONING**\nwhy\n\n**ACTION**\nwhat", "why", "what"},
		"capitals":                  {"REASONING: why\nACTION: what", "why", "what"},
		"mixed":                     {"**Reasoning:**\nwhy\nACTION: what", "why", "what"},
		"headings":                  {"## Reasoning\nwhy\n### Action:\nwhat", "why", "what"},
		"extra spaces":              {"  **  REASONING  :  **   why  \n\n **ACTION** :what ", "why", "what"},
		"any case":                  {"**reasoning:** why\n**AcTiOn:** what", "why", "what"},
		"a rule ends a section":     {"**REASONING:** why\n---\nnot this\n**ACTION:** what", "why", "what"},
		"first of two":              {"**ACTION:** what\n**ACTION:** other", "", "what"},
		"missing":                   {"**REASONING:** why", "why", ""},
		"empty":                     {"**REASONING:**\n**ACTION:** what", "", "what"},
		"nothing":                   {"", "", ""},
		"no header":                 {"I will act: now.", "", ""},
		"other headers stay within": {"**ACTION:** a\n**Step one:** b\nNOTE: c", "", "a\n**Step one:** b\nNOTE: c"},
		"lower case is no header":   {"**ACTION:** a\nreasoning: b", "", "a\nreasoning: b"},
		"code is kept":              {"**ACTION:**\n```\nREASONING: no\n---\n```\nend", "", "```\nREASONING: no\n---\n```\nend"},
		"unicode":                   {"**ACTION:** Müller – „ja“ 虎", "", "Müller – „ja“ 虎"},
		"several lines":             {"ACTION: a\nb\n\nc", "", "a\nb\n\nc"},
	} {
		s := sections(c.text, "reasoning", "action")
		if s["reasoning"] != c.reasoning || s["action"] != c.action {
			t.Errorf("%s: %q, want %q and %q", name, s, c.reasoning, c.action)
		}
	}
	for _, header := range []string{"**LONG-TERM GOALS**", "**Long_Term Goals:**", "LONG TERM GOALS:"} {
		if got := sections(header+"\n- one", "long term goals"); got["long term goals"] != "- one" {
			t.Errorf("%s: %q", header, got)
		}
	}
}

func TestPoints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"- a\n* b\n• c":  {"a", "b", "c"},
		"1. a\n2. b":     {"1. a\n2. b"},
		"- a\n1. b\nc":   {"a"},
		"plain":          {"plain"},
		"":               nil,
		"  - a  \n\n- b": {"a  ", "b"},
	} {
		if got := points(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestReadDecision reads decisions that are structured, within a text, in sections, or missing.
func TestReadDecision(t *testing.T) {
	t.Parallel()
	object := `{"reasoning":"why","long_term_goals":["far"],"short_term_goals":["near"],"action":"what"}`
	full := Decision{LongTerm: []string{"far"}, ShortTerm: []string{"near"}, Reasoning: "why", Action: "what"}
	for name, c := range map[string]struct {
		reply world.Reply
		want  Decision
	}{
		"by the schema":    {world.Reply{JSON: json.RawMessage(object)}, full},
		"bare":             {world.Reply{Text: object}, full},
		"fenced":           {world.Reply{Text: "Here:\n```json\n" + object + "\n```\nDone."}, full},
		"sections":         {world.Reply{Text: "**LONG-TERM GOALS:**\n- far\n**SHORT-TERM PRIORITIES:**\n- near\n**REASONING:** why\n**ACTION:** what"}, full},
		"a trailing comma": {world.Reply{Text: `{"action":"what",}` + "\n**ACTION:** other"}, Decision{Action: "other"}},
		"a failure":        {world.Reply{Failed: llm.KindRefused}, Decision{Failed: llm.KindRefused}},
		"another form":     {world.Reply{JSON: json.RawMessage(`{"action":["what"]}`)}, Decision{}},
		"only white space": {world.Reply{JSON: json.RawMessage(`{"action":" \n "}`)}, Decision{}},
		"not UTF-8":        {world.Reply{Text: "ACTION: a\xff\x00b"}, Decision{Action: "a\uFFFDb"}},
	} {
		if got := ReadDecision(c.reply); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	long := ReadDecision(world.Reply{Text: "ACTION: " + strings.Repeat("long ", 1<<14)})
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
		"sections":      {world.Reply{Text: "**UPDATED STATE:** new\n**KEY CHANGES:**\n- a\n* b\n**CONSEQUENCES:**\n• c"}, Update{State: "new", Changes: []string{"a", "b"}, Consequences: []string{"c"}}},
		"no form":       {world.Reply{Text: "All is new."}, Update{State: "All is new."}},
		"a failure":     {world.Reply{Failed: llm.KindTimeout}, Update{}},
		"without state": {world.Reply{JSON: json.RawMessage(`{"key_changes":["a"]}`)}, Update{Changes: []string{"a"}}},
	} {
		if got := ReadUpdate(c.reply); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("**ACTION:** x\n- y\n---")
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
