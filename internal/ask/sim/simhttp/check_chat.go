package simhttp

import (
	"fmt"
	"strings"

	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// chatFields are the members of POST /v1/chat/completions: OpenAI's, and those that vLLM adds.
func chatFields() fields {
	call := fields{"id": {kind: text}, "type": {kind: text}, "function": {kind: object, fields: fields{"name": {kind: text}, "arguments": {kind: text}}}}
	message := fields{
		"role": {kind: text, values: roles()}, "tool_call_id": {kind: text}, "tool_calls": {kind: array, fields: call},
	}
	return openAIFields(fields{
		"messages":              {kind: array, fields: message.ignore("content", "annotations", "audio", "name", "reasoning", "reasoning_content", "refusal")},
		"frequency_penalty":     {kind: decimal, limits: []float64{-2, 2}},
		"presence_penalty":      {kind: decimal, limits: []float64{-2, 2}},
		"max_tokens":            {kind: integer, limits: []float64{1}},
		"max_completion_tokens": {kind: integer, limits: []float64{1}},
		"n":                     {kind: integer, limits: []float64{1}},
		"seed":                  {kind: integer},
		"top_k":                 {kind: integer},
		"logprobs":              {kind: boolean},
		"return_token_ids":      {kind: boolean},
		"reasoning_effort":      {kind: text, values: efforts()},
		"service_tier":          {kind: text, values: []string{"auto", "default", "flex", "scale", "priority", "fast"}},
		"stream_options":        {kind: object, fields: fields{"include_usage": {kind: boolean}, "include_obfuscation": {kind: boolean}}},
		"response_format":       {kind: object, fields: fields{"type": {kind: text}, "json_schema": {kind: object, fields: functionFields(fields{})}}},
		"tools":                 {kind: array, fields: fields{"type": {kind: text}, "function": {kind: object, fields: functionFields(fields{})}}},
	}).ignore("stop", "audio", "logit_bias", "modalities", "prediction", "verbosity", "web_search_options").
		ignore("cache_salt", "chat_template_kwargs", "ignore_eos", "include_stop_str_in_output", "min_p", "min_tokens", "priority", // vLLM's
			"repetition_penalty", "return_tokens_as_token_ids", "session_id", "skip_special_tokens", "stop_token_ids", "vllm_xargs")
}

// Chat reads the body of POST /v1/chat/completions.
func (c *bodyChecker) Chat(b []byte) (*Ask, *Error) {
	a, err := c.chat.open(b)
	if err != nil {
		return nil, err
	}
	read := func() *Error { return a.read(openai.ReadMember) }
	err = first(a.chatBasics, a.chatMessages, a.chatStop, a.chatTools, read, a.chatFormat, a.toolChoice)
	return &a.Ask, err
}

func (a *ask) chatBasics() *Error {
	messages := a.members["messages"]
	switch {
	case a.str("model") == "":
		return invalid("", "you must provide a model parameter")
	case messages == nil:
		return a.missing("messages")
	case strings.TrimSpace(string(messages[1:min(len(messages), 3)])) == "]":
		return invalidCode("empty_array", "messages", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case a.has("stream_options") && string(a.members["stream"]) != "true":
		return invalid("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case a.number("n") > 1:
		return invalidCode("invalid_value", "n", "Invalid 'n': this simulation gives one choice a request.")
	case a.has("max_tokens") && a.has("max_completion_tokens"):
		return invalid("max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case a.has("top_logprobs") && string(a.members["logprobs"]) != "true":
		return invalid("top_logprobs", "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.")
	}
	return nil
}

// chatMessages checks that every message has a role and content, and that results follow the tool
// calls that they answer.
func (a *ask) chatMessages() *Error {
	open := map[string]bool{} // tool calls without a result
	unanswered := func(at string) *Error {
		return invalid(at, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
	}
	err := each(a.members["messages"], func(i int, m []byte) *Error {
		at := fmt.Sprintf("messages[%d]", i)
		var role llm.Role
		request.Role(request.Str(m, "role"), &role)
		switch id := request.Str(m, "tool_call_id"); {
		case role == "":
			return a.missing(at + ".role")
		case role == llm.RoleTool && id == "":
			return a.missing(at + ".tool_call_id")
		case role == llm.RoleTool && !open[id]:
			return invalid(at+".role", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
		case role == llm.RoleTool:
			delete(open, id)
		case len(open) > 0:
			return unanswered(at + ".role")
		}
		err := each(request.Member(m, "tool_calls"), func(k int, c []byte) *Error {
			id := request.Str(c, "id")
			switch {
			case role != llm.RoleAssistant:
				return invalid(at, "Invalid parameter: only messages with role 'assistant' can have 'tool_calls'.")
			case id == "" || request.Str(request.Member(c, "function"), "name") == "":
				return a.missing(fmt.Sprintf("%s.tool_calls[%d].id", at, k))
			}
			open[id] = true
			return nil
		})
		if err != nil {
			return err
		}
		return a.chatContent(at, role, request.Member(m, "content"))
	})
	if err == nil && len(open) > 0 {
		err = unanswered("messages")
	}
	return err
}

func (a *ask) chatContent(at string, role llm.Role, v []byte) *Error {
	switch {
	case v == nil && role == llm.RoleAssistant:
		return nil
	case v == nil:
		return invalidCode("invalid_type", at+".content", "Invalid value for 'content': expected a string, got null.")
	case role == llm.RoleAssistant:
		return a.content(at, v, "text", "refusal")
	case role == llm.RoleUser:
		return a.content(at, v, "text", "image_url", "input_audio", "file")
	}
	return a.content(at, v, "text")
}

func (a *ask) chatStop() *Error {
	var stop []string
	if v := a.members["stop"]; v != nil && !request.Texts(v, &stop) {
		return invalidType("stop", "a string or an array of strings")
	}
	if len(stop) > 4 {
		return invalidCode("array_above_max_length", "stop", "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length %d instead.", len(stop))
	}
	return nil
}

func (a *ask) chatTools() *Error {
	if a.has("parallel_tool_calls") && !a.has("tools") {
		return invalid("parallel_tool_calls", "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	return each(a.members["tools"], func(i int, t []byte) *Error {
		at := fmt.Sprintf("tools[%d]", i)
		f := request.Member(t, "function")
		if kind := request.Str(t, "type"); kind != "function" || f == nil {
			return unsupported(at+".type", kind, "function")
		}
		return a.function(at+".function", f)
	})
}

func (a *ask) chatFormat() *Error {
	v := a.members["response_format"]
	if v == nil {
		return nil
	}
	switch kind := request.Str(v, "type"); kind {
	case "text":
		return nil
	case "json_object":
		for _, m := range a.Request.Messages {
			if strings.Contains(strings.ToLower(m.Text()), "json") {
				a.Request.Schema = &llm.Schema{JSON: []byte(anyObject)}
				return nil
			}
		}
		return invalid("messages", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
	case "json_schema":
		schema := request.Member(v, "json_schema")
		if schema == nil {
			return a.missing("response_format.json_schema")
		}
		return a.answerSchema("response_format.json_schema", schema)
	case "":
		return a.missing("response_format.type")
	default:
		return unsupported("response_format.type", kind, "json_object", "json_schema", "text")
	}
}
