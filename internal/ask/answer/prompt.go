package answer

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Instruct returns the instruction for a model without native structured output to answer with a value of the
// schema. Put it at the end of the system message or the user's message.
func Instruct(schema json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, schema) != nil {
		b.Reset()
		b.Write(schema)
	}
	return instruction + b.String()
}

const instruction = "Answer with one JSON value that follows this JSON Schema, and with nothing else: " +
	"no words before or after it, no code fence, no comments.\n\n"

// Instructed splits a text that ends with the words of Instruct into what is before them and the schema. The schema is nil if
// the text does not end so.
func Instructed(text string) (before string, schema json.RawMessage) {
	if !strings.HasSuffix(text, "}") && !strings.HasSuffix(text, "true") && !strings.HasSuffix(text, "false") {
		return text, nil
	}
	i := strings.LastIndex(text, instruction)
	if i < 0 || !json.Valid([]byte(text[i+len(instruction):])) {
		return text, nil
	}
	return strings.TrimSuffix(text[:i], "\n\n"), json.RawMessage(text[i+len(instruction):])
}

// Repair returns the instruction for a model to correct an answer that Read refused with err.
func Repair(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return "Your last answer could not be read. " + again
	}
	if e.Truncated {
		return "Your last answer was cut off before the JSON value ended. Keep it shorter. " + again
	}
	return "Your last answer does not follow the JSON Schema:\n- " + strings.Join(e.Findings, "\n- ") +
		moreFindings(e.More) + "\n" + again
}

const again = "Answer again with the whole JSON value, corrected, and nothing else."

func moreFindings(n int) string {
	if n == 0 {
		return ""
	}
	return "\n- and more of the same kind"
}

// Ignores reports whether an answer shows that a server ignored a schema that it was sent natively: the answer is not
// JSON, or not an object with the required members. A server that enforces schemas ensures at least this.
func Ignores(schema json.RawMessage, text string) bool {
	var want struct {
		Type     any      `json:"type"`
		Required []string `json:"required"`
	}
	_ = json.Unmarshal(schema, &want) // a schema of another form requires less
	if want.Type != "object" {
		return !json.Valid([]byte(text))
	}
	var got map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &got) != nil {
		return true
	}
	return slices.ContainsFunc(want.Required, func(name string) bool { return got[name] == nil })
}
