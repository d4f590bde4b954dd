package answer

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/llm"
)

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, schema, want string }{
		{"nothing", ``, "not JSON"},
		{"not JSON", `{type: object}`, "not JSON"},
		{"two values", `{} {}`, "not JSON"},
		{"a list", `[]`, "want a JSON Schema, which is an object, not an array of 0"},
		{"a string", `"object"`, `not the string "object"`},
		{"null", `null`, "not null"},
		{"unknown type", `{"type":"objekt"}`, "/type"},
		{"type is a number", `{"type":5}`, "/type"},
		{"bad pattern", `{"pattern":"("}`, "pattern"},
		{"dangling reference", `{"$ref":"#/$defs/none"}`, "$defs/none"},
		{"reference to the network", `{"$ref":"https://example.com/x.json"}`, "not followed"},
		{"reference to a file", `{"$ref":"file:///etc/passwd"}`, "not followed"},
		{"relative reference", `{"$ref":"other.json"}`, "other.json"},
		{"another meta-schema", `{"$schema":"https://example.com/meta"}`, "not followed"},
		{"huge number", `{"minimum":1e999999999}`, "out of range"},
		{"multiple of zero", `{"multipleOf":0}`, "multipleOf"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Compile(json.RawMessage(tt.schema))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "schema: ") {
				t.Errorf("error is %v, want it to say %q", err, tt.want)
			}
		})
	}
}

func TestCompileReferences(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}},"additionalProperties":false}},"$ref":"#/$defs/node"}`)
	if _, _, err := s.Read(`{"next":{"next":{}}}`); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Read(`{"next":{"nxt":{}}}`); err == nil || !strings.Contains(err.Error(), `next: expected no other properties, found "nxt"`) {
		t.Errorf("error is %v", err)
	}
	// A schema that refers to itself and says nothing must not hang.
	endless := mustCompile(t, `{"$ref":"#"}`)
	if _, _, err := endless.Read(`{}`); err == nil {
		t.Error("a schema without an end was followed")
	}
}

func TestCompilerKeepsSchemas(t *testing.T) {
	t.Parallel()
	var c Compiler
	first, err := c.Compile(json.RawMessage(object))
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := c.Compile(json.RawMessage(object)); again != first {
		t.Error("the same schema was compiled twice")
	}
	if _, err := c.Compile(json.RawMessage(`[]`)); err == nil {
		t.Error("a list was compiled")
	}
	for i := range maxKept {
		if _, err := c.Compile(json.RawMessage(fmt.Sprintf(`{"minimum":%d}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	if again, _ := c.Compile(json.RawMessage(object)); again == first || len(c.kept) > maxKept {
		t.Errorf("%d schemas are kept, the first still among them: %v", len(c.kept), again == first)
	}
	const large = maxBytes / llm.MaxSchemaBytes
	for i := range large {
		head, tail := `{"description":"`, fmt.Sprintf(`%02d"}`, i)
		big := head + strings.Repeat("x", llm.MaxSchemaBytes-len(head)-len(tail)) + tail
		if _, err := c.Compile(json.RawMessage(big)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Compile(json.RawMessage(object)); err != nil || c.bytes > maxBytes || len(c.kept) > large {
		t.Errorf("%v; %d bytes, %d kept", err, c.bytes, len(c.kept))
	}
}

// TestCompileRefusesDeepSchemas counts what a deep schema costs: it is refused before anything
// is built from it, however long it is.
func TestCompileRefusesDeepSchemas(t *testing.T) { //nolint:paralleltest // AllocsPerRun must run alone
	for _, n := range []int{100, 1600, 40000} {
		deep := json.RawMessage(strings.Repeat(`{"properties":{"a":`, n) + "{}" + strings.Repeat("}}", n))
		var err error
		allocs := testing.AllocsPerRun(1, func() { _, err = Compile(deep) })
		if err == nil || !strings.Contains(err.Error(), "levels deep") || allocs > 20 {
			t.Errorf("%d levels: %v after %v allocations", n, err, allocs)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	var c Compiler
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				s, err := c.Compile(json.RawMessage(fmt.Sprintf(`{"type":"object","required":["p%d"]}`, i%10)))
				if err != nil {
					t.Error(err)
					return
				}
				if _, _, err := s.Read(fmt.Sprintf(`Here: {p%d: 1,}`, i%10)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
