package simhttp

import (
	"fmt"
	"slices"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// The rules that chat completions and responses share.

// anyObject is the schema of JSON mode.
const anyObject = `{"type":"object","additionalProperties":{"type":["string","number","boolean"]}}`

func roles() []string {
	return []string{"system", "assistant", "user", "function", "tool", "developer"}
}

func efforts() (names []string) {
	for _, e := range llm.Efforts() {
		names = append(names, string(e))
	}
	return names
}

// openAIFields are the members of both formats.
func openAIFields(more fields) fields {
	more["model"] = field{kind: text}
	more["stream"] = field{kind: boolean}
	more["temperature"] = field{kind: decimal, limits: []float64{0, 2}}
	more["top_p"] = field{kind: decimal, limits: []float64{0, 1}}
	more["top_logprobs"] = field{kind: integer, limits: []float64{0, 20}}
	more["parallel_tool_calls"] = field{kind: boolean}
	return more.ignore("metadata", "tool_choice", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
		"safety_identifier", "store", "user")
}

// functionFields are the members of a function, and of a schema that an answer must follow.
func functionFields(more fields) fields {
	more["name"], more["description"], more["strict"] = field{kind: text}, field{kind: text}, field{kind: boolean}
	return more.ignore("parameters", "schema")
}

func invalidType(at, want string) *Error {
	return invalidCode("invalid_type", at, "Invalid type for '%s': expected %s.", at, want)
}

func unsupported(at, got string, values ...string) *Error {
	return checkOpenAI(badValue, at, field{values: values}, got)
}

// content checks the content of a message: a string, or parts of the supported types.
func (a *ask) content(at string, v []byte, types ...string) *Error {
	if kindOf(v) == text {
		return nil
	}
	if kindOf(v) != array {
		return invalidType(at+".content", "one of a string or array of objects")
	}
	return each(v, func(i int, p []byte) *Error {
		at := fmt.Sprintf("%s.content[%d]", at, i)
		if t := request.Str(p, "type"); !slices.Contains(types, t) {
			return unsupported(at+".type", t, types...)
		}
		if f := mediaOpenAI(at, p); f != (mediaFault{}) {
			return invalidCode(f.Code, f.At, "%s", f.Message)
		}
		return nil
	})
}

// answerSchema checks a json_schema format.
func (a *ask) answerSchema(at string, s []byte) *Error {
	name, schema := request.Str(s, "name"), request.Member(s, "schema")
	switch {
	case name == "":
		return a.missing(at + ".name")
	case schema == nil:
		return a.missing(at + ".schema")
	case body.SchemaName(name) != name:
		return invalidCode("invalid_value", at+".name", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$' of at most 64 characters.", at)
	case a.lax || string(request.Member(s, "strict")) != "true":
		return nil
	}
	if why := violation(schema, true); why != "" {
		return invalid(at, "Invalid schema for response_format '%s': %s", name, why)
	}
	return nil
}

// function checks a tool.
func (a *ask) function(at string, f []byte) *Error {
	name, schema := request.Str(f, "name"), request.Member(f, "parameters")
	if name == "" || body.SchemaName(name) != name {
		return invalidCode("invalid_value", at+".name", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at)
	}
	if schema == nil || a.lax || string(request.Member(f, "strict")) != "true" {
		return nil
	}
	if why := violation(schema, true); why != "" {
		return invalid(at, "Invalid schema for function '%s': %s", name, why)
	}
	return nil
}

// toolChoice checks tool_choice once the tools are read.
func (a *ask) toolChoice() *Error {
	v := a.members["tool_choice"]
	switch choice := a.Request.ToolChoice; {
	case v == nil:
		return nil
	case len(a.Request.Tools) == 0:
		return invalid("tool_choice", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	case kindOf(v) == text && choice != "auto" && choice != "none" && choice != "required":
		return unsupported("tool_choice", choice, "none", "auto", "required")
	case kindOf(v) != text && !a.named(choice):
		return invalid("tool_choice", "Invalid value for 'tool_choice': no function named '%s' was specified in the 'tools' parameter.", choice)
	}
	return nil
}
