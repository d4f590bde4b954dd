package oracle

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/llm"
)

// seen has the fields on which both sides must agree.
type seen struct {
	ID, Model, Tier, Text, Refusal, Finish string
	Calls                                  []llm.ToolCall
	Thoughts                               []llm.Thought
	Logprobs                               []llm.Logprob
	Usage                                  llm.Usage
}

func see(r *llm.Response) seen {
	return seen{r.ID, r.Model, r.Tier, r.Text, r.Refusal, string(r.Finish), r.ToolCalls, r.Thoughts, r.Logprobs, r.Usage}
}

// serve answers every request with one body.
func serve(t *testing.T, contentType, body string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// ask sends a request with our own dialect.
func ask(t *testing.T, name, url string, stream bool, req *llm.Request) *llm.Response {
	t.Helper()
	p := provider.Provider{Name: "lab", Dialect: name, BaseURL: url + "/v1", Stream: "never"}
	if name == "gemini" {
		p.BaseURL, p.Capabilities = url+"/v1beta", []provider.Capability{{Match: "*", Efforts: []string{"high"}}}
	}
	if stream {
		p.Stream = "always"
	}
	m, err := dialect.Open(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.(io.Closer).Close()
	r, err := m.Ask(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hello() *llm.Request {
	return &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("hi")}, MaxTokens: 100}
}

// TestAnswers checks that the SDK's client and ours read the same from the same bytes.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, dialect string
		whole         string
		events        []string
		sdk           func(*testing.T, string, bool) seen
	}{
		{"text", "openai", chatText, chatTextEvents(), chatSDK},
		{"tools", "openai", chatTools, chatToolEvents(), chatSDK},
		{"refusal", "openai", chatRefusal, nil, chatSDK},
		{"length", "openai", chatLength, nil, chatSDK},
		{"all", "responses", responsesAll, responsesEvents(), responsesSDK},
		{"incomplete", "responses", responsesCut, nil, responsesSDK},
		{"all", "anthropic", messagesAll, messagesEvents(), messagesSDK},
		{"length", "anthropic", messagesCut, nil, messagesSDK},
	} {
		t.Run(c.dialect+" "+c.name, func(t *testing.T) {
			t.Parallel()
			compare(t, c.dialect, serve(t, "application/json", c.whole), false, c.sdk)
			if c.events != nil {
				compare(t, c.dialect, serve(t, "text/event-stream", strings.Join(c.events, "")), true, c.sdk)
			}
		})
	}
}

func compare(t *testing.T, name, url string, stream bool, sdk func(*testing.T, string, bool) seen) {
	t.Helper()
	ours, theirs := see(ask(t, name, url, stream, hello())), sdk(t, url, stream)
	if !reflect.DeepEqual(ours, theirs) {
		t.Errorf("stream %v:\n ours  %+v\n theirs %+v", stream, ours, theirs)
	}
}

func chatSDK(t *testing.T, url string, stream bool) seen {
	t.Helper()
	cl := openai.NewClient(openaiopt.WithBaseURL(url+"/v1"), openaiopt.WithAPIKey("k"), openaiopt.WithMaxRetries(0))
	params := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}}
	if !stream {
		r, err := cl.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		return seeChat(r)
	}
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	var acc openai.ChatCompletionAccumulator
	var last openai.CompletionUsage // the accumulator does not keep all of it
	tier := ""
	s := cl.Chat.Completions.NewStreaming(t.Context(), params)
	for s.Next() {
		tier = cmp.Or(string(s.Current().ServiceTier), tier)
		last = s.Current().Usage
		if !acc.AddChunk(s.Current()) {
			t.Fatal("the SDK cannot put the chunks together")
		}
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	acc.Usage = last
	v := seeChat(&acc.ChatCompletion)
	v.Tier = tier
	return v
}

