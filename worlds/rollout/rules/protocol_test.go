package rules

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley/llm"
)

func TestPromptForms(t *testing.T) {
	t.Parallel()
	hi := llm.User("hi")
	for _, c := range []struct {
		in   string
		want Prompt
		err  string
	}{
		{`[]`, Prompt{}, ""},
		{`null`, Prompt{}, ""},
		{`{}`, Prompt{}, ""},
		{`[{"role":"user","content":"hi"}]`, Ask(hi), ""},
		{` [{"role":"user","content":[{"type":"text","text":"hi"}]}]`, Ask(hi), ""},
		{`{"messages":[{"role":"user","content":"hi"}]}`, Ask(hi), ""},
		{`{"a":[{"role":"user","content":"hi"}],"b":{"messages":[{"role":"user","content":"hi"}]},"c":[]}`, Prompt{"a": {Messages: []llm.Message{hi}}, "b": {Messages: []llm.Message{hi}}}, ""},
		{`"hi"`, nil, "want a list of messages"},
		{`[{"role":"king","content":"hi"}]`, nil, "king"},
		{`[1]`, nil, "prompt"},
		{`{"a":3}`, nil, `prompt of "a"`},
		{`{"a":{"b":1}}`, nil, `prompt of "a"`},
		{`{"messages":3}`, nil, "prompt"},
		{`{`, nil, ""},
	} {
		var p Prompt
		err := json.Unmarshal([]byte(c.in), &p)
		switch {
		case c.want == nil && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want an error with %q", c.in, err, c.err)
		case c.want != nil && (err != nil || !reflect.DeepEqual(p, c.want)):
			t.Errorf("%s: %v, %v", c.in, p, err)
		}
	}
}

func TestRewards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want Rewards
	}{
		{`{"reward":1.5}`, Rewards{DefaultAgent: 1.5}},
		{`{"reward":null}`, nil},
		{`{}`, nil},
		{`{"reward":{"a":1,"b":-1}}`, Rewards{"a": 1, "b": -1}},
		{`{"reward":1,"info":{"reward_dict":{"a":2}}}`, Rewards{"a": 2}},
		{`{"reward":1,"info":{"reward_dict":{}}}`, Rewards{DefaultAgent: 1}},
		{`{"reward":1,"info":{"reward_dict":"much"}}`, Rewards{DefaultAgent: 1}},
		{`{"reward":1,"info":[3]}`, Rewards{DefaultAgent: 1}},
	} {
		var r Result
		if err := json.Unmarshal([]byte(c.in), &r); err != nil || !reflect.DeepEqual(r.Rewarded(), c.want) {
			t.Errorf("%s: %v, %v", c.in, r.Rewarded(), err)
		}
	}
	for _, bad := range []string{`{"reward":"much"}`, `{"reward":NaN}`, `{"reward":[1]}`, `{"reward":{"a":"b"}}`, `{"reward":1,"Reward":-1}`, `{"reward":{"a":1},"reward":{"a":2}}`} {
		if err := json.Unmarshal([]byte(bad), new(Result)); err == nil {
			t.Errorf("%s passes", bad)
		}
	}
}

// TestForms: what is written for one agent is what an environment of one agent expects.
func TestForms(t *testing.T) {
	t.Parallel()
	calls := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "hm"}}, ToolCalls: []llm.ToolCall{{ID: "1", Name: "look", Arguments: "{}"}}}
	for _, c := range []struct {
		v    any
		want string
	}{
		{Action{DefaultAgent: llm.Assistant("go")}, `"go"`},
		{Action{"a": llm.Assistant("x"), "b": llm.Assistant("y")}, `{"a":"x","b":"y"}`},
		{Action{DefaultAgent: calls}, `{"role":"assistant","content":"hm","tool_calls":[{"id":"1","type":"function","function":{"name":"look","arguments":"{}"}}]}`},
		{Action{"a": calls, "b": llm.Assistant("")}, `{"a":{"role":"assistant","content":"hm","tool_calls":[{"id":"1","type":"function","function":{"name":"look","arguments":"{}"}}]},"b":""}`},
		{tooled("look", llm.User("hi")), `{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]}`},
		{Rewards{DefaultAgent: 2}, `2`},
		{Rewards{}, `0`},
		{Rewards{"a": 1}, `{"a":1}`},
		{Ask(llm.User("hi")), `[{"role":"user","content":"hi"}]`},
		{Prompt{}, `[]`},
	} {
		b, err := json.Marshal(c.v)
		if err != nil || string(b) != c.want {
			t.Errorf("%v: %s, %v", c.v, b, err)
		}
		back := reflect.New(reflect.TypeOf(c.v))
		if err := json.Unmarshal(b, back.Interface()); err != nil || reflect.ValueOf(c.v).Len() > 0 && !reflect.DeepEqual(back.Elem().Interface(), c.v) {
			t.Errorf("%s is read back as %v, %v", b, back.Elem(), err)
		}
	}
}

