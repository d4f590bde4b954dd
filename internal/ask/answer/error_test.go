package answer

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestInstructed checks that only the words of Instruct at the end of a text are taken for them.
func TestInstructed(t *testing.T) {
	t.Parallel()
	words := Instruct(json.RawMessage(`{"type": "object"}`))
	for text, want := range map[string][2]string{
		words:                     {"", `{"type":"object"}`},
		"How many?\n\n" + words:   {"How many?", `{"type":"object"}`},
		words + "\n\n" + words:    {words, `{"type":"object"}`},
		Instruct([]byte("true")):  {"", "true"},
		words + " And?":           {words + " And?", ""},
		words + "}":               {words + "}", ""},
		`Is this JSON? {"a": {}}`: {`Is this JSON? {"a": {}}`, ""},
		"":                        {"", ""},
	} {
		if before, schema := Instructed(text); before != want[0] || string(schema) != want[1] {
			t.Errorf("%q: %q and %q, want %q", text, before, schema, want)
		}
	}
}

func TestInstruct(t *testing.T) {
	t.Parallel()
	got := Instruct(json.RawMessage("{\n  \"type\": \"object\"\n}"))
	if !strings.HasSuffix(got, "\n\n{\"type\":\"object\"}") || !strings.HasPrefix(got, "Answer with one JSON value") {
		t.Errorf("instruction is %q", got)
	}
	if got := Instruct(json.RawMessage("{broken")); !strings.HasSuffix(got, "{broken") {
		t.Errorf("instruction is %q", got)
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, object)
	_, _, err := s.Read(`{"b":5}`)
	want := "Your last answer does not follow the JSON Schema:\n" +
		"- b: expected string, found the number 5\n" +
		"- the answer: expected the property \"a\", found none\n" +
		"Answer again with the whole JSON value, corrected, and nothing else."
	if got := Repair(err); got != want {
		t.Errorf("repair is\n%s\nwant\n%s", got, want)
	}
	_, _, err = s.Read(`{"b":`)
	if got := Repair(err); !strings.Contains(got, "was cut off") {
		t.Errorf("repair is %s", got)
	}
	if got := Repair(errors.New("secret inner workings")); strings.Contains(got, "secret") || !strings.Contains(got, "Answer again") {
		t.Errorf("repair is %s", got)
	}
}

// TestErrorsAreBoundedAndSteady holds that an error is short, printable and the same
// every time, though the validator walks maps.
func TestErrorsAreBoundedAndSteady(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"type":"object","additionalProperties":{"type":"integer"}}`)
	var b strings.Builder
	b.WriteString("{")
	for i := range 200 {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(`"key` + strings.Repeat("é", i) + `\u001b[31m":"` + strings.Repeat(`\n\u001b[2J`, 50) + `"`)
	}
	b.WriteString("}")
	first := ""
	for range 20 {
		_, _, err := s.Read(b.String())
		var e *Error
		if !errors.As(err, &e) {
			t.Fatal("an answer that violates the schema was accepted")
		}
		text := e.Error() + Repair(err)
		if len(e.Error()) > (maxFindings+1)*(maxFinding+10) || len(e.Findings) != maxFindings || e.More == 0 {
			t.Fatalf("%d bytes, %d findings, %d more", len(e.Error()), len(e.Findings), e.More)
		}
		if strings.ContainsAny(text, "\x1b") || strings.Contains(e.Error(), "\n") || !utf8.ValidString(text) {
			t.Fatalf("not fit to print: %q", text)
		}
		if first == "" {
			first = text
		}
		if text != first {
			t.Fatalf("once\n%s\nthen\n%s", first, text)
		}
	}
}
