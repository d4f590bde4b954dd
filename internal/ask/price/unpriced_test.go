package price

import (
	"encoding/json"
	"testing"

	"parley/llm"
)

// TestUnpriced checks which fields change the cost of a call.
func TestUnpriced(t *testing.T) {
	t.Parallel()
	none := func(string) bool { return false }
	for _, c := range []struct{ name, value, want string }{
		{"service_tier", `"priority"`, "service_tier"},
		{"service_tier", `"scale"`, "service_tier"},
		{"service_tier", `["priority"]`, "service_tier"},
		{"service_tier", `"flex"`, ""},
		{"service_tier", `"auto"`, ""},
		{"service_tier", `null`, ""},
		{"speed", `"fast"`, "speed"},
		{"speed", `"standard"`, ""},
		{"inference_geo", `"us"`, "inference_geo"},
		{"models", `["a","b"]`, "models"},
		{"route", `"fallback"`, "route"},
		{"provider", `{"sort":"throughput"}`, "provider"},
		{"plugins", `[{"id":"web"}]`, "plugins"},
		{"web_search_options", `{}`, "web_search_options"},
		{"prediction", `{"type":"content","content":"x"}`, "prediction"},
		{"audio", `{"voice":"alloy"}`, "audio"},
		{"modalities", `["text","audio"]`, "modalities"},
		{"modalities", `["text"]`, ""},
		{"modalities", `"audio"`, "modalities"},
		{"mcp_servers", `[{"url":"https://x"}]`, "mcp_servers"},
		{"tools", `[{"type":"web_search"}]`, "tools"},
		{"tools", `[{"type":"function","function":{"name":"f"}},{"type":"code_interpreter"}]`, "tools"},
		{"tools", `[{"type":"file_search"}]`, "tools"},
		{"tools", `[{"type":"web_search_20250305","name":"web_search"}]`, "tools"},
		{"tools", `[{"type":"code_execution_20250825","name":"x"}]`, "tools"},
		{"tools", `{"type":"function"}`, "tools"},
		{"tools", `[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}]`, "tools"},
		{"tools", `[{"functionDeclarations":[{"name":"f"}],"urlContext":{}}]`, "tools"},
		{"tools", `[{"functionDeclarations":[{"name":"f"}]},{}]`, ""},
		{"responseModalities", `["TEXT"]`, ""},
		{"responseModalities", `["TEXT","IMAGE"]`, "responseModalities"},
		{"tools", `[{"type":"bash_20250124","name":"bash"},{"type":"custom","name":"f"},{"name":"g"}]`, ""},
		{"tools", `[{"type":"text_editor_20250728"},{"type":"computer_20250124"},{"type":"memory_20250818"}]`, ""},
		{"repetition_penalty", `1.1`, ""},
	} {
		if got := Unpriced(&llm.Request{Extra: map[string]json.RawMessage{c.name: json.RawMessage(c.value)}}, none, true); got != c.want {
			t.Errorf("%s: %s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
	for tier, want := range map[string]string{"": "", "flex": "", "default": "", "priority": "service_tier", "unheard-of": "service_tier"} {
		if got := Unpriced(&llm.Request{Tier: tier}, none, true); got != want {
			t.Errorf("tier %q: %q, want %q", tier, got, want)
		}
		if got := Unpriced(&llm.Request{Tier: tier}, func(t string) bool { return t == "priority" }, true); got != want && tier != "priority" || tier == "priority" && got != "" {
			t.Errorf("tier %q with a price: %q", tier, got)
		}
	}
}
