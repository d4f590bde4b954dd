// Package openai reads and writes OpenAI's wire formats for the simulated server:
// chat completions, with the extras of vLLM, and responses.
//
// It promises pure functions: nothing here waits, keeps state or touches the
// network, and bad input gives an error in the vendor's words. It is the server's
// side; the client's side is a dialect of its own and shares no code with it, so
// that a mistake in one is seen by the other.
package openai

import (
	"fmt"

	"parley/internal/dialect/sim/simhttp/wire"
	"parley/llm"
)

// invalidBody puts what Decode found into the vendor's words.
func invalidBody(p *wire.Problem) *wire.Error {
	switch {
	case p.Unknown != "":
		e := wire.Invalid(p.Unknown, "Unknown parameter: '%s'.", p.Unknown)
		e.Code = "unknown_parameter"
		return e
	case p.Field != "":
		e := wire.Invalid(p.Field, "Invalid type for '%s': expected %s, but got %s instead.", p.Field, p.Want, p.Got)
		e.Code = "invalid_type"
		return e
	default:
		return wire.Invalid("", "We could not parse the JSON body of your request. (%s)", p.Syntax)
	}
}

func missing(param string) *wire.Error {
	e := wire.Invalid(param, "Missing required parameter: '%s'.", param)
	e.Code = "missing_required_parameter"
	return e
}

func badValue(param, format string, args ...any) *wire.Error {
	e := wire.Invalid(param, format, args...)
	e.Code = "invalid_value"
	return e
}

// sampling are the parameters that chat completions and responses share.
type sampling struct {
	Temperature, TopP, FrequencyPenalty, PresencePenalty *float64
}

func (s *sampling) check() *wire.Error {
	ranges := []struct {
		name   string
		value  *float64
		lo, hi float64
	}{
		{"temperature", s.Temperature, 0, 2}, {"top_p", s.TopP, 0, 1},
		{"frequency_penalty", s.FrequencyPenalty, -2, 2}, {"presence_penalty", s.PresencePenalty, -2, 2},
	}
	for _, r := range ranges {
		if r.value == nil {
			continue
		}
		e := wire.Invalid(r.name, "")
		switch {
		case *r.value < r.lo:
			e.Code = "decimal_below_min_value"
			e.Message = fmt.Sprintf("Invalid '%s': decimal below minimum value. Expected a value >= %v, but got %v instead.", r.name, r.lo, *r.value)
			return e
		case *r.value > r.hi:
			e.Code = "decimal_above_max_value"
			e.Message = fmt.Sprintf("Invalid '%s': decimal above maximum value. Expected a value <= %v, but got %v instead.", r.name, r.hi, *r.value)
			return e
		}
	}
	return nil
}

func (s *sampling) apply(req *llm.Request) {
	req.Temperature, req.TopP = s.Temperature, s.TopP
	req.FrequencyPenalty, req.PresencePenalty = s.FrequencyPenalty, s.PresencePenalty
}

func atLeast(param string, n *int, least int) *wire.Error {
	if n == nil || *n >= least {
		return nil
	}
	e := wire.Invalid(param, "Invalid '%s': integer below minimum value. Expected a value >= %d, but got %d instead.", param, least, *n)
	e.Code = "integer_below_min_value"
	return e
}

func effortOf(param, s string) (llm.Effort, *wire.Error) {
	if s == "" {
		return "", nil
	}
	for _, e := range llm.Efforts() {
		if string(e) == s {
			return e, nil
		}
	}
	return "", badValue(param, "Invalid value: '%s'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', and 'max'.", s)
}

// schemaOf checks a json_schema format and makes a Schema of it.
func schemaOf(param, name, description string, raw []byte, strict *bool, lax bool) (*llm.Schema, *wire.Error) {
	switch {
	case name == "":
		return nil, missing(param + ".name")
	case wire.IsNull(raw):
		return nil, missing(param + ".schema")
	}
	if !validName(name) {
		return nil, badValue(param+".name", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$' of at most 64 characters.", param)
	}
	if strict != nil && *strict && !lax {
		if why := wire.Strict(raw, true); why != "" {
			return nil, wire.Invalid(param, "Invalid schema for response_format '%s': %s", name, why)
		}
	}
	return &llm.Schema{Name: name, Description: description, JSON: raw}, nil
}

// anyObject is the schema of JSON mode.
const anyObject = `{"type":"object","additionalProperties":{"type":["string","number","boolean"]}}`

func validName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// toolOf checks a function and makes a Tool of it.
func toolOf(param, name, description string, parameters []byte, strict *bool, lax bool) (llm.Tool, *wire.Error) {
	if !validName(name) {
		return llm.Tool{}, badValue(param+".name", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", param)
	}
	t := llm.Tool{Name: name, Description: description, Strict: strict != nil && *strict}
	if !wire.IsNull(parameters) {
		t.Parameters = parameters
	}
	if t.Strict && !lax && t.Parameters != nil {
		if why := wire.Strict(parameters, true); why != "" {
			return t, wire.Invalid(param, "Invalid schema for function '%s': %s", name, why)
		}
	}
	return t, nil
}
