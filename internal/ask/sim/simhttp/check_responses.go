package simhttp

import (
	"fmt"
	"net/http"
	"slices"

	"parley/internal/ask/wire/request"
	"parley/internal/ask/wire/responses"
	"parley/llm"
)

// responsesFields are the members of POST /v1/responses.
func responsesFields() fields {
	return openAIFields(fields{
		"instructions":         {kind: text},
		"max_output_tokens":    {kind: integer, limits: []float64{16}},
		"text":                 {kind: object, fields: fields{"format": {kind: object, fields: functionFields(fields{"type": {kind: text}})}}.ignore("verbosity")},
		"tools":                {kind: array},
		"reasoning":            {kind: object, fields: fields{"effort": {kind: text, values: efforts()}}.ignore("summary", "generate_summary")},
		"service_tier":         {kind: text},
		"include":              {kind: array, texts: true},
		"background":           {kind: boolean},
		"previous_response_id": {kind: text},
	}).ignore("input", "client_metadata", "conversation", "max_tool_calls", "stream_options", "truncation")
}

// Responses reads the body of POST /v1/responses.
func (c *bodyChecker) Responses(b []byte) (*Ask, *Error) {
	a, err := c.responses.open(b)
	if err != nil {
		return nil, err
	}
	if a.str("instructions") == "" {
		delete(a.members, "instructions")
	}
	read := func() *Error { return a.read(responses.ReadMember) }
	err = first(a.responsesBasics, a.responsesInput, a.responsesTools, read, a.responsesFormat)
	if err != nil {
		return nil, err
	}
	var include []string
	request.Texts(a.members["include"], &include)
	a.Request.Logprobs = slices.Contains(include, "message.output_text.logprobs")
	a.Request.Messages = joinCalls(a.Request.Messages)
	if len(a.Request.Tools) == 0 { // unlike chat completions, it takes a tool_choice without tools
		a.Request.ToolChoice = ""
		return &a.Ask, nil
	}
	return &a.Ask, a.toolChoice()
}

func (a *ask) responsesBasics() *Error {
	switch id := a.str("previous_response_id"); {
	case a.str("model") == "":
		return a.missing("model")
	case !a.has("input"):
		return a.missing("input")
	case string(a.members["background"]) == "true":
		return invalidCode("invalid_value", "background", "Background responses are not simulated.")
	case id != "":
		return invalidCode("previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", id)
	case a.has("conversation"):
		e := invalid("conversation", "Conversation not found.")
		e.Status = http.StatusNotFound
		return e
	}
	return nil
}

func (a *ask) responsesInput() *Error {
	input := a.members["input"]
	if kindOf(input) == text {
		return nil
	}
	open, items := map[string]bool{}, 0 // calls, and whether they wait for their output
	err := each(input, func(i int, it []byte) *Error {
		items++
		if kindOf(it) != object {
			return invalidType("input", "one of a string or array of objects")
		}
		return a.item(fmt.Sprintf("input[%d]", i), it, open)
	})
	switch {
	case err != nil:
		return err
	case kindOf(input) != array:
		return invalidType("input", "one of a string or array of objects")
	case items == 0:
		return invalidCode("invalid_value", "input", "Invalid 'input': empty array.")
	}
	for id, waits := range open {
		if waits {
			return invalid("input", "No tool output found for function call %s.", id)
		}
	}
	return nil
}

func (a *ask) item(at string, it []byte, open map[string]bool) *Error {
	id := request.Str(it, "call_id")
	switch kind := request.Str(it, "type"); kind {
	case "", "message":
		role, content := request.Str(it, "role"), request.Member(it, "content")
		switch {
		case role == "":
			return a.missing(at + ".role")
		case !slices.Contains(roles(), role):
			return unsupported(at+".role", role, roles()...)
		case content == nil:
			return invalidType(at+".content", "one of a string or array of objects")
		}
		return a.content(at, content, "input_text", "input_image", "input_file", "output_text", "refusal")
	case "function_call":
		if id == "" || request.Str(it, "name") == "" {
			return a.missing(at + ".call_id")
		}
		open[id] = true
	case "function_call_output":
		if _, called := open[id]; !called {
			return invalid("input", "No tool call found for function call output with call_id %s.", id)
		}
		open[id] = false
	case "reasoning":
	default:
		return unsupported(at+".type", kind, "message", "function_call", "function_call_output", "reasoning")
	}
	return nil
}

// joinCalls moves each call into the assistant's message before it, as the other formats have it,
// and drops reasoning.
func joinCalls(messages []llm.Message) (out []llm.Message) {
	for _, m := range messages {
		n := len(out)
		switch {
		case len(m.Thoughts) > 0 && len(m.Parts)+len(m.ToolCalls) == 0:
		case len(m.ToolCalls) > 0 && n > 0 && out[n-1].Role == llm.RoleAssistant:
			out[n-1].ToolCalls = append(out[n-1].ToolCalls, m.ToolCalls...)
		default:
			out = append(out, m)
		}
	}
	return out
}

// otherTools are the types of tools that are accepted and never called.
func otherTools() []string {
	return []string{"code_interpreter", "computer_use_preview", "custom", "file_search", "image_generation", "local_shell", "mcp", "namespace", "tool_search", "web_search"}
}

func (a *ask) responsesTools() *Error {
	return each(a.members["tools"], func(i int, t []byte) *Error {
		at := fmt.Sprintf("tools[%d]", i)
		switch kind := request.Str(t, "type"); {
		case slices.Contains(otherTools(), kind):
			return nil
		case kind != "function":
			return unsupported(at+".type", kind, append(otherTools(), "function")...)
		}
		if err := a.value(t, &path{up: &path{name: []byte("tools")}, index: i}, field{kind: object, fields: functionFields(fields{"type": {kind: text}})}); err != nil {
			return err
		}
		return a.function(at, t)
	})
}

func (a *ask) responsesFormat() *Error {
	f := request.Member(a.members["text"], "format")
	if f == nil {
		return nil
	}
	switch kind := request.Str(f, "type"); kind {
	case "text":
		return nil
	case "json_object":
		a.Request.Schema = &llm.Schema{JSON: []byte(anyObject)}
		return nil
	case "json_schema":
		return a.answerSchema("text.format", f)
	default:
		return unsupported("text.format.type", kind, "text", "json_object", "json_schema")
	}
}
