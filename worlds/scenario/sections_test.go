package scenario

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

// TestReadDecision: by the schema, in a text around it, in sections, or not at all.
func TestReadDecision(t *testing.T) {
	t.Parallel()
	object := `{"reasoning":"why","long_term_goals":["far"],"short_term_goals":["near"],"action":"what"}`
	full := decision{long: []string{"far"}, short: []string{"near"}, reasoning: "why", action: "what"}
	for name, c := range map[string]struct {
		reply world.Reply
		want  decision
	}{
		"by the schema":    {world.Reply{JSON: json.RawMessage(object)}, full},
		"bare":             {world.Reply{Text: object}, full},
		"fenced":           {world.Reply{Text: "Here:\n```json\n" + object + "\n```\nDone."}, full},
		"sections":         {world.Reply{Text: "**LONG-TERM GOALS:**\n- far\n**SHORT-TERM PRIORITIES:**\n- near\n**REASONING:** why\n**ACTION:** what"}, full},
		"a trailing comma": {world.Reply{Text: `{"action":"what",}` + "\n**ACTION:** other"}, decision{action: "other"}},
		"a failure":        {world.Reply{Failed: llm.KindRefused}, decision{failed: llm.KindRefused}},
		"another form":     {world.Reply{JSON: json.RawMessage(`{"action":["what"]}`)}, decision{}},
		"only white space": {world.Reply{JSON: json.RawMessage(`{"action":" \n "}`)}, decision{}},
		"not UTF-8":        {world.Reply{Text: "ACTION: a\xff\x00b"}, decision{action: "a\uFFFDb"}},
	} {
		if got := readDecision(c.reply); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	long := readDecision(world.Reply{Text: "ACTION: " + strings.Repeat("long ", 1<<14)})
	if n := len([]rune(long.action)); n != mostWords+1 {
		t.Errorf("%d characters are kept", n)
	}
}

func TestReadUpdate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply world.Reply
		want  updateAnswer
	}{
		"sections":      {world.Reply{Text: "**UPDATED STATE:** new\n**KEY CHANGES:**\n- a\n* b\n**CONSEQUENCES:**\n• c"}, updateAnswer{State: "new", Changes: []string{"a", "b"}, Consequences: []string{"c"}}},
		"no form":       {world.Reply{Text: "All is new."}, updateAnswer{State: "All is new."}},
		"a failure":     {world.Reply{Failed: llm.KindTimeout}, updateAnswer{}},
		"without state": {world.Reply{JSON: json.RawMessage(`{"key_changes":["a"]}`)}, updateAnswer{Changes: []string{"a"}}},
	} {
		if got := readUpdate(c.reply); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("**ACTION:** x\n- y\n---")
	f.Add(`{"action": "x", "issues": [{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range []world.Reply{{Text: text}, {JSON: json.RawMessage(text)}} {
			d, u := readDecision(r), readUpdate(r)
			readOpening(r)
			readCheck(r, "low")
			m := numeric("n")
			if v := readMetric(r, &m); v.value.Known && (v.value.Number < 0 || v.value.Number > 10) {
				t.Errorf("a value of %v", v.value.Number)
			}
			if len([]rune(d.action)) > mostWords+1 || len([]rune(u.State)) > mostState+1 {
				t.Error("more is kept than allowed")
			}
		}
	})
}
