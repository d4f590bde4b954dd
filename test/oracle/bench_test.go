package oracle

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/llm"
)

// BenchmarkCall measures a call by our dialects and by the SDKs. Both use the same server in the same process:
// only the client differs.
func BenchmarkCall(b *testing.B) {
	ways := map[string]func(string) func() error{
		"openai":        func(url string) func() error { return ourCall(b, "openai", url) },
		"openai sdk":    func(url string) func() error { return chatCall(b, url) },
		"anthropic":     func(url string) func() error { return ourCall(b, "anthropic", url) },
		"anthropic sdk": func(url string) func() error { return messageCall(b, url) },
	}
	bodies := map[string]string{"openai": chatLength, "openai sdk": chatLength, "anthropic": messagesCut, "anthropic sdk": messagesCut}
	for _, name := range []string{"openai", "openai sdk", "anthropic", "anthropic sdk"} {
		b.Run(name, func(b *testing.B) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, bodies[name])
			}))
			defer srv.Close()
			call := ways[name](srv.URL)
			b.ReportAllocs()
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ourCall(b *testing.B, name, url string) func() error {
	m, err := dialect.Open(provider.Provider{Name: "lab", Dialect: name, BaseURL: url + "/v1"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	req := &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.System("Be brief."), llm.User("hi")}, MaxTokens: 100}
	return func() error { _, err := m.Ask(b.Context(), req); return err }
}

func chatCall(b *testing.B, url string) func() error {
	cl := openai.NewClient(openaiopt.WithBaseURL(url+"/v1"), openaiopt.WithAPIKey("k"))
	return func() error {
		_, err := cl.Chat.Completions.New(b.Context(), openai.ChatCompletionNewParams{
			Model: "m", MaxCompletionTokens: openai.Int(100), Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("hi")},
		})
		return err
	}
}

func messageCall(b *testing.B, url string) func() error {
	cl := anthropic.NewClient(anthropicopt.WithBaseURL(url), anthropicopt.WithAPIKey("k"))
	return func() error {
		_, err := cl.Messages.New(b.Context(), anthropic.MessageNewParams{
			Model: "m", MaxTokens: 100, System: []anthropic.TextBlockParam{{Text: "Be brief."}},
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
		})
		return err
	}
}
