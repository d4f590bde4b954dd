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
		{"tools", `[{"type":"web_search"}]`, `tools[0] of type "web_search"`},
		{"tools", `[{"type":"function","function":{"name":"f"}},{"type":"code_interpreter"}]`, `tools[1] of type "code_interpreter"`},
		{"tools", `[{"type":"file_search"}]`, `tools[0] of type "file_search"`},
		{"tools", `[{"type":"web_search_20250305","name":"web_search"}]`, `tools[0] of type "web_search_20250305", "web_search"`},
		{"tools", `[{"type":"code_execution_20250825","name":"x"}]`, `tools[0] of type "code_execution_20250825", "x"`},
		{"tools", `{"type":"function"}`, "tools"},
		{"tools", `[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}]`, `tools[1] of type "googleSearch"`},
		{"tools", `[{"functionDeclarations":[{"name":"f"}],"urlContext":{}}]`, `tools[0] of type "urlContext"`},
		{"tools", `[{"functionDeclarations":[{"name":"f"}]},{}]`, ""},
		{"responseModalities", `["TEXT"]`, ""},
		{"responseModalities", `["TEXT","IMAGE"]`, "responseModalities"},
		{"tools", `[{"type":"bash_20250124","name":"bash"},{"type":"custom","name":"f"},{"name":"g"}]`, ""},
		{"tools", `[{"type":"text_editor_20250728"},{"type":"computer_20250124"},{"type":"memory_20250818"}]`, ""},
		{"tools", `[{"type":"namespace","name":"crm","description":"d","tools":[{"type":"function","name":"f","defer_loading":true},{"type":"custom","name":"g"}]}]`, ""},
		{"tools", `[{"type":"namespace","name":"crm","tools":[{"type":"function","name":"f"},{"type":"web_search","name":"h"}]}]`, `tools[0].tools[1] of type "web_search", "h"`},
		{"tools", `[{"type":"namespace","name":"crm","tools":[{"type":"namespace","name":"inner","tools":[]}]}]`, `tools[0].tools[0] of type "namespace", "inner"`},
		{"tools", `[{"type":"namespace","name":"crm","tools":"all"}]`, "tools[0].tools"},
		{"tools", `[{"type":"namespace","name":"crm"}]`, "tools[0].tools"},
		{"tools", `[{"type":["web_search"]}]`, "tools[0]"},
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
