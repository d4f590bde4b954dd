package protocol

import (
	"encoding/json"
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
		{`[{"role":"user","content":"hi"}]`, Prompt{Default: {hi}}, ""},
		{` [{"role":"user","content":[{"type":"text","text":"hi"}]}]`, Prompt{Default: {hi}}, ""},
		{`{"messages":[{"role":"user","content":"hi"}]}`, Prompt{Default: {hi}}, ""},
		{`{"a":[{"role":"user","content":"hi"}],"b":{"messages":[{"role":"user","content":"hi"}]},"c":[]}`, Prompt{"a": {hi}, "b": {hi}}, ""},
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
		{`{"reward":1.5}`, Rewards{Default: 1.5}},
		{`{"reward":null}`, nil},
		{`{}`, nil},
		{`{"reward":{"a":1,"b":-1}}`, Rewards{"a": 1, "b": -1}},
		{`{"reward":1,"info":{"reward_dict":{"a":2}}}`, Rewards{"a": 2}},
		{`{"reward":1,"info":{"reward_dict":{}}}`, Rewards{Default: 1}},
		{`{"reward":1,"info":{"reward_dict":"much"}}`, Rewards{Default: 1}},
		{`{"reward":1,"info":[3]}`, Rewards{Default: 1}},
	} {
		var r Result
		if err := json.Unmarshal([]byte(c.in), &r); err != nil || !reflect.DeepEqual(r.Rewarded(), c.want) {
			t.Errorf("%s: %v, %v", c.in, r.Rewarded(), err)
		}
	}
	for _, bad := range []string{`{"reward":"much"}`, `{"reward":NaN}`, `{"reward":[1]}`, `{"reward":{"a":"b"}}`} {
		if err := json.Unmarshal([]byte(bad), new(Result)); err == nil {
			t.Errorf("%s passes", bad)
		}
	}
}

// TestForms: what is written for one agent is what an environment of one agent expects.
func TestForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    any
		want string
	}{
		{Action{Default: "go"}, `"go"`},
		{Action{"a": "x", "b": "y"}, `{"a":"x","b":"y"}`},
		{Rewards{Default: 2}, `2`},
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
		if err := json.Unmarshal(b, back.Interface()); err != nil {
			t.Errorf("%s: does not read back: %v", b, err)
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
		Ask(picture("x"), a), Ask(picture("x"), b), Ask(picture("y"), b), Ask(a), Ask(a, b, c), Ask(a, b, c), Ask(b), {"x": {a}}, {"x": {a, b}, Default: {b, c}}, {},
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
	if d := from.Delta(Ask(b, c, a)); d[Default].Keep != 2 || len(d[Default].Add) != 1 {
		t.Errorf("what is said before is sent again: %v", d)
	}
	for _, keep := range []int{-1, 99} {
		if _, err := to.Apply(Delta{Default: {Keep: keep}}); err == nil {
			t.Errorf("keeps %d", keep)
		}
	}
}
