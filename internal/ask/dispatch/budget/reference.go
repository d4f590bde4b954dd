package budget

import (
	"encoding/json"
	"strings"

	"parley/llm"
)

// refers reports whether req refers to something that the provider stores or fetches.
func refers(req *llm.Request) bool {
	if req.Refers {
		return true
	}
	for key, v := range req.Extra {
		if isReference(strings.ToLower(key), v) {
			return true
		}
	}
	return false
}

// isReference reports whether a member of a request's body, in any format, makes a provider read
// more than the request: earlier messages, stored prompts and files, and results of its own tools.
func isReference(key string, v json.RawMessage) bool {
	switch key {
	case "tools":
		return hosted(v)
	case "previous_response_id", "conversation", "prompt", "web_search_options", "search_parameters", "enable_search", "mcp_servers",
		"container", "plugins", "data_sources", "cached_content", "cachedcontent", "extra_body", "google", "attachments", "file_ids", "tool_resources":
		return string(v) != "null"
	}
	return false
}

// hosted reports whether a list of tools has one that the provider runs.
func hosted(tools json.RawMessage) bool {
	var list []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(tools, &list) != nil {
		return true
	}
	for _, t := range list {
		if !clientRuns(t.Type) {
			return true
		}
	}
	return false
}

// clientRuns reports whether a client runs tools of a type, in any format. Some types end in a date.
func clientRuns(kind string) bool {
	switch strings.TrimRight(kind, "_0123456789") {
	case "", "function", "custom", "bash", "text_editor", "computer", "memory", "local_shell", "shell", "apply_patch":
		return true
	}
	return false
}
