package price

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/kit/text"
	"parley/llm"
)

// Unpriced returns the name of a field of a request, or the place in it, that can make it cost more than its tokens at the prices of a table:
// a more expensive tier that priced does not report as known, tools that the provider runs and charges for, other models,
// sound whose price is not known. It is "" without such a field.
func Unpriced(req *llm.Request, priced func(tier string) bool, audioPriced bool) string {
	if !plainTier(req.Tier) && !priced(req.Tier) {
		return "service_tier"
	}
	if !audioPriced && HasAudio(req) {
		return "input_audio"
	}
	if len(req.Extra) == 0 {
		return ""
	}
	if name := stored(req); !audioPriced && name != "" {
		return name
	}
	for _, name := range []string{
		"audio", "input_audio", "prediction", // more expensive tokens
		"models", "provider", "route", "preset", // OpenRouter: another model may answer
		"plugins", "search_parameters", "web_search_options", // charged per search
		"container", "mcp_servers", // run at the provider; their results count as input
	} {
		if isSet(req.Extra[name]) {
			return name
		}
	}
	for _, m := range []struct {
		name  string
		plain func(string) bool
	}{
		{"service_tier", plainTier},
		{"speed", func(v string) bool { return v == "standard" }},
		{"inference_geo", func(v string) bool { return v == "global" }},
	} {
		var v string
		if raw := req.Extra[m.name]; isSet(raw) && (json.Unmarshal(raw, &v) != nil || !m.plain(v)) {
			return m.name
		}
	}
	for _, name := range []string{"modalities", "responseModalities"} {
		var list []string
		if raw := req.Extra[name]; isSet(raw) && (json.Unmarshal(raw, &list) != nil || slices.ContainsFunc(list, func(s string) bool { return !strings.EqualFold(s, "text") })) {
			return name
		}
	}
	if raw := req.Extra["tools"]; isSet(raw) {
		return Hosted(raw)
	}
	return ""
}

// HasAudio reports whether the messages of a request hold recordings.
func HasAudio(req *llm.Request) bool {
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			if p.File != nil && p.File.IsAudio() {
				return true
			}
		}
	}
	return false
}

// MayHaveAudio reports whether a request has recordings, or names a prompt stored at Gemini, which may have them.
func MayHaveAudio(req *llm.Request) bool { return HasAudio(req) || stored(req) != "" }

// stored returns the name of the member that names a prompt stored at Gemini. In OpenAI's format it is within another member.
func stored(req *llm.Request) string {
	for name, v := range req.Extra {
		switch {
		case !isSet(v):
		case isStored(name):
			return name
		case strings.EqualFold(name, "extra_body") || strings.EqualFold(name, "google"):
			if inner := storedWithin(v); inner != "" {
				return name + "." + inner
			}
		}
	}
	return ""
}

func isStored(name string) bool {
	return strings.EqualFold(name, "cachedContent") || strings.EqualFold(name, "cached_content")
}

// storedWithin looks at every text of a value, at any depth: of a member that is there twice, a server may read either.
func storedWithin(v json.RawMessage) string {
	for d := json.NewDecoder(bytes.NewReader(v)); ; {
		t, err := d.Token()
		if err != nil {
			return ""
		}
		if text, ok := t.(string); ok && isStored(text) {
			return text
		}
	}
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// plainTier reports whether a service tier costs no more than the default one. The account defines what "auto" means, as
// it does if no tier is named.
func plainTier(tier string) bool {
	return slices.Contains([]string{"", "auto", "default", "standard", "standard_only", "on_demand", "flex"}, tier)
}

// Hosted describes the first tool of a list that the provider runs: `tools[1] of type "web_search", "find"`. It is "" if the client runs
// all of them. A namespace is a group of tools of OpenAI's responses; the client runs those in it.
func Hosted(tools json.RawMessage) string { return hosted("tools", tools, true) }

func hosted(at string, tools json.RawMessage, groups bool) string {
	var list []map[string]json.RawMessage
	if json.Unmarshal(tools, &list) != nil {
		return at
	}
	for i, t := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		var kind, name string
		if raw := t["type"]; isSet(raw) && json.Unmarshal(raw, &kind) != nil {
			return at
		}
		if kind == "" && t["name"] == nil { // Gemini's: each member is a tool, or the list of functions
			for _, member := range slices.Sorted(maps.Keys(t)) {
				if member != "functionDeclarations" {
					return fmt.Sprintf("%s of type %q", at, text.Excerpt(member, maxToolName))
				}
			}
			continue
		}
		dateless, _, _ := strings.Cut(kind, "_20") // Anthropic's have a date
		switch dateless {
		case "", "function", "custom", "local_shell", "apply_patch", "bash", "text_editor", "computer", "memory":
			continue
		case "namespace":
			if groups {
				if inner := hosted(at+".tools", t["tools"], false); inner != "" {
					return inner
				}
				continue
			}
		}
		at = fmt.Sprintf("%s of type %q", at, text.Excerpt(kind, maxToolName))
		if json.Unmarshal(t["name"], &name) == nil {
			at += fmt.Sprintf(", %q", text.Excerpt(name, maxToolName))
		}
		return at
	}
	return ""
}

// maxToolName bounds what an error quotes of a client's tool.
const maxToolName = 60
