package format

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/llm"
)

func rules(t testing.TB, list ...string) *Rules {
	t.Helper()
	r, err := ParseRules(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func asked(words ...string) *llm.Request {
	q := &llm.Request{Model: "lab/m"}
	for _, w := range words {
		q.Messages = append(q.Messages, llm.User(w))
	}
	return q
}

// TestMatchDigest compares requests under rules.
func TestMatchDigest(t *testing.T) {
	t.Parallel()
	heat, cold := 0.5, 0.1
	with := func(q *llm.Request, change func(*llm.Request)) *llm.Request { change(q); return q }
	tagged := func(tag string) *llm.Request {
		return with(asked("hi"), func(q *llm.Request) {
			q.Extra = map[string]json.RawMessage{"odd": json.RawMessage(`{"tag":"` + tag + `","kept":[1,{"a":"` + tag + `"}]}`), "user": json.RawMessage(`"` + tag + `"`)}
		})
	}
	for _, c := range []struct {
		rules []string
		a, b  *llm.Request
		same  bool
	}{
		{nil, asked("a"), asked("a"), true},
		{nil, asked("a"), asked("b"), false},
		{[]string{"re:<seed>.*</seed>"}, asked("Turn 1 <seed>abc</seed> go"), asked("Turn 1 <seed>x</seed> go"), true},
		{[]string{"re:<seed>.*</seed>"}, asked("Turn 1 <seed>abc</seed> go"), asked("Turn 2 <seed>x</seed> go"), false},
		{[]string{"re:user"}, asked("user a"), with(asked(" a"), func(q *llm.Request) { q.Messages[0].Role = llm.RoleAssistant }), false},
		{[]string{"whitespace"}, asked("a  b\n"), asked("a b"), true},
		{[]string{"whitespace"}, asked("ab"), asked("a b"), false},
		{[]string{"order"}, asked("a", "b"), asked("b", "a"), true},
		{[]string{"order"}, asked("a", "b"), asked("b", "b"), false},
		{[]string{"whitespace"}, asked("a", "b"), asked("b", "a"), false},
		{[]string{"path:$.temperature"}, with(asked("a"), func(q *llm.Request) { q.Temperature = &heat }), with(asked("a"), func(q *llm.Request) { q.Temperature = &cold }), true},
		{[]string{"path:$.reasoning_effort"}, with(asked("a"), func(q *llm.Request) { q.Effort = llm.EffortLow }), asked("a"), true},
		{[]string{"path:$.messages[1]"}, asked("a", "b", "c"), asked("a", "x", "c"), true},
		{[]string{"path:$.messages[1].content"}, asked("a", "b", "c"), asked("a", "b", "x"), false},
		{[]string{"path:$.messages[*].content"}, asked("a", "b"), asked("x", "y"), true},
		{[]string{"path:$.odd.tag"}, tagged("1"), tagged("2"), false},
		{[]string{"path:$.odd.tag", "path:$['odd'].kept[1].*"}, tagged("1"), tagged("2"), true},
		{nil, asked("Chunk ID: 7958ec\nWall time: 0.3333 seconds\nOutput:"), asked("Chunk ID: 4633f6\nWall time: 0.3039 seconds\nOutput:"), true},
		{nil, asked("Chunk ID: 7958ec\nWall time: 0.3333 seconds\nOutput: a"), asked("Chunk ID: 4633f6\nWall time: 0.3039 seconds\nOutput: b"), false},
		{nil, asked("Process running with session ID 82947\n"), asked("Process running with session ID 1\n"), true},
		{nil, asked("<current_date>2026-11-18</current_date>"), asked("<current_date>2027-01-02</current_date>"), true},
		{nil, asked("x-anthropic-billing-header: cc_version=2.1.197.eb2;\na"), asked("x-anthropic-billing-header: cc_version=2.1.197.35a;\na"), true},
		{nil, asked("Today's date is 2026-11-18."), asked("Today's date is 2027-01-02."), true},
		{nil, asked("Today's date is Wednesday, November 18, 2026 (formatted"), asked("Today's date is Friday, January 1, 2027 (formatted"), true},
		{nil, asked("Today's date: Wed Nov 18 2026\n"), asked("Today's date: Thu Nov 19 2026\n"), true},
		{nil, asked("Command running in background with ID: b1. Output is being written to: /tmp/x/tasks/b1.output. You"), asked("Command running in background with ID: b2. Output is being written to: /tmp/y/tasks/b2.output. You"), true},
		{nil, asked("a"), with(asked("a"), func(q *llm.Request) {
			q.Extra = map[string]json.RawMessage{"client_metadata": json.RawMessage(`{"turn_id":"1"}`)}
		}), true},
		{nil, asked("a"), with(asked("a"), func(q *llm.Request) { q.Extra = map[string]json.RawMessage{"user": json.RawMessage(`"me"`)} }), true},
	} {
		r := rules(t, c.rules...)
		a, ok := r.Digest("chat", c.a)
		b, ok2 := r.Digest("chat", c.b)
		if !ok || !ok2 || (a == b) != c.same {
			t.Errorf("%q: %s and %s: same is %v", c.rules, encodeJSON(c.a), encodeJSON(c.b), a == b)
		}
	}
	r := rules(t, "whitespace")
	if a, _ := r.Digest("chat", asked("a")); a == func() [32]byte { b, _ := r.Digest("messages", asked("a")); return b }() {
		t.Error("another endpoint is another question")
	}
	if _, ok := r.Digest("chat", asked(strings.Repeat("x", maxText+1))); ok {
		t.Error("a request of any size is compared")
	}
}

// TestDifferences checks that a difference is named, and never what the rules ignore.
func TestDifferences(t *testing.T) {
	t.Parallel()
	call := func(id, arguments string) *llm.Request {
		q := asked("a")
		q.Messages = append(q.Messages, llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: id, Name: "f", Arguments: arguments}}})
		q.Extra = map[string]json.RawMessage{"odd": json.RawMessage(`"` + id + `"`), "user": json.RawMessage(`"` + id + `"`)}
		return q
	}
	for _, c := range []struct {
		rules []string
		a, b  *llm.Request
		want  string
	}{
		{nil, asked("a b"), asked("a c"), `messages[0].content: around byte 2 it was "a b", and is "a c"`},
		{[]string{"re:[bc]"}, asked("a b"), asked("a c"), ""},
		{[]string{"order"}, asked("a", "b"), asked("b", "a"), ""},
		{nil, asked("a"), asked("a", "b"), "messages: there were 1, and are 2"},
		{nil, call("1", "{}"), call("1", "[]"), `messages[1].tool_calls[0].function.arguments: around byte 0 it was "{}", and is "[]"`},
		{nil, call("1", "{}"), call("2", "{}"), `messages[1].tool_calls[0].id: around byte 0 it was "1", and is "2"; odd: around byte 1 it was "\"1\"", and is "\"2\""`},
		{[]string{"path:$.messages[*].tool_calls[*].id"}, call("1", "{}"), call("2", "{}"), `odd: around byte 1 it was "\"1\"", and is "\"2\""`},
		{[]string{"path:$.messages[*].tool_calls[*].id", "path:$.odd"}, call("1", "{}"), call("2", "{}"), ""},
	} {
		if got := strings.Join(rules(t, c.rules...).Differences(c.a, c.b), "; "); got != c.want {
			t.Errorf("%q: %s, want %s", c.rules, got, c.want)
		}
	}
}

