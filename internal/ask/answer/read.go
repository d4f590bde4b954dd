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
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"parley/internal/ask/wire/body"
	"parley/internal/kit/text"
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
	value, _, problem := s.accept(body.Text(nil, text))
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

func decode(raw []byte) (any, *Error) {
	if !shallow(raw) {
		return nil, &Error{Findings: []string{fmt.Sprintf("expected a value nested at most %d deep, found a deeper one", maxDepth)}}
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, &Error{Findings: []string{text.Excerpt(err.Error(), maxFinding)}}
	}
	if hasUnusableNumber(v) {
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

// hasUnusableNumber reports whether v holds a number that exact arithmetic cannot handle: validation would expand 1e999999999
// to a billion digits.
func hasUnusableNumber(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return !isUsableNumber(v.String())
	case []any:
		return slices.ContainsFunc(v, hasUnusableNumber)
	case map[string]any:
		for _, e := range v {
			if hasUnusableNumber(e) {
				return true
			}
		}
	}
	return false
}

func isUsableNumber(number string) bool {
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
	return s != "" && (s[0] == '-' || isDigit(s[0])) && utf8.ValidString(s) && isUsableNumber(s) && isDigit(s[len(s)-1]) && json.Valid([]byte(s))
}

// coerce converts the strings in v that err is about to what the schema wants, if nothing is lost: "12" to 12,
// "true" to true, "{…}" to the object in it. It reports whether it changed anything.
func coerce(v *any, err *jsonschema.ValidationError) bool {
	changed := false
	for _, leaf := range leaves(err) {
		at := locate(v, leaf.InstanceLocation)
		if at == nil {
			continue
		}
		if s, ok := at.value.(string); ok {
			if wanted, ok := convert(s, leaf.ErrorKind); ok {
				at.set(wanted)
				changed = true
			}
		}
	}
	return changed
}

// leaves returns the innermost errors of err.
func leaves(err *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(err.Causes) == 0 {
		return []*jsonschema.ValidationError{err}
	}
	var all []*jsonschema.ValidationError
	for _, c := range err.Causes {
		all = append(all, leaves(c)...)
	}
	return all
}

// convert returns the value of s in the form that the schema wants.
func convert(s string, wanted jsonschema.ErrorKind) (any, bool) {
	switch k := wanted.(type) {
	case *kind.Enum:
		return among(s, k.Want)
	case *kind.Const:
		return among(s, []any{k.Want})
	case *kind.Type:
		return convertType(s, k.Want)
	}
	return nil, false
}

// among returns the allowed value whose text is s.
func among(s string, allowed []any) (any, bool) {
	for _, a := range allowed {
		switch a.(type) {
		case json.Number, bool:
			if fmt.Sprint(a) == s {
				return a, true
			}
		}
	}
	return nil, false
}

func convertType(s string, types []string) (any, bool) {
	wants := func(names ...string) bool {
		return slices.ContainsFunc(types, func(t string) bool { return slices.Contains(names, t) })
	}
	switch {
	case wants("number", "integer") && isNumber(s):
		return json.Number(s), true
	case wants("boolean") && slices.Contains([]string{"true", "false", "True", "False"}, s):
		return s[1:] == "rue", true
	case wants("object", "array") && s != "" && (s[0] == '{' || s[0] == '['):
		v, err := decode([]byte(s))
		return v, err == nil
	}
	return nil, false
}

// slot is a value inside another, and how to change it.
type slot struct {
	value any
	set   func(any)
}

// locate returns the value at path in v, or nil.
func locate(v *any, path []string) *slot {
	at := &slot{value: *v, set: func(to any) { *v = to }}
	for _, step := range path {
		switch in := at.value.(type) {
		case map[string]any:
			e, ok := in[step]
			if !ok {
				return nil
			}
			at = &slot{value: e, set: func(to any) { in[step] = to }}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			at = &slot{value: in[i], set: func(to any) { in[i] = to }}
		default:
			return nil
		}
	}
	return at
}
