package simhttp

import (
	"strings"
	"testing"
)

func TestViolation(t *testing.T) {
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
		{`{`, false, "not JSON"},
	}
	for _, c := range cases {
		if got := violation([]byte(c.schema), c.allRequired); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%.80s: %q, want %q", c.schema, got, c.says)
		}
	}
}
