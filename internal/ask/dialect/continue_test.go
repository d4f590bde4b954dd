package dialect_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/llm"
)

// TestContinues: vLLM gets the tokens of the prompt and of the answer so far, and its text completion is the rest.
func TestContinues(t *testing.T) {
	t.Parallel()
	var path, body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		path, body = r.URL.Path, string(b)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"cmpl-1","object":"text_completion","model":"m","choices":[{"index":0,"text":" world","logprobs":{"text_offset":[0,5],"token_logprobs":[-0.5,-0.25],`+
			`"tokens":[" wor","ld"],"top_logprobs":[{" wor":-0.5},{"ld":-0.25}]},"finish_reason":"stop","stop_reason":null,"token_ids":[7,8],"prompt_token_ids":[1,2,5,6]}],`+
			`"usage":{"prompt_tokens":4,"total_tokens":6,"completion_tokens":2}}`)
	}))
	defer srv.Close()
	p := provider.Provider{Name: "vllm", Dialect: "openai", BaseURL: srv.URL + "/v1"}
	m, err := dialect.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	one := 1.0
	resp, err := m.Ask(t.Context(), &llm.Request{
		Model: "vllm/m", Messages: []llm.Message{llm.User("greet")}, MaxTokens: 10, Temperature: &one, TokenIDs: true, Logprobs: true,
		Begun: &llm.Response{Text: "hello", PromptTokenIDs: []int{1, 2}, TokenIDs: []int{5, 6}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"m","prompt":[1,2,5,6],"max_tokens":8,"temperature":1,"logprobs":1,"return_token_ids":true}`
	if path != "/v1/completions" || body != want || !p.Continues("m") {
		t.Errorf("sent %s to %s, want %s", body, path, want)
	}
	if got := fmt.Sprint(resp.Text, resp.TokenIDs, resp.Logprobs, resp.Finish); got != " world[7 8] [{ wor 7 -0.5 []} {ld 8 -0.25 []}]stop" {
		t.Errorf("%s", got)
	}
}
