package check

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStrict(t *testing.T) {
	t.Parallel()
	cases := []struct {
		schema      string
		allRequired bool
		says        string
	}{
		{`{"type":"string"}`, true, ""},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, true, ""},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, true, "Missing 'a'"},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, false, ""},
		{`{"type":"object"}`, false, "additionalProperties"},
		{`{"type":["object","null"],"additionalProperties":true}`, false, "additionalProperties"},
		{`{"type":"array","items":{"type":"object"}}`, false, "/items"},
		{`{"anyOf":[{"type":"null"},{"properties":{}}]}`, false, "/anyOf/1"},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object"}}}`, false, "/$defs/x"},
		{strings.Repeat(`{"items":`, 200) + `{}` + strings.Repeat(`}`, 200), false, "nested"},
		{`{`, false, "no JSON"},
	}
	for _, c := range cases {
		if got := Strict(json.RawMessage(c.schema), c.allRequired); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%.80s: %q, want %q", c.schema, got, c.says)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{`"a"`: "a", `""`: "", `"a\nb"`: "a\nb", `"\u00e9"`: "é"} {
		if got, ok := Text(json.RawMessage(raw)); !ok || got != want {
			t.Errorf("%s: %q %t", raw, got, ok)
		}
	}
	for _, raw := range []string{``, `"`, `3`, `null`, `["a"]`} {
		if _, ok := Text(json.RawMessage(raw)); ok {
			t.Errorf("%s is no string", raw)
		}
	}
}

func TestDecodeProblems(t *testing.T) {
	t.Parallel()
	type target struct {
		N    int      `json:"n"`
		F    float64  `json:"f"`
		B    bool     `json:"b"`
		S    string   `json:"s"`
		List []string `json:"list"`
	}
	for body, want := range map[string]Problem{
		`{"n":"x"}`:    {Field: "n", Want: "an integer", Got: "a string"},
		`{"f":true}`:   {Field: "f", Want: "a decimal", Got: "a boolean"},
		`{"b":1}`:      {Field: "b", Want: "a boolean", Got: "a number"},
		`{"s":[]}`:     {Field: "s", Want: "a string", Got: "an array"},
		`{"list":{}}`:  {Field: "list", Want: "an array", Got: "an object"},
		`{"more":1}`:   {Unknown: "more"},
		`{"n":1} x`:    {Syntax: "there is more after the value"},
		`{"n":1}{"n":`: {Syntax: "there is more after the value"},
	} {
		if got := Decode([]byte(body), &target{}, false); got == nil || *got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
	if p := Decode([]byte(`{"more":1}`), &target{}, true); p != nil {
		t.Errorf("%+v", p)
	}
}
