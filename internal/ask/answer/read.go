package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// How says how an answer was read.
type How string

// The ways to read an answer.
const (
	native   How = "native"   // strict JSON
	Tolerant How = "tolerant" // by the tolerant parser, or with conversions
)

// Read returns the answer in text as strict JSON that follows s. The error is an *Error.
//
// If a text has several values, the last one that follows the schema is the answer, and those in code fences come
// before all others: models correct themselves, and give examples before the answer.
func (s *Schema) Read(text string) (json.RawMessage, How, error) {
	clean := strings.ToValidUTF8(text, "\ufffd")
	strict := strings.Trim(clean, " \t\r\n")
	if json.Valid([]byte(strict)) {
		value, how, err := s.strict(strict)
		if err != nil {
			return nil, "", err
		}
		if clean != text {
			how = Tolerant
		}
		return value, how, nil
	}
	text = strings.TrimPrefix(clean, "\ufeff")
	at := afterThoughts(text)
	value, err := s.search(text[at:])
	if err != nil && at > 0 {
		// The tag may be a part of the answer.
		if v, e := s.search(text); e == nil {
			value, err = v, nil
		}
	}
	if err != nil {
		return nil, "", err
	}
	return value, Tolerant, nil
}

// strict reads a text that is one JSON value.
func (s *Schema) strict(text string) (json.RawMessage, How, *Error) {
	value, coerced, err := s.accept([]byte(text))
	if err == nil && !coerced {
		return value, native, nil
	}
	if err == nil {
		return value, Tolerant, nil
	}
	var inner string
	if json.Unmarshal([]byte(text), &inner) == nil && !s.scalar {
		if v, e := s.search(inner); e == nil {
			return v, Tolerant, nil
		}
	}
	return nil, "", err
}

// search reads a text that holds the answer somewhere.
func (s *Schema) search(text string) (json.RawMessage, *Error) {
	found := newScan(text)
	var problem *Error
	size := 0
	for _, fenced := range []bool{true, false} {
		for _, c := range slices.Backward(found.found) {
			if c.fenced != fenced {
				continue
			}
			value, _, err := s.accept(c.json)
			if err == nil {
				return value, nil
			}
			if len(c.json) > size {
				problem, size = err, len(c.json)
			}
		}
	}
	if found.almost != nil {
		if value, ok := s.close(found.almost); ok {
			return value, nil
		}
	}
	if s.scalar && !found.cut {
		return s.word(found.bare())
	}
	return nil, found.failure(problem)
}

// close reads an object without its last bracket. It is complete only if it has every property that the schema names.
func (s *Schema) close(object []byte) (json.RawMessage, bool) {
	var has map[string]json.RawMessage
	if json.Unmarshal(object, &has) != nil || len(s.properties) == 0 {
		return nil, false
	}
	for _, name := range s.properties {
		if _, ok := has[name]; !ok {
			return nil, false
		}
	}
	value, _, err := s.accept(object)
	return value, err == nil
}

// word reads an answer to a schema of single values: in other quotes, or as the bare words of a string.
func (s *Schema) word(text string) (json.RawMessage, *Error) {
	p := parser{in: text}
	err := p.value()
	if err == nil && p.pos == len(text) {
		if value, _, err := s.accept(p.out); err == nil {
			return value, nil
		}
	}
	if err != nil && closingQuote(text) != 0 {
		return nil, &Error{Truncated: true}
	}
	if text == "" {
		return nil, &Error{Findings: []string{"expected a JSON value, found nothing"}}
	}
	value, _, problem := s.accept(appendQuoted(nil, text))
	return value, problem
}

// accept returns a strict JSON text if it follows the schema, unchanged or with strings converted.
func (s *Schema) accept(text []byte) (value json.RawMessage, coerced bool, problem *Error) {
	v, problem := decode(text)
	if problem != nil {
		return nil, false, problem
	}
	err := s.validate(v)
	if err == nil {
		return text, false, nil
	}
	problem = newError(err, v)
	for range 3 { // a converted string may contain strings to convert
		if !coerce(&v, err) {
			break
		}
		if err = s.validate(v); err == nil {
			return encode(v), true, nil
		}
	}
	return nil, false, problem
}

func (s *Schema) validate(v any) *jsonschema.ValidationError {
	err := s.compiled.Validate(v)
	if err == nil {
		return nil
	}
	return err.(*jsonschema.ValidationError) // Validate returns no other
}

func decode(text []byte) (any, *Error) {
	if !shallow(text) {
		return nil, &Error{Findings: []string{fmt.Sprintf("expected a value nested at most %d deep, found a deeper one", maxDepth)}}
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, &Error{Findings: []string{clip(err.Error(), maxFinding)}}
	}
	if insane(v) {
		return nil, &Error{Findings: []string{"expected numbers of a usual size, found one that is far out of range"}}
	}
	return v, nil
}

// shallow reports whether JSON is nested at most maxDepth deep: validating a value against a recursive schema takes
// time that grows with the square of its depth, or faster.
func shallow(text []byte) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return false
			}
		case '}', ']':
			depth--
		}
	}
	return true
}

// encode writes v as strict JSON.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null") // not reached: v is from JSON
	}
	return bytes.TrimSpace(b.Bytes())
}

// insane reports whether v holds a number that exact arithmetic cannot handle: validation would expand 1e999999999
// to a billion digits.
func insane(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return !isSane(v.String())
	case []any:
		return slices.ContainsFunc(v, insane)
	case map[string]any:
		for _, e := range v {
			if insane(e) {
				return true
			}
		}
	}
	return false
}

func isSane(number string) bool {
	if len(number) > 400 {
		return false
	}
	_, power, ok := strings.Cut(strings.ToLower(number), "e")
	if !ok {
		return true
	}
	n, err := strconv.Atoi(power)
	return err == nil && n >= -400 && n <= 400
}

// isNumber reports whether s is exactly a JSON number.
func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || isDigit(s[0])) && utf8.ValidString(s) && isSane(s) && isDigit(s[len(s)-1]) && json.Valid([]byte(s))
}
