// Package check holds what the wire formats of the simulated server have in common:
// a decoded request, an answer about to be written, an error before it is put
// into a vendor's form, and a strict JSON reader.
//
// It promises that Decode never panics and refuses what a vendor would: unknown
// members, wrong types, trailing data. It is not for serving: that is simhttp.
package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/quota"
	"parley/internal/wire/completion"
	"parley/internal/wire/request"
	"parley/llm"
)

// Ask is a request read off the wire.
type Ask struct {
	Request *llm.Request
	Breaks  []sim.Break // where the prompt is to be cached

	Stream       bool
	IncludeUsage bool // a last chunk of the stream tells the usage
	NoOutput     bool // only the prompt cache is to be warmed
}

// Exchange is a request with its answer.
type Exchange struct {
	*Ask
	Case    *sim.Case
	Answer  *sim.Answer
	Usage   llm.Usage
	ID      string // without a prefix
	Created int64  // Unix seconds
	Chunk   int    // tokens in an event of a stream
	Batch   bool   // answered in a batch

	WeightVersion string // of the model; "" is not told
}

// Error is a failure before it is put into a vendor's form.
type Error struct {
	Status  int
	Type    string
	Code    string // "" is written as null
	Param   string // "" is written as null
	Message string
	// Refusal is the limit that was run into, or nil.
	Refusal *quota.Refusal
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Told is the error as the answer to a request says it. Only Anthropic's format says which
// request that was, and it has no codes.
func (e *Error) Told(requestID string) completion.Error {
	if requestID != "" {
		return completion.Error{Type: e.Type, Message: e.Message, RequestID: requestID}
	}
	return completion.Error{Type: e.Type, Message: e.Message, Code: e.Code, Param: e.Param}
}

// Invalid is the error of a request that is wrong.
func Invalid(param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Param: param, Message: fmt.Sprintf(format, args...)}
}

// Problem is what Decode found wrong.
type Problem struct {
	Syntax  string // what is wrong with the JSON, or ""
	Unknown string // the member that is not known, or ""
	Field   string // the member of the wrong type, with Want and Got
	Want    string
	Got     string
}

// Decode reads one JSON value into v. Unless lax, members v has no field for are a problem.
func Decode(body []byte, v any, lax bool) *Problem {
	dec := json.NewDecoder(bytes.NewReader(body))
	if !lax {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(v); err != nil {
		return problem(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return &Problem{Syntax: "there is more after the value"}
	}
	return nil
}

func problem(err error) *Problem {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if t.Field == "" {
			return &Problem{Syntax: "expected an object, got " + gotName(t.Value)}
		}
		return &Problem{Field: t.Field, Want: kindName(t.Type.Kind().String()), Got: gotName(t.Value)}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &Problem{Unknown: strings.Trim(name, `"`)}
	}
	return &Problem{Syntax: err.Error()}
}

func kindName(kind string) string {
	switch kind {
	case "int", "int64":
		return "an integer"
	case "float64":
		return "a decimal"
	case "bool":
		return "a boolean"
	case "string":
		return "a string"
	case "slice":
		return "an array"
	default:
		return "an object"
	}
}

func gotName(value string) string {
	word, _, _ := strings.Cut(value, " ")
	switch word {
	case "string":
		return "a string"
	case "number":
		return "a number"
	case "bool":
		return "a boolean"
	case "array":
		return "an array"
	case "object":
		return "an object"
	default:
		return "null"
	}
}

// Text reads a JSON string.
func Text(raw json.RawMessage) (s string, ok bool) {
	ok = request.Text(raw, &s)
	return s, ok
}

// Marshal returns v as JSON: for what is small and seldom written.
func Marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // only for values that hold what JSON cannot; ours do not
		return []byte("null")
	}
	return b
}
