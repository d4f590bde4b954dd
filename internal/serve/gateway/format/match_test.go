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

// TestParse checks the errors of rules.
func TestParse(t *testing.T) {
	t.Parallel()
	if r, err := ParseRules(nil); r != nil || err != nil || r.AnyModel() {
		t.Error(r, err)
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

// TestContinues finds conversations that continue.
func TestContinues(t *testing.T) {
	t.Parallel()
	r := rules(t, "re:[0-9]+")
	for _, c := range []struct {
		rules  *Rules
		q, was *llm.Request
		more   bool
	}{
		{nil, asked("a", "b", "c"), asked("a", "b"), true},
		{nil, asked("a", "b"), asked("a", "b"), false},
		{nil, asked("a", "x", "c"), asked("a", "b"), false},
		{nil, asked("a"), asked(), false},
		{nil, asked("a 1", "b"), asked("a 2"), false},
		{r, asked("a 1", "b"), asked("a 2"), true},
	} {
		if c.rules.Continues(c.q, c.was) != c.more {
			t.Errorf("%s after %s", encodeJSON(c.q), encodeJSON(c.was))
		}
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
