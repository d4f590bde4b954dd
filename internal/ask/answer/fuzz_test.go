package answer

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func FuzzRead(f *testing.F) {
	for _, c := range append(append(nativeCases(), tolerantCases()...), failingCases()...) {
		f.Add(c.schema, c.in)
	}
	f.Fuzz(func(t *testing.T, schema, text string) {
		s, err := Compile(json.RawMessage(schema))
		if err != nil {
			return
		}
		checkRead(t, s, text)
	})
}

// FuzzText reads any text by schemas that take much, so that much comes through.
func FuzzText(f *testing.F) {
	for _, c := range append(append(nativeCases(), tolerantCases()...), failingCases()...) {
		f.Add(c.in)
	}
	var schemas []*Schema
	for _, schema := range []string{anything, object, texts, mixed, `{"type":["string","number","boolean","null"]}`, `{"type":"object"}`} {
		schemas = append(schemas, mustCompile(f, schema))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range schemas {
			checkRead(t, s, text)
		}
	})
}

// checkRead holds what Read promises of any text.
func checkRead(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *Schema, text string) {
	t.Helper()
	got, how, err := s.Read(text)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) || got != nil || how != "" {
			t.Fatalf("%q gave %s (%s) with %T", text, got, how, err)
		}
		if len(err.Error()) > (maxFindings+1)*(maxFinding+10) || strings.ContainsAny(err.Error(), "\n\x1b") || !utf8.ValidString(err.Error()) {
			t.Fatalf("error is not fit to print: %q", err)
		}
		return
	}
	if !json.Valid(got) {
		t.Fatalf("%q was read as %q, which is not JSON", text, got)
	}
	again, how, err := s.Read(string(got))
	if err != nil || how != native || !bytes.Equal(again, got) {
		t.Fatalf("%q was read as %s, and that as %s (%s), %v", text, got, again, how, err)
	}
}

// TestReadOfBrokenJSON breaks JSON in the ways that are tolerated and expects the value back.
func TestReadOfBrokenJSON(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"type":["object","array"]}`)
	rapid.Check(t, func(t *rapid.T) {
		value := genContainer(t, 3)
		strict := encode(value)
		sloppy := render(t, value)
		around := rapid.SampledFrom([]string{"%", "Here you are:\n%\nDone.", "```json\n%\n```", "<think>no {\"x\": 1}</think>%", "x [] y %", "\ufeff%"}).Draw(t, "around")
		got, _, err := s.Read(strings.Replace(around, "%", sloppy, 1))
		if err != nil {
			t.Fatalf("%s: %v", sloppy, err)
		}
		back, _ := decode(got)
		if string(encode(back)) != string(strict) {
			t.Fatalf("%s was read as %s, want %s", sloppy, got, strict)
		}
		checkRead(t, s, sloppy)
	})
}

func genContainer(t *rapid.T, depth int) any {
	if rapid.Bool().Draw(t, "array") {
		a := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			a = append(a, genValue(t, depth))
		}
		return a
	}
	o := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		o[rapid.StringMatching(`[a-z_]{1,6}`).Draw(t, "key")] = genValue(t, depth)
	}
	return o
}

func genValue(t *rapid.T, depth int) any {
	if depth > 0 && rapid.Bool().Draw(t, "nested") {
		return genContainer(t, depth-1)
	}
	switch rapid.IntRange(0, 3).Draw(t, "sort") {
	case 0:
		return json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,3})?`).Draw(t, "number"))
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return nil
	}
	return rapid.StringOf(rapid.RuneFrom([]rune("ab \n\t{}[],:\"\\/#<>`é😀"))).Draw(t, "string")
}

// render writes v as a careless model would.
func render(t *rapid.T, v any) string {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	gap := func() string { return pick("gap", "", " ", "\n", "/* c */", "// c\n", "# c\n") }
	comma := func() string { return pick("comma", "", ",") }
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for k, e := range v {
			key := pick("key", `"`+k+`"`, `'`+k+`'`, k, "“"+k+"”")
			parts = append(parts, gap()+key+gap()+":"+gap()+render(t, e)+gap())
		}
		if len(parts) == 0 {
			return "{" + gap() + "}"
		}
		return "{" + strings.Join(parts, ",") + comma() + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, gap()+render(t, e)+gap())
		}
		if len(parts) == 0 {
			return "[" + gap() + "]"
		}
		return "[" + strings.Join(parts, ",") + comma() + "]"
	case string:
		if rapid.Bool().Draw(t, "raw") { // line breaks and tabs as they are
			return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
		}
		return string(encode(v))
	case nil:
		return pick("null", "null", "None")
	case bool:
		if v {
			return pick("true", "true", "True")
		}
		return pick("false", "false", "False")
	}
	return string(encode(v))
}

// TestHostileTextIsBounded reads text made to be read over and over again. It would not
// end in time if any of it took more than linear time.
func TestHostileTextIsBounded(t *testing.T) {
	t.Parallel()
	const n = 20_000
	schemas := []*Schema{mustCompile(t, object), mustCompile(t, `{"type":"string"}`)}
	for _, unit := range []string{
		"{", "[", "{\"", "{'", "{“", "[1,", "{a:", "{/*", "{//", "{#", "<think>", "</think>", "<", "```", "`", "[[1],", "{\"a\":{", "\\", "{\"a\":\"\\u", "{a b",
		"{\"{\"", "[]", "{}", "{\"a\":1,\"b\":x}", "[-", "[.", "[t", "\"", "'", "<think>{", "1", "{a:1 ",
	} {
		text := strings.Repeat(unit, n/len(unit))
		for _, s := range schemas {
			checkRead(t, s, text)
			checkRead(t, s, text+"\n= {\"a\":1}")
		}
	}
	checkRead(t, schemas[0], strings.Repeat("{//", n/3)+"\n=")
}
