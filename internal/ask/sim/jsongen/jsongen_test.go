package jsongen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 7)) }

// strictly compiles raw for validation with formats asserted.
func strictly(t *testing.T, raw string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(raw)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("test.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("test.json")
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return s
}

// follows checks n draws of raw, and returns the number of different ones.
func follows(t *testing.T, raw string, n int) int {
	t.Helper()
	s, err := Compile([]byte(raw))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	check := strictly(t, raw)
	seen := map[string]bool{}
	for i := range n {
		out := s.Append(nil, seeded(uint64(i)))
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
		if err != nil {
			t.Fatalf("draw %d is not JSON: %v\n%s\n%s", i, err, raw, out)
		}
		if err := check.Validate(v); err != nil {
			t.Fatalf("draw %d: %v\nschema %s\nvalue %s", i, err, raw, out)
		}
		seen[string(out)] = true
	}
	return len(seen)
}

func TestAppendFollowsTheSchema(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, schema string
		variety      int // minimum number of different values in 200 draws
	}{
		{"true", `true`, 20},
		{"empty", `{}`, 20},
		{"types", `{"type":["string","null","integer"]}`, 20},
		{"enum", `{"enum":["a","b",3,null,{"x":1}]}`, 5},
		{"enum of a type", `{"type":"string","enum":["a","b",3]}`, 2},
		{"const", `{"const":{"a":[1,2]}}`, 1},
		{"object", `{"type":"object","properties":{"move":{"type":"string"},"why":{"type":"string"},"n":{"type":"integer"}},"required":["move"],"additionalProperties":false}`, 100},
		{"required without property", `{"type":"object","required":["ghost"]}`, 20},
		{"map", `{"type":"object","additionalProperties":{"type":"integer"},"minProperties":2,"maxProperties":5}`, 100},
		{"counts", `{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"minProperties":2,"maxProperties":2,"additionalProperties":false}`, 2},
		{"array", `{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":5}`, 100},
		{"unique", `{"type":"array","items":{"enum":[1,2,3,4]},"minItems":4,"uniqueItems":true}`, 10},
		{"prefix", `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":2}`, 100},
		{"old tuple", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":[{"type":"integer"},{"type":"boolean"}],"additionalItems":false}`, 20},
		{"range", `{"type":"number","minimum":0,"exclusiveMaximum":1}`, 50},
		{"tiny range", `{"type":"number","exclusiveMinimum":0.001,"exclusiveMaximum":0.002}`, 50},
		{"integer range", `{"type":"integer","exclusiveMinimum":-3,"exclusiveMaximum":3}`, 5},
		{"negative", `{"type":"integer","maximum":-5}`, 20},
		{"multiple", `{"type":"number","multipleOf":0.05,"minimum":0.1,"maximum":0.9}`, 10},
		{"multiple of three", `{"type":"integer","multipleOf":3,"minimum":10,"maximum":40}`, 5},
		{"big", `{"type":"integer","minimum":9000000000000000,"maximum":9000000000000900}`, 50},
		{"length", `{"type":"string","minLength":5,"maxLength":9}`, 50},
		{"exact length", `{"type":"string","minLength":3,"maxLength":3}`, 20},
		{"long", `{"type":"string","minLength":2000}`, 50},
		{"pattern", `{"type":"string","pattern":"^[A-Z]{3}-\\d{2,4}( (to|from) \\w+)?$"}`, 100},
		{"pattern unanchored", `{"type":"string","pattern":"a+b?"}`, 4},
		{"pattern with length", `{"type":"string","pattern":"^[a-z]+$","minLength":40,"maxLength":60}`, 50},
		{"formats", `{"type":"object","properties":{"a":{"type":"string","format":"date"},"b":{"type":"string","format":"date-time"},"c":{"type":"string","format":"email"},"d":{"type":"string","format":"uri"},"e":{"type":"string","format":"uuid"},"f":{"type":"string","format":"ipv4"},"g":{"type":"string","format":"ipv6"},"h":{"type":"string","format":"hostname"},"i":{"type":"string","format":"time"},"j":{"type":"string","format":"duration"}},"required":["a","b","c","d","e","f","g","h","i","j"]}`, 200},
		{"any", `{"anyOf":[{"type":"integer"},{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}]}`, 50},
		{"any with siblings", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, 50},
		{"one", `{"oneOf":[{"type":"integer","minimum":5},{"type":"integer","maximum":50}]}`, 10},
		{"discriminated", `{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"v":{"type":"integer"}},"required":["k","v"]},{"type":"object","properties":{"k":{"const":"b"},"w":{"type":"string"}},"required":["k","w"]}]}`, 50},
		{"all", `{"allOf":[{"type":"object","properties":{"a":{"type":"integer","minimum":3}},"required":["a"]},{"properties":{"a":{"maximum":9},"b":{"type":"boolean"}},"required":["b"]}]}`, 10},
		{"refs", `{"$ref":"#/$defs/move","$defs":{"move":{"type":"object","properties":{"unit":{"$ref":"#/$defs/place"},"to":{"$ref":"#/$defs/place"}},"required":["unit","to"]},"place":{"enum":["PAR","MAR","BRE","SPA/NC"]}}}`, 10},
		{"list", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["v","next"],"additionalProperties":false}}}`, 100},
		{"tree", `{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}},"name":{"type":"string"}},"required":["kids","name"]}`, 100},
		{"expression", `{"anyOf":[{"type":"number"},{"type":"object","properties":{"op":{"enum":["+","-"]},"l":{"$ref":"#"},"r":{"$ref":"#"}},"required":["op","l","r"]}]}`, 50},
		{"not", `{"type":"integer","minimum":0,"maximum":5,"not":{"multipleOf":2}}`, 3},
		{"if", `{"type":"object","properties":{"k":{"enum":["a","b"]},"n":{"type":"integer"}},"required":["k"],"if":{"properties":{"k":{"const":"a"}}},"then":{"required":["n"]}}`, 10},
		{"dependent", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"dependentRequired":{"a":["b"]}}`, 50},
		{"unevaluated", `{"type":"object","allOf":[{"properties":{"a":{"type":"integer"}}}],"properties":{"b":{"type":"integer"}},"unevaluatedProperties":false}`, 50},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := follows(t, c.schema, 200); got < c.variety {
				t.Errorf("%d different values in 200 draws, want at least %d", got, c.variety)
			}
		})
	}
}

