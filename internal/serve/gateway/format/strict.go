package format

import (
	"bytes"
	"fmt"

	"parley/internal/ask/wire/body"
)

// A body is checked before anything is read from it, since servers read an odd one in different ways: some
// take the first of two members with the same name and some the last, some ignore case. Price, limits, route
// and cache must depend on what the provider sees.

// The states of body.CheckNames.
const (
	outermost = iota
	ours      // an object that is read here
	theirs    // an object with the client's own names, such as a schema
)

// check refuses a body that servers could read in different ways.
func check(b []byte) error {
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		return fmt.Errorf("%w: it begins with a byte order mark", errNoObject)
	}
	if t := bytes.TrimLeft(b, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return errNoObject
	}
	if err := body.CheckNames(b, named); err != nil {
		return fmt.Errorf("%w that all servers read alike: %w", errNoObject, err)
	}
	return nil
}

// named refuses a name that differs only in case from one that is read here.
func named(state int, key []byte) (int, error) {
	if state == theirs {
		return theirs, nil
	}
	if !lower(key) {
		for _, word := range words() {
			if string(key) != word && bytes.EqualFold(key, []byte(word)) {
				return 0, fmt.Errorf("the name %q is not %q, but some servers take it for that: use lower case", key, word)
			}
		}
	}
	switch string(key) {
	case "messages", "system", "tools", "tool_choice", "stream_options", "response_format", "text", "thinking", "output_config", "reasoning", "sampling_params":
		return ours, nil
	case "input": // of responses, or of a tool
		if state == outermost {
			return ours, nil
		}
		return theirs, nil
	case "arguments", "input_schema", "metadata", "parameters", "schema":
		return theirs, nil
	}
	if state == outermost {
		return theirs, nil
	}
	return ours, nil
}

// lower reports whether a name has neither an upper case letter nor one beyond ASCII.
func lower(key []byte) bool {
	for _, c := range key {
		if 'A' <= c && c <= 'Z' || c >= 0x80 {
			return false
		}
	}
	return true
}

// words returns the names that are read here.
func words() []string {
	return []string{
		"model", "messages", "input", "instructions", "system", "stream", "stream_options", "include_usage",
		"max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of", "service_tier", "reasoning_effort", "reasoning", "thinking",
		"budget_tokens", "output_config", "effort", "format", "response_format", "json_schema", "schema", "tools", "tool_choice", "function",
		"parameters", "input_schema", "name", "description", "role", "content", "type", "text", "image_url", "url", "source", "data",
		"tool_calls", "tool_call_id", "arguments", "temperature", "top_p", "user", "metadata", "output",
		"audio", "input_audio", "prediction", "models", "provider", "route", "preset", "plugins", "search_parameters", "web_search_options",
		"sampling_params", "token_ids", "input_ids", "max_new_tokens", "container", "mcp_servers", "speed", "inference_geo", "modalities",
	}
}