func said(ms ...llm.Message) Question { return Question{Messages: ms} }

func tooled(name string, ms ...llm.Message) Prompt {
	return Prompt{DefaultAgent: {Messages: ms, Tools: ToolList{{Name: name, Parameters: json.RawMessage(`{"type":"object"}`)}}}}
}

func TestToolForms(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`[{"type":"function","function":{"name":"a","description":"d","parameters":{ "type": "object" },"strict":true}}]`: `[{a d {"type":"object"} true}]`,
		`[{"name":"a","parameters":{"type":"object"}}]`:                                                                   `[{a  {"type":"object"} false}]`,
		`[{"name":"a","inputSchema":{"type":"object"}}]`:                                                                  `[{a  {"type":"object"} false}]`,
		`[{"name":"a"}]`:                 `[{a  {"type":"object","properties":{}} false}]`,
		`[]`:                             `[]`,
		`{"name":"a"}`:                   "tools: want a list of tools",
		`[{"name":"a b"}]`:               `tools[0]: name "a b": want at most 64 letters`,
		`[{"name":"a"},{"name":"a"}]`:    `tools[1]: "a" is listed twice`,
		`[{"name":"a","parameters":[]}]`: "tools[0]: parameters of a: want a JSON Schema",
		`[3]`:                            "tools[0]: want",
		`[{"name":3}]`:                   "tools[0]: want name",
	} {
		var p Prompt
		err := json.Unmarshal([]byte(`{"messages":[{"role":"user","content":"hi"}],"tools":`+in+`}`), &p)
		got := fmt.Sprint(err)
		if err == nil {
			got = ""
			for _, tool := range p[DefaultAgent].Tools {
				got += fmt.Sprintf("{%s %s %s %v}", tool.Name, tool.Description, tool.Parameters, tool.Strict)
			}
			got = "[" + got + "]"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestActionsThatAreNone: an action has answers only.
func TestActionsThatAreNone(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`3`: "want an answer", `null`: "want an answer", `[]`: "want an answer", `{"a":3}`: `action of "a"`,
		`{"a":{"role":"user","content":"x"}}`: `want assistant`, `{"role":"user","tool_calls":[]}`: "want assistant",
	} {
		var a Action
		if err := json.Unmarshal([]byte(in), &a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

func TestDelta(t *testing.T) {
	t.Parallel()
	a, b, c := llm.User("a"), llm.Assistant("b"), llm.User("c")
	from, to := Past{}, Past{}
	picture := func(data string) llm.Message {
		return llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: "see"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte(data)}}}}
	}
	for _, p := range []Prompt{
		Ask(picture("x"), a), Ask(picture("x"), b), Ask(picture("y"), b), Ask(a), Ask(a, b, c), Ask(a, b, c), Ask(b), {"x": said(a)}, {"x": said(a, b), DefaultAgent: said(b, c)}, {},
		tooled("look", a), tooled("look", a, b), tooled("go", a, b), Ask(b, c),
	} {
		d := from.Delta(p)
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back Delta
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		got, err := to.Apply(back)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%v was decoded as %v, %v", p, got, err)
		}
	}
	if d := from.Delta(Ask(b, c, a)); d[DefaultAgent].Keep != 2 || len(d[DefaultAgent].Add) != 1 {
		t.Errorf("what is said before is sent again: %v", d)
	}
	for _, keep := range []int{-1, 99} {
		if _, err := to.Apply(Delta{DefaultAgent: {Keep: keep}}); err == nil {
			t.Errorf("keeps %d", keep)
		}
	}
}