// TestParse checks the errors of rules.
func TestParse(t *testing.T) {
	t.Parallel()
	if (*Rules)(nil).AnyModel() || rules(t).AnyModel() {
		t.Error("the model is ignored")
	}
	if !rules(t, "path:$.model").AnyModel() {
		t.Error("the model is not ignored")
	}
	for rule, want := range map[string]string{
		"spaces":                                 "unknown rule",
		"re:":                                    "unknown rule",
		"re:(":                                   "missing closing )",
		"re:(a{1000}){999}":                      "repeat count", // it would need too much memory
		"path:metadata":                          "begins with $",
		"path:$":                                 "whole request",
		"path:$..user":                           "not supported",
		"path:$.a[?(@.b)]":                       "filters",
		"path:$.a[-1]":                           "a number from 0",
		"path:$.a[1":                             "not closed",
		"path:$['a'":                             "['name']",
		"path:$a":                                "at character 2",
		"path:$" + strings.Repeat(".a", 40):      "at most 32",
		"re:" + strings.Repeat("a", maxRuleSize): "at most 1024",
		"path:$.a[99999999999999999999999999999]": "a number from 0",
	} {
		if _, err := ParseRules([]string{rule}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", rule, err, want)
		}
	}
	many := make([]string, maxRules+1)
	for i := range many {
		many[i] = fmt.Sprintf("re:%d", i)
	}
	if _, err := ParseRules(many); err == nil || !strings.Contains(err.Error(), "at most 32") {
		t.Error(err)
	}
}

// TestShare measures how similar requests are.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules     *Rules
		a, b      *llm.Request
		least, at float64
	}{
		{nil, asked("one two three four"), asked("one two three four"), 1, 1},
		{nil, asked("one two three four"), asked("one, two; three five"), .75, .75},
		{nil, asked("one"), asked("two"), 0, 0},
		{nil, asked(), asked(), 1, 1},
		{nil, asked("日本語の文"), asked("日本語の本"), .8, .8},
		{nil, asked(strings.Repeat("word ", 2*maxWords)), asked(strings.Repeat("word ", 3*maxWords)), 1, 1},
		{rules(t, "re:seed.*"), asked("one seed two"), asked("one seed three four five"), 1, 1},
	} {
		if s := c.rules.Words(c.a).Share(c.rules.Words(c.b)); s < c.least || s > c.at {
			t.Errorf("%.80s and %.80s: %v", encodeJSON(c.a), encodeJSON(c.b), s)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"re:a+", "path:$.a[0]['b'].*", "whitespace", "order", "path:$[", "re:(?i)x"} {
		f.Add(s, "some text", `{"a":[{"b":1}]}`)
	}
	f.Fuzz(func(t *testing.T, rule, text, extra string) {
		r, err := ParseRules([]string{rule})
		if err != nil {
			return
		}
		q := asked(text)
		q.Extra = map[string]json.RawMessage{"a": json.RawMessage(extra)}
		a, ok := r.Digest("chat", q)
		if b, ok2 := r.Digest("chat", q); a != b || ok != ok2 {
			t.Error("a digest is not always the same")
		}
		if share := r.Words(q).Share(r.Words(q)); share != 1 {
			t.Errorf("a request is %v like itself", share)
		}
	})
}
