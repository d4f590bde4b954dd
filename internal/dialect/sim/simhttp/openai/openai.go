// Package openai checks requests in OpenAI's formats for the simulated server: chat
// completions, with the extras of vLLM, and responses.
//
// It promises pure functions: nothing here waits, keeps state or touches the
// network, and bad input gives an error in the vendor's words. It is not for answers, which
// the packages of internal/wire write. It shares no code with what they do with requests, so
// that a mistake there is seen here.
package openai

import (
	"fmt"

	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/wire/body"
	"parley/llm"
)

// invalidBody puts what Decode found into the vendor's words.
func invalidBody(p *check.Problem) *check.Error {
	switch {
	case p.Unknown != "":
		e := check.Invalid(p.Unknown, "Unknown parameter: '%s'.", p.Unknown)
		e.Code = "unknown_parameter"
		return e
	case p.Field != "":
		e := check.Invalid(p.Field, "Invalid type for '%s': expected %s, but got %s instead.", p.Field, p.Want, p.Got)
		e.Code = "invalid_type"
		return e
	default:
		return check.Invalid("", "We could not parse the JSON body of your request. (%s)", p.Syntax)
	}
}

func missing(param string) *check.Error {
	e := check.Invalid(param, "Missing required parameter: '%s'.", param)
	e.Code = "missing_required_parameter"
	return e
}

func badValue(param, format string, args ...any) *check.Error {
	e := check.Invalid(param, format, args...)
	e.Code = "invalid_value"
	return e
}

// sampling are the parameters that chat completions and responses share.
type sampling struct {
	Temperature, TopP, FrequencyPenalty, PresencePenalty *float64
}

func (s *sampling) check() *check.Error {
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
		e := check.Invalid(r.name, "")
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

func atLeast(param string, n *int, least int) *check.Error {
	if n == nil || *n >= least {
		return nil
	}
	e := check.Invalid(param, "Invalid '%s': integer below minimum value. Expected a value >= %d, but got %d instead.", param, least, *n)
	e.Code = "integer_below_min_value"
	return e
}

func effortOf(param, s string) (llm.Effort, *check.Error) {
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

// topLogprobs sets how many alternatives each token is to be told with.
func topLogprobs(req *llm.Request, n *int) *check.Error {
	if n == nil {
		return nil
	}
	if *n < 0 || *n > 20 {
		return badValue("top_logprobs", "Invalid 'top_logprobs': expected a value between 0 and 20, but got %d instead.", *n)
	}
	req.TopLogprobs = *n
	return nil
}

// apply checks a json_schema format and makes it that of the answer.
func (s *jsonSchema) apply(req *llm.Request, param string, lax bool) *check.Error {
	switch {
	case s.Name == "":
		return missing(param + ".name")
	case body.IsNull(s.Schema):
		return missing(param + ".schema")
	case !validName(s.Name):
		return badValue(param+".name", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$' of at most 64 characters.", param)
	case s.Strict != nil && *s.Strict && !lax:
		if why := check.Strict(s.Schema, true); why != "" {
			return check.Invalid(param, "Invalid schema for response_format '%s': %s", s.Name, why)
		}
	}
	req.Schema = &llm.Schema{Name: s.Name, Description: s.Description, JSON: s.Schema}
	return nil
}

// anyObject is the schema of JSON mode.
const anyObject = `{"type":"object","additionalProperties":{"type":["string","number","boolean"]}}`

func validName(s string) bool { return s != "" && body.SchemaName(s) == s }

// add checks a function and adds it to the tools.
func (f *function) add(req *llm.Request, param string, lax bool) *check.Error {
	if !validName(f.Name) {
		return badValue(param+".name", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", param)
	}
	t := llm.Tool{Name: f.Name, Description: f.Description, Strict: f.Strict != nil && *f.Strict}
	if !body.IsNull(f.Parameters) {
		t.Parameters = f.Parameters
	}
	if t.Strict && !lax && t.Parameters != nil {
		if why := check.Strict(t.Parameters, true); why != "" {
			return check.Invalid(param, "Invalid schema for function '%s': %s", f.Name, why)
		}
	}
	req.Tools = append(req.Tools, t)
	return nil
}
