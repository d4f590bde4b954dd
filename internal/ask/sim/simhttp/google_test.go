package simhttp

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const sdk = "X-Goog-Api-Client"

// TestGoogleVersions asks as Google's SDKs do, which use version v1 by default.
func TestGoogleVersions(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	const body = `{"contents":[{"role":"user","parts":[{"text":"Hello."}]}]}`
	old := call(t, s, http.MethodPost, "/v1beta/models/m:generateContent", body)
	for _, c := range []struct {
		name, method, path, body, client string
		status                           int
		says                             string
	}{
		{"the same answer", http.MethodPost, "/v1/models/m:generateContent", body, "genai", 200, old.at(t, "candidates.0.content.parts.0.text").(string)},
		{"without a header", http.MethodPost, "/v1/models/m:generateContent", body, "", 200, "candidates"},
		{"stream", http.MethodPost, "/v1/models/m:streamGenerateContent?alt=sse", body, "genai", 200, "data: "},
		{"models", http.MethodGet, "/v1/models", "", "genai", 200, `"models/small"`},
		{"OpenAI's models", http.MethodGet, "/v1/models", "", "", 200, `"sim/small"`},
		{"a model", http.MethodGet, "/v1/models/m", "", "genai", 200, `"models/m"`},
		{"files", http.MethodGet, "/v1/files", "", "genai", 200, `"files":[]`},
		{"batches", http.MethodGet, "/v1/batches", "", "genai", 200, `"operations":[]`},
		{"upload", http.MethodPost, "/upload/v1/files", "{}", "genai", 400, "resumable uploads"},
		{"count", http.MethodPost, "/v1/models/m:countTokens", body, "genai", 200, `"totalTokens":5`},
		{"count a request", http.MethodPost, "/v1/models/m:countTokens", `{"generateContentRequest":` + body + `}`, "genai", 200, `"totalTokens":5`},
		{"count nothing", http.MethodPost, "/v1/models/m:countTokens", `{}`, "genai", 400, "contents is not specified"},
		{"embed", http.MethodPost, "/v1/models/m:embedContent", `{"content":{"parts":[{"text":"a"}]},"outputDimensionality":1}`, "genai", 200, `{"embedding":{"values":[`},
		{"embed many", http.MethodPost, "/v1/models/m:batchEmbedContents", `{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"b"}]}}]}`, "genai", 200, `{"embeddings":[{"values":[`},
		{"embed nothing", http.MethodPost, "/v1/models/m:batchEmbedContents", `{"requests":[]}`, "genai", 400, "want 1 to 100"},
		{"embed no text", http.MethodPost, "/v1/models/m:embedContent", `{"content":{"parts":[]}}`, "genai", 400, "contents is not specified"},
		{"embed largely", http.MethodPost, "/v1/models/m:embedContent", `{"content":{"parts":[{"text":"a"}]},"outputDimensionality":5000}`, "genai", 400, "between 1 and 4096"},
	} {
		a := call(t, s, c.method, c.path, c.body, sdk, c.client)
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

// TestInlineBatch creates a batch with its requests in it.
func TestInlineBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		create := func(requests, name string) answered {
			return call(t, s, http.MethodPost, "/v1/models/m:batchGenerateContent", `{"batch":{"displayName":"`+name+`","inputConfig":{"requests":{"requests":`+requests+`}}}}`)
		}
		one := func(text string) string { return `"request":{"contents":[{"parts":[{"text":"` + text + `"}]}]}` }
		made := create(`[{`+one("One.")+`,"metadata":{"key":"k1"}},{`+one("Two.")+`},{"request":{"contents":[]}}]`, "x")
		path := "/v1/" + made.at(t, "name").(string)
		if got := call(t, s, http.MethodGet, path, "", sdk, "genai"); got.at(t, "metadata.state") != "BATCH_STATE_PENDING" || strings.Contains(string(got.body), "responses") {
			t.Errorf("%s", got.body)
		}
		time.Sleep(3 * time.Second)
		got := call(t, s, http.MethodGet, path, "", sdk, "genai")
		const list = "metadata.output.inlinedResponses.inlinedResponses."
		for i, text := range []string{"One.", "Two."} {
			live := call(t, s, http.MethodPost, "/v1/models/m:generateContent", `{"contents":[{"parts":[{"text":"`+text+`"}]}]}`).at(t, "candidates.0.content.parts.0.text")
			if said := got.at(t, list+string(rune('0'+i))+".response.candidates.0.content.parts.0.text"); said != live {
				t.Errorf("%s: %v, want %v", text, said, live)
			}
		}
		if got.at(t, list+"0.metadata.key") != "k1" || got.at(t, list+"2.error.code") != 3.0 || got.at(t, "metadata.state") != "BATCH_STATE_SUCCEEDED" {
			t.Errorf("%s", got.body)
		}
		if files := call(t, s, http.MethodGet, "/v1/files", "", sdk, "genai"); !strings.Contains(string(files.body), `"files":[]`) {
			t.Errorf("%s", files.body)
		}
		if a := create(`[]`, "x"); a.status != 400 || !strings.Contains(string(a.body), "no requests") {
			t.Errorf("%d %s", a.status, a.body)
		}
		if a := create(`[{`+one("One.")+`}]`, ""); a.status != 400 || !strings.Contains(string(a.body), "displayName is required") {
			t.Errorf("%d %s", a.status, a.body)
		}
		call(t, s, http.MethodDelete, path, "", sdk, "genai")
		if a := call(t, s, http.MethodGet, path, "", sdk, "genai"); a.status != 404 {
			t.Errorf("%d %s", a.status, a.body)
		}
		cut := create(`[{`+one("One.")+`}]`, "y").at(t, "name").(string)
		call(t, s, http.MethodPost, "/v1/"+cut+":cancel", "", sdk, "genai")
		time.Sleep(3 * time.Second)
		if a := call(t, s, http.MethodGet, "/v1/"+cut, "", sdk, "genai"); a.at(t, list+"0.error.message") != "The request was not executed." {
			t.Errorf("%s", a.body)
		}
	})
}
