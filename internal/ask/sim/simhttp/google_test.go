package simhttp

import (
	"net/http"
	"strings"
	"testing"
)

// TestGoogleVersions asks as Google's SDKs do, which use version v1 by default.
func TestGoogleVersions(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	const body = `{"contents":[{"role":"user","parts":[{"text":"Hello."}]}]}`
	old := call(t, s, http.MethodPost, "/v1beta/models/m:generateContent", body)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		says                     string
	}{
		{"the same answer", http.MethodPost, "/v1/models/m:generateContent", body, 200, old.at(t, "candidates.0.content.parts.0.text").(string)},
		{"stream", http.MethodPost, "/v1/models/m:streamGenerateContent?alt=sse", body, 200, "data: "},
		{"OpenAI's models", http.MethodGet, "/v1/models", "", 200, `"sim/small"`},
		{"count", http.MethodPost, "/v1/models/m:countTokens", body, 200, `"totalTokens":5`},
		{"count a request", http.MethodPost, "/v1/models/m:countTokens", `{"generateContentRequest":` + body + `}`, 200, `"totalTokens":5`},
		{"count nothing", http.MethodPost, "/v1/models/m:countTokens", `{}`, 400, "at least one is required"},
	} {
		a := call(t, s, c.method, c.path, c.body)
		if a.status != c.status || !strings.Contains(string(a.body), c.says) {
			t.Errorf("%s: %d %s, want %d and %s", c.name, a.status, a.body, c.status, c.says)
		}
	}
}

// TestGoogleSchemas checks the forms of schemas that Google's SDKs send.
func TestGoogleSchemas(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	const ask = `{"contents":[{"parts":[{"text":"Where?"}]}]}`
	answer := call(t, s, http.MethodPost, "/v1/models/m:generateContent", with(ask, `"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","properties":{"city":{"type":"STRING"}},"required":["city"]}}`))
	if text, _ := answer.at(t, "candidates.0.content.parts.0.text").(string); !strings.HasPrefix(text, `{"city":"`) {
		t.Errorf("%s", answer.body)
	}
	for _, form := range []string{
		`"parameters_json_schema":{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`,
		`"parameters":{"type":"OBJECT","properties":{"at":{"type":"STRING"}},"required":["at"]}`,
	} {
		answer = call(t, s, http.MethodPost, "/v1/models/m:generateContent", with(ask, `"tools":[{"functionDeclarations":[{"name":"look",`+form+`}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`))
		if at, _ := answer.at(t, "candidates.0.content.parts.0.functionCall.args.at").(string); at == "" {
			t.Errorf("%s: %s", form, answer.body)
		}
	}
}
