package oracle

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"google.golang.org/genai"

	"parley/llm"
	"parley/world"
)

// TestCachedContent: Google's SDK and an agent with cached content send the same request.
func TestCachedContent(t *testing.T) {
	t.Parallel()
	var got []any
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		got = append(got, body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":7,"candidatesTokenCount":1}}`)
	}))
	t.Cleanup(front.Close)
	const stored = "cachedContents/handbook"
	_, err := geminiClient(t, front.URL).Models.GenerateContent(t.Context(), "m", genai.Text("Hello."), &genai.GenerateContentConfig{MaxOutputTokens: 300, CachedContent: stored})
	if err != nil {
		t.Fatal(err)
	}
	agent := world.Agent{Model: "lab/m", CachedContent: stored}
	req := agent.Request(llm.Request{MaxTokens: 300, Messages: []llm.Message{llm.User("Hello.")}})
	if r := ask(t, "gemini", front.URL, false, &req); r.Usage.Cached != 7 || len(got) != 2 || !reflect.DeepEqual(got[0], got[1]) {
		t.Errorf("%+v: %v", r, got)
	}
}