func TestAppendKeepsTheOrderOfMembers(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(`{"type":"object","properties":{"reasoning":{"const":1},"answer":{"const":2}},"required":["answer","reasoning"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(s.Append(nil, seeded(1))); got != `{"reasoning":1,"answer":2}` {
		t.Error(got)
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		``, `[]`, `3`, `{"type":"strin"}`, `{"$ref":"#/nowhere"}`, `{"$ref":"https://example.com/x"}`, `{"minItems":-1}`,
		`{"properties":3}`, `{"type":`,
	} {
		if _, err := Compile([]byte(raw)); err == nil {
			t.Errorf("%s: no error", raw)
		}
	}
}

func TestAppendEndsOnImpossibleSchemas(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`false`, `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, `{"minLength":5,"maxLength":2,"type":"string"}`,
		`{"type":"array","items":{"type":"string"},"minItems":900000000}`, `{"type":"string","minLength":900000000}`,
		`{"type":"array","items":{"const":1},"minItems":3,"uniqueItems":true}`, `{"not":{}}`, `{"enum":[1],"type":"string"}`,
		`{"type":"integer","minimum":5,"maximum":2}`, `{"type":"number","minimum":1e300,"maximum":-1e300,"multipleOf":1e-300}`,
		`{"allOf":[{"type":"string"},{"type":"integer"}]}`,
	} {
		s, err := Compile([]byte(raw))
		if err != nil {
			continue
		}
		if out := s.Append(nil, seeded(3)); !json.Valid(out) || len(out) > 8*maxBytes {
			t.Errorf("%s: %d bytes, %.100s", raw, len(out), out)
		}
	}
}

// randomSchema returns a random schema that has valid values.
func randomSchema(r *rand.Rand, depth int) string {
	k := r.IntN(11)
	if depth <= 0 {
		k = r.IntN(6)
	}
	switch k {
	case 0:
		return fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":%d}`, -r.IntN(20), r.IntN(20))
	case 1:
		return fmt.Sprintf(`{"type":"number","exclusiveMinimum":%d,"maximum":%d.5}`, -r.IntN(5), r.IntN(5))
	case 2:
		lo := r.IntN(30)
		return fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":%d}`, lo, lo+r.IntN(9))
	case 3:
		return `{"type":["boolean","null"]}`
	case 4:
		return fmt.Sprintf(`{"enum":["x",%d,null]}`, r.IntN(9))
	case 5:
		return `{"type":"string","pattern":"^([ab]+|\\d{2})$"}`
	case 6, 7:
		return fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d,"maxItems":4}`, randomSchema(r, depth-1), r.IntN(3))
	case 8:
		return fmt.Sprintf(`{"anyOf":[%s,%s]}`, randomSchema(r, depth-1), randomSchema(r, depth-1))
	case 9:
		return fmt.Sprintf(`{"allOf":[{"type":"object","properties":{"a":%s},"required":["a"]},{"properties":{"b":%s}}]}`,
			randomSchema(r, depth-1), randomSchema(r, depth-1))
	default:
		return fmt.Sprintf(`{"type":"object","properties":{"p":%s,"q":%s,"r":%s},"required":["q"],"additionalProperties":%t}`,
			randomSchema(r, depth-1), randomSchema(r, depth-1), randomSchema(r, depth-1), r.IntN(2) == 0)
	}
}

func TestAppendFollowsRandomSchemas(t *testing.T) {
	t.Parallel()
	for i := range 400 {
		follows(t, randomSchema(seeded(uint64(i)), 4), 5)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), uint64(1))
	f.Add([]byte(`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`), uint64(2))
	f.Add([]byte(`{"type":"string","pattern":"(a|b)*c{2,}","format":"email","minLength":3}`), uint64(3))
	f.Add([]byte(`{"if":{"type":"null"},"then":false,"else":{"oneOf":[true,{"not":{}}]}}`), uint64(4))
	f.Add([]byte(`{"\u0000groups":[[1]],"multipleOf":1e-9,"type":"number"}`), uint64(5))
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		if len(raw) > 4096 {
			return
		}
		s, err := Compile(raw)
		if err != nil {
			return
		}
		a, b := s.Append(nil, seeded(seed)), s.Append(nil, seeded(seed))
		if !json.Valid(a) || !bytes.Equal(a, b) {
			t.Fatalf("%s: %.200s / %.200s", raw, a, b)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	s, err := Compile([]byte(`{"type":"object","properties":{"move":{"enum":["hold","go"]},"why":{"type":"string"},"n":{"type":"integer"}},"required":["move","why","n"]}`))
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 4096)
	r := seeded(1)
	b.ReportAllocs()
	for b.Loop() {
		buf = s.Append(buf[:0], r)
	}
}
