package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/llm"
)

func TestCheckSchema(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat(`{"not":`, n) + "{}" + strings.Repeat("}", n) }
	wide := func(n int) string { return `{"anyOf":[` + strings.Repeat("{},", n-2) + "{}]}" }
	for name, tc := range map[string]struct{ schema, want string }{
		"plain":           {`{"type":"object"}`, ""},
		"nothing":         {"", ""},
		"as deep":         {deep(llm.MaxSchemaDepth - 1), ""},
		"deeper":          {"\n" + deep(llm.MaxSchemaDepth), "line 2, byte 450: nested more than 64 levels deep"},
		"lists":           {strings.Repeat("[", 65), "nested more than"},
		"never closed":    {strings.Repeat(`{"a":`, 200000), "nested more than"},
		"as many":         {wide(llm.MaxSchemaObjects), ""},
		"more":            {wide(llm.MaxSchemaObjects + 1), "more than 6000 objects"},
		"in a string":     {`{"title":"` + strings.Repeat(`{[\"`, 5000) + `"}`, ""},
		"string cut off":  {`{"title":"` + strings.Repeat("{", 500), ""},
		"escape cut off":  {`{"title":"\`, ""},
		"too many bytes":  {`{"title":"` + strings.Repeat("x", llm.MaxSchemaBytes) + `"}`, "are more than the 1048576 allowed"},
		"closed too soon": {"}}}" + deep(2), ""},
	} {
		err := llm.CheckSchema(json.RawMessage(tc.schema))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
