package oracle

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"parley/internal/ask/provider"
	wireanthropic "parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/gemini"
	wireopenai "parley/internal/ask/wire/openai"
	ours "parley/internal/ask/wire/responses"
	"parley/llm"
	"parley/llm/llmtest"
)

func ptr[T any](v T) *T { return &v }

const place = `{"type":"object","properties":{"city":{"type":"string"},"people":{"type":"integer"}},"required":["city","people"],"additionalProperties":false}`

// requests lists requests that together use every field of llm.Request.
func requests() map[string]*llm.Request {
	tools := []llm.Tool{{Name: "weather", Description: "Tells the weather.", Strict: true, Parameters: json.RawMessage(place)}, {Name: "noop"}}
	ask := func(change func(*llm.Request)) *llm.Request {
		r := &llm.Request{Model: "lab/some-model", Messages: []llm.Message{llm.System("Be brief."), llm.User("Say \"hi\"\n\u2028 é")}, MaxTokens: 300}
		change(r)
		return r
	}
	return map[string]*llm.Request{
		"text": ask(func(*llm.Request) {}),
		"turns": ask(func(r *llm.Request) {
			r.Messages = append(r.Messages, llm.Assistant("Hi."), llm.User("And?"), llm.System("Mind your words."), llm.User("Well?"))
		}),
		"images": ask(func(r *llm.Request) {
			r.Messages = append(r.Messages, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: "See:"},
				{Image: &llm.Image{MediaType: "image/png", Data: []byte("png")}}, {Image: &llm.Image{URL: "https://example.com/a.png", Detail: "low"}}}})
		}),
		"documents": ask(func(r *llm.Request) {
			r.Messages = append(r.Messages, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: "See:"},
				{File: &llm.File{Name: "a.pdf", MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)}}, {File: &llm.File{MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)}}}})
		}),
		"tools":         ask(func(r *llm.Request) { r.Tools = tools }),
		"tool forced":   ask(func(r *llm.Request) { r.Tools, r.ToolChoice, r.OneTool = tools, "weather", true }),
		"tool required": ask(func(r *llm.Request) { r.Tools, r.ToolChoice = tools, "required" }),
		"tool none":     ask(func(r *llm.Request) { r.Tools, r.ToolChoice = tools, "none" }),
		"tool auto":     ask(func(r *llm.Request) { r.Tools, r.ToolChoice, r.OneTool = tools, "auto", true }),
		"tool results": ask(func(r *llm.Request) {
			r.Tools = tools
			r.Messages = append(r.Messages,
				llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "Let me see."}}, ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "weather", Arguments: `{"city":"Paris","people":1}`}, {ID: "call_2", Name: "noop", Arguments: "{}"}}},
				llm.ToolResult("call_1", "Rain."), llm.Message{Role: llm.RoleTool, ToolCallID: "call_2", ToolFailed: true, Parts: []llm.Part{{Text: "It failed."}}})
		}),
		"thoughts": ask(func(r *llm.Request) {
			r.Messages = append(r.Messages,
				llm.Message{Role: llm.RoleAssistant, Thoughts: []llm.Thought{{Text: "hm", Signature: "sig"}, {Opaque: "xx"}, {ID: "rs_1", Text: "sum", Opaque: "enc"}}, ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "weather", Arguments: "{}"}}},
				llm.ToolResult("call_1", "Rain."))
		}),
		"schema": ask(func(r *llm.Request) {
			r.Schema = &llm.Schema{Name: "place", Description: "A place.", JSON: json.RawMessage(place)}
		}),
		"loose schema": ask(func(r *llm.Request) {
			r.Schema = &llm.Schema{JSON: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","minLength":2}}}`)}
		}),
		"effort": ask(func(r *llm.Request) { r.Effort, r.MaxTokens = llm.EffortHigh, 20_000 }),
		"sampling": ask(func(r *llm.Request) {
			r.Temperature, r.TopP, r.Stop = ptr(0.5), ptr(0.97), []string{"END", "\n\n"}
			r.FrequencyPenalty, r.PresencePenalty, r.Seed = ptr(0.25), ptr(-0.5), ptr(int64(1<<40))
			r.Logprobs, r.TopLogprobs, r.Tier = true, 3, "auto"
		}),
		"cache": ask(func(r *llm.Request) { r.Prefix, r.Session = 1, "session-1" }),
		"cache in the talk": ask(func(r *llm.Request) {
			r.Messages = append(r.Messages, llm.Assistant("Hi."), llm.User("Go on."))
			r.Prefix = 3
		}),
		"extra": ask(func(r *llm.Request) {
			r.Extra = map[string]json.RawMessage{"metadata": json.RawMessage(`{"user_id":"u1"}`)}
		}),
	}
}