func seeChat(r *openai.ChatCompletion) seen {
	m := r.Choices[0].Message
	v := seen{ID: r.ID, Model: r.Model, Tier: string(r.ServiceTier), Text: m.Content, Refusal: m.Refusal, Finish: r.Choices[0].FinishReason}
	if v.Refusal != "" {
		v.Finish = "refused"
	}
	for _, c := range m.ToolCalls {
		v.Calls = append(v.Calls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	for _, p := range r.Choices[0].Logprobs.Content {
		l := llm.Logprob{Token: p.Token, Logprob: p.Logprob}
		for _, q := range p.TopLogprobs {
			l.Top = append(l.Top, llm.Logprob{Token: q.Token, Logprob: q.Logprob})
		}
		v.Logprobs = append(v.Logprobs, l)
	}
	u := r.Usage
	v.Usage = llm.Usage{
		Input: int(u.PromptTokens), Cached: int(u.PromptTokensDetails.CachedTokens), CacheWrite: int(u.PromptTokensDetails.CacheWriteTokens),
		Output: int(u.CompletionTokens), Reasoning: int(u.CompletionTokensDetails.ReasoningTokens),
	}
	return v
}

func responsesSDK(t *testing.T, url string, stream bool) seen {
	t.Helper()
	cl := openai.NewClient(openaiopt.WithBaseURL(url+"/v1"), openaiopt.WithAPIKey("k"), openaiopt.WithMaxRetries(0))
	params := responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")}}
	if !stream {
		r, err := cl.Responses.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		return seeResponse(r)
	}
	var last *responses.Response
	text := ""
	s := cl.Responses.NewStreaming(t.Context(), params)
	for s.Next() {
		switch e := s.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseCompletedEvent:
			last = &e.Response
		}
	}
	if s.Err() != nil || last == nil {
		t.Fatal("the SDK found no end:", s.Err())
	}
	v := seeResponse(last)
	if v.Text != text {
		t.Errorf("the pieces make %q, the whole says %q", text, v.Text)
	}
	return v
}

func seeResponse(r *responses.Response) seen {
	v := seen{ID: r.ID, Model: r.Model, Tier: string(r.ServiceTier), Text: r.OutputText(), Finish: "stop"}
	for _, it := range r.Output {
		switch it.Type {
		case "message":
			for _, p := range it.Content {
				v.Refusal += p.Refusal
				for _, l := range p.Logprobs {
					v.Logprobs = append(v.Logprobs, llm.Logprob{Token: l.Token, Logprob: l.Logprob})
				}
			}
		case "function_call":
			c := it.AsFunctionCall()
			v.Calls = append(v.Calls, llm.ToolCall{ID: c.CallID, Name: c.Name, Arguments: c.Arguments})
			v.Finish = "tool_calls"
		case "reasoning":
			var words []string
			for _, s := range it.Summary {
				words = append(words, s.Text)
			}
			v.Thoughts = append(v.Thoughts, llm.Thought{ID: it.ID, Text: strings.Join(words, "\n\n"), Opaque: it.EncryptedContent})
		}
	}
	if r.Status == responses.ResponseStatusIncomplete {
		v.Finish = "length"
	}
	u := r.Usage
	v.Usage = llm.Usage{
		Input: int(u.InputTokens), Cached: int(u.InputTokensDetails.CachedTokens), CacheWrite: int(u.InputTokensDetails.CacheWriteTokens),
		Output: int(u.OutputTokens), Reasoning: int(u.OutputTokensDetails.ReasoningTokens),
	}
	return v
}

func messagesSDK(t *testing.T, url string, stream bool) seen {
	t.Helper()
	cl := anthropic.NewClient(anthropicopt.WithBaseURL(url), anthropicopt.WithAPIKey("k"), anthropicopt.WithMaxRetries(0))
	params := anthropic.MessageNewParams{Model: "m", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))}}
	if !stream {
		r, err := cl.Messages.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		return seeMessage(r)
	}
	var acc anthropic.Message
	s := cl.Messages.NewStreaming(t.Context(), params)
	for s.Next() {
		if err := acc.Accumulate(s.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return seeMessage(&acc)
}

func seeMessage(r *anthropic.Message) seen {
	finish := map[anthropic.StopReason]string{"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls", "refusal": "refused"}[r.StopReason]
	v := seen{ID: r.ID, Model: r.Model, Tier: string(r.Usage.ServiceTier), Finish: finish}
	for _, b := range r.Content {
		switch b := b.AsAny().(type) {
		case anthropic.TextBlock:
			v.Text += b.Text
		case anthropic.ThinkingBlock:
			v.Thoughts = append(v.Thoughts, llm.Thought{Text: b.Thinking, Signature: b.Signature})
		case anthropic.RedactedThinkingBlock:
			v.Thoughts = append(v.Thoughts, llm.Thought{Opaque: b.Data})
		case anthropic.ToolUseBlock:
			v.Calls = append(v.Calls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		}
	}
	u := r.Usage
	v.Usage = llm.Usage{
		Input:  int(u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens),
		Cached: int(u.CacheReadInputTokens), CacheWrite: int(u.CacheCreationInputTokens - u.CacheCreation.Ephemeral1hInputTokens), CacheWriteLong: int(u.CacheCreation.Ephemeral1hInputTokens),
		Output: int(u.OutputTokens), Reasoning: int(u.OutputTokensDetails.ThinkingTokens),
	}
	return v
}
