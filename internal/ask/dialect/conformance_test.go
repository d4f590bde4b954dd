package dialect_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/llm"
	"parley/llm/llmtest"
)

// TestConformance runs the suite over every dialect, streamed and not, against a well-behaved server.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		for _, stream := range []string{"never", "always", "auto"} {
			t.Run(f.name+" "+stream, func(t *testing.T) {
				t.Parallel()
				llmtest.Exercise(t, llmtest.Harness{
					Model:  f.open(t, f.serve, func(p *provider.Provider) { p.Stream = stream }),
					Stall:  f.open(t, stall),
					Name:   "lab/fake-1",
					NoStop: f.name == "responses",

					NoDocumentLinks: f.name == "openai",
					NoAudio:         f.name == "responses" || f.name == "anthropic",
				})
			})
		}
	}
}

// TestConformanceHTTP2 runs the suite over HTTP/2 without TLS.
func TestConformanceHTTP2(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			llmtest.Exercise(t, llmtest.Harness{
				Model: f.openHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
					if r.ProtoMajor != 2 {
						http.Error(w, "not HTTP/2", http.StatusTeapot)
						return
					}
					f.serve(w, r)
				}),
				Stall:  f.openHTTP2(t, stall),
				Name:   "lab/fake-1",
				NoStop: f.name == "responses",

				NoDocumentLinks: f.name == "openai",
				NoAudio:         f.name == "responses" || f.name == "anthropic",
			})
		})
	}
}

// stall never answers. It returns when the caller leaves, which a server notices only after it has
// read the request.
func stall(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    provider.Provider
		want []string
	}{
		{provider.Provider{Name: "lab", Dialect: "opnai", BaseURL: "http://x/v1"}, []string{"lab", "dialect", "openai"}},
		{provider.Provider{Name: "lab", Dialect: "sim"}, []string{"lab", "sim", "app"}},
		{provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "localhost:8000"}, []string{"base_url", "http://"}},
		{provider.Provider{Name: "lab", Dialect: "anthropic"}, []string{"base_url", "missing"}},
		{provider.Provider{Name: "lab", Dialect: "responses", BaseURL: "http://x/v1", KeyEnv: "PARLEY_TEST_NOT_SET"}, []string{"provider lab: the environment variable ", "PARLEY_TEST_NOT_SET", "not set"}},
	} {
		m, err := dialect.Open(c.p, nil)
		if err == nil || m != nil {
			t.Errorf("Open(%+v) = %v, %v: want an error and no model", c.p, m, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("Open(%+v): %q does not say %q", c.p, err, w)
			}
		}
	}
}

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
	m, err := dialect.Open(p, nil)
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