// TestRequests decodes our requests with the SDKs and encodes them again. Nothing may be lost: the SDKs know
// every field that we write, in that form.
func TestRequests(t *testing.T) {
	t.Parallel()
	able := provider.Capability{CacheKey: true, Efforts: []string{"low", "medium", "high"}}
	claude := func(model string) provider.Capability { return provider.Provider{Name: "anthropic"}.Capability(model) }
	type encode = func([]byte, *llm.Request, provider.Capability, bool) ([]byte, []string, error)
	for _, d := range []struct {
		name   string
		encode encode
		c      provider.Capability
		again  func([]byte) (any, error)
	}{
		{"openai", wireopenai.AppendRequest, able, readOpenAI[openai.ChatCompletionNewParams, openai.ChatCompletionNamedToolChoiceParam]},
		{"openai old", wireopenai.AppendRequest, provider.Capability{UseMaxTokens: true}, readOpenAI[openai.ChatCompletionNewParams, openai.ChatCompletionNamedToolChoiceParam]},
		{"responses", ours.AppendRequest, able, readOpenAI[responses.ResponseNewParams, responses.ToolChoiceFunctionParam]},
		{"anthropic", wireanthropic.AppendRequest, provider.Capability{}, readAgain[anthropic.MessageNewParams]},
		{"anthropic opus 5.5", wireanthropic.AppendRequest, claude("claude-opus-5-5"), readAgain[anthropic.MessageNewParams]},
		{"anthropic opus 5", wireanthropic.AppendRequest, claude("claude-opus-5"), readAgain[anthropic.MessageNewParams]},
		{"anthropic opus 4.6", wireanthropic.AppendRequest, claude("claude-opus-4-6"), readAgain[anthropic.MessageNewParams]},
		{"anthropic sonnet 4.5", wireanthropic.AppendRequest, claude("claude-sonnet-4-5"), readAgain[anthropic.MessageNewParams]},
	} {
		for name, req := range requests() {
			t.Run(d.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				b, _, err := d.encode(nil, req, d.c, false)
				if err != nil {
					t.Fatal(err)
				}
				var want any
				if err := json.Unmarshal(b, &want); err != nil {
					t.Fatalf("%s: %v", b, err)
				}
				got, err := d.again(b)
				if err != nil {
					t.Fatalf("%s: %v", b, err)
				}
				if !reflect.DeepEqual(got, want) {
					g, _ := json.Marshal(got)
					w, _ := json.Marshal(want)
					t.Errorf("the SDK makes of\n%s\nthis:\n%s", w, g)
				}
			})
		}
	}
}

// TestFileLinks checks that the SDKs know documents by address, and sound at Google, in the form that we write. Documents by
// content are among the requests of the other tests.
func TestFileLinks(t *testing.T) {
	t.Parallel()
	link := &llm.File{MediaType: llm.MediaPDF, URL: paperURL}
	talk := &llm.File{MediaType: llm.MediaMP3, Data: []byte("ID3\x04")}
	for _, c := range []struct {
		name   string
		file   *llm.File
		encode func([]byte, *llm.Request, provider.Capability, bool) ([]byte, []string, error)
		again  func([]byte) (any, error)
	}{
		{"responses", link, ours.AppendRequest, readAgain[responses.ResponseNewParams]},
		{"anthropic", link, wireanthropic.AppendRequest, readAgain[anthropic.MessageNewParams]},
		{"gemini", link, gemini.AppendRequest, readAgain[geminiBody]},
		{"gemini", talk, gemini.AppendRequest, readAgain[geminiBody]},
	} {
		b, _, err := c.encode(nil, &llm.Request{Model: "lab/m", MaxTokens: 9, Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{{Text: "See:"}, {File: c.file}}}}}, provider.Capability{}, false)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.again(b)
		want, werr := readAgain[any](b)
		if err != nil || werr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s, %v: the SDK makes of\n%s\nthis:\n%v, %v", c.name, c.file, b, got, err)
		}
	}
}

// readAgain reads b as a T, writes that, and returns what was written.
func readAgain[T any](b []byte) (any, error) {
	var params T
	if err := json.Unmarshal(b, &params); err != nil {
		return nil, err
	}
	out, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	var v any
	err = json.Unmarshal(out, &v)
	return v, err
}

// readOpenAI is readAgain for OpenAI's formats. The SDK's unions of tool choices do not recognize a single
// function, so that choice is decoded as a C.
func readOpenAI[T, C any](b []byte) (any, error) {
	v, err := readAgain[T](b)
	if err != nil {
		return nil, err
	}
	var raw struct {
		Choice json.RawMessage `json:"tool_choice"`
	}
	if err := json.Unmarshal(b, &raw); err != nil || len(raw.Choice) == 0 || raw.Choice[0] != '{' {
		return v, err
	}
	v.(map[string]any)["tool_choice"], err = readAgain[C](raw.Choice)
	return v, err
}
