package openai

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/wiretest"
	"parley/llm"
)

//go:fix inline

// full is a request that sets every field.
func full() *llm.Request {
	return &llm.Request{
		Model: "lab/m-1",
		Messages: []llm.Message{
			llm.System("Be \"brief\"."),
			{Role: llm.RoleUser, Parts: []llm.Part{{Text: "Look:"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte("png")}}, {Image: &llm.Image{URL: "https://x/y.png", Detail: "low"}}}},
			{Role: llm.RoleAssistant, Thoughts: []llm.Thought{{Text: "hm"}, {ID: "call_1", Signature: "sig"}}, ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "weather", Arguments: `{"city":"Paris"}`}}},
			llm.ToolResult("call_1", "Rain"),
			llm.User("So?"),
		},
		Tools: []llm.Tool{
			{Name: "weather", Description: "Tells", Strict: true, Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)},
			{Name: "noop", Strict: true},
		},
		ToolChoice: "weather", OneTool: true,
		Schema:    &llm.Schema{Name: "a place", Description: "D", JSON: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)},
		Effort:    llm.EffortXHigh,
		MaxTokens: 50, Temperature: new(0.5), TopP: new(0.9), TopK: new(40), FrequencyPenalty: new(0.1), PresencePenalty: new(-0.1),
		Seed: new(int64(7)), Stop: []string{"END"}, Logprobs: true, TopLogprobs: 2, TokenIDs: true, Tier: "flex", Session: "s1",
		Extra: map[string]json.RawMessage{"verbosity": json.RawMessage(`"low"`)},
	}
}

type appendCase struct {
	name    string
	c       provider.Capability
	stream  bool
	change  func(*llm.Request)
	want    map[string]string // JSON of top-level fields; "" means absent
	dropped []string
}

func TestAppendRequest(t *testing.T) {
	t.Parallel()
	for _, c := range append(parameterCases(), messageCases()...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			req := full()
			if c.change != nil {
				c.change(req)
			}
			b, dropped, err := AppendRequest([]byte("x"), req, c.c, c.stream)
			if err != nil || b[0] != 'x' {
				t.Fatalf("got %s, %v", b, err)
			}
			var got map[string]json.RawMessage
			if err := json.Unmarshal(b[1:], &got); err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			for k, v := range c.want {
				if string(got[k]) != v {
					t.Errorf("%s = %s, want %s", k, got[k], v)
				}
			}
			if !reflect.DeepEqual(dropped, c.dropped) {
				t.Errorf("dropped %q, want %q", dropped, c.dropped)
			}
		})
	}
}

func parameterCases() []appendCase {
	return []appendCase{
		{
			name: "able", c: provider.Capability{TopK: true, TokenIDs: true, CacheKey: true, Efforts: []string{"low", "high"}}, stream: true,
			want: map[string]string{
				"model": `"m-1"`, "reasoning_effort": `"high"`, "max_completion_tokens": "50", "temperature": "0.5", "top_p": "0.9", "top_k": "40",
				"frequency_penalty": "0.1", "presence_penalty": "-0.1", "seed": "7", "stop": `["END"]`, "logprobs": "true", "top_logprobs": "2",
				"return_token_ids": "true", "service_tier": `"flex"`, "prompt_cache_key": `"s1"`, "verbosity": `"low"`, "stream": "true",
				"stream_options": `{"include_usage":true}`, "parallel_tool_calls": "false", "tool_choice": `{"type":"function","function":{"name":"weather"}}`,
				"tools":           `[{"type":"function","function":{"name":"weather","description":"Tells","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false},"strict":true}},{"type":"function","function":{"name":"noop","parameters":{"type":"object","properties":{}}}}]`,
				"response_format": `{"type":"json_schema","json_schema":{"name":"a_place","description":"D","schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false},"strict":true}}`,
				"messages": `[{"role":"system","content":"Be \"brief\"."},{"role":"user","content":[{"type":"text","text":"Look:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}},{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}}]},` +
					`{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"},"extra_content":{"google":{"thought_signature":"sig"}}}]},{"role":"tool","tool_call_id":"call_1","content":"Rain"},{"role":"user","content":"So?"}]`,
			},
		},
		{
			name: "unable", c: provider.Capability{NoSampling: true, NoStop: true, NoSeed: true, NoSchema: true, NoTools: true, NoLogprobs: true, UseMaxTokens: true, NoStreamOptions: true}, stream: true,
			want: map[string]string{
				"max_tokens": "50", "max_completion_tokens": "", "temperature": "", "top_p": "", "top_k": "", "frequency_penalty": "", "presence_penalty": "", "seed": "", "stop": "",
				"logprobs": "", "return_token_ids": "", "response_format": "", "tools": "", "tool_choice": "", "parallel_tool_calls": "", "reasoning_effort": "", "stream_options": "", "prompt_cache_key": "", "stream": "true",
			},
			dropped: []string{"tools", "schema", "effort", "temperature", "top_p", "frequency_penalty", "presence_penalty", "top_k", "logprobs", "stop", "seed", "token_ids"},
		},
		{
			name: "no thinking with tools", c: provider.Capability{NoToolEffort: true, NoForce: true, Efforts: []string{"none", "high"}, NoSampling: true, SamplingAtEffortNone: true, NoLogprobs: true, NoPenalties: true, SeedField: "random_seed"},
			want:    map[string]string{"reasoning_effort": `"none"`, "tool_choice": "", "temperature": "0.5", "logprobs": "true", "random_seed": "7", "seed": "", "stream": ""},
			dropped: []string{"tool_choice", "effort", "frequency_penalty", "presence_penalty", "top_k", "token_ids"},
		},
	}
}

func messageCases() []appendCase {
	return []appendCase{
		{
			name: "loose schema", change: func(r *llm.Request) {
				r.Schema.JSON = json.RawMessage(`{"type":"object"}`)
				r.Schema.Name, r.Schema.Description = "", ""
			},
			want:    map[string]string{"response_format": `{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":false}}`},
			dropped: []string{"effort", "top_k", "token_ids"},
		},
		{
			name: "thoughts back", c: provider.Capability{SendReasoningBack: true}, change: func(r *llm.Request) {
				*r = llm.Request{Model: "m", Messages: []llm.Message{llm.User("a"), {Role: llm.RoleAssistant, Thoughts: []llm.Thought{{Text: "hm"}}, Parts: []llm.Part{{Text: "b"}}}, llm.User("c")}}
			},
			want: map[string]string{"messages": `[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning_content":"hm"},{"role":"user","content":"c"}]`},
		},
		{
			name: "no system, no prefill", c: provider.Capability{NoSystem: true, NoPrefill: true}, change: func(r *llm.Request) {
				*r = llm.Request{Model: "m", Messages: []llm.Message{llm.System("S"), llm.User("U"), llm.Assistant("P")}}
			},
			want:    map[string]string{"messages": `[{"role":"user","content":[{"type":"text","text":"S\n\n"},{"type":"text","text":"U"}]}]`},
			dropped: []string{"prefill"},
		},
		{
			name: "system only, none taken", c: provider.Capability{NoSystem: true}, change: func(r *llm.Request) { *r = llm.Request{Model: "m", Messages: []llm.Message{llm.System("S")}} },
			want: map[string]string{"messages": `[{"role":"user","content":"S"}]`},
		},
	}
}

func TestAppendRequestRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*llm.Request){
		"schema":     func(r *llm.Request) { r.Schema.JSON = json.RawMessage("{") },
		"parameters": func(r *llm.Request) { r.Tools[0].Parameters = json.RawMessage("{") },
		"extra":      func(r *llm.Request) { r.Extra["messages"] = json.RawMessage("[]") },
	} {
		req := full()
		change(req)
		if b, _, err := AppendRequest(nil, req, provider.Capability{}, false); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %s, %v", name, b, err)
		}
	}
}

func TestDecodeResponse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		want       llm.Response
	}{
		{"openai", `{"id":"c1","model":"gpt","service_tier":"default","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},"logprobs":{"content":[{"token":"Hi","logprob":-0.1,"bytes":[72],"top_logprobs":[{"token":"Ho","logprob":-2}]}],"refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":8}}}`,
			llm.Response{ID: "c1", Model: "gpt", Tier: "default", Text: "Hi", Finish: llm.FinishStop, Usage: llm.Usage{Input: 9, Cached: 4, CacheWrite: 2, Output: 12, Reasoning: 8},
				Logprobs: []llm.Logprob{{Token: "Hi", Logprob: -0.1, Top: []llm.Logprob{{Token: "Ho", Logprob: -2}}}}}},
		{"refusal", `{"choices":[{"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}]}`, llm.Response{Refusal: "No.", Finish: llm.FinishRefused}},
		{"filter", `{"choices":[{"message":{"content":"x"},"finish_reason":"content_filter"}]}`, llm.Response{Text: "x", Finish: llm.FinishRefused}},
		{"length", `{"choices":[{"message":{"content":""},"finish_reason":"length"}]}`, llm.Response{Finish: llm.FinishLength}},
		{"abort", `{"choices":[{"message":{"content":"x"},"finish_reason":"abort"}],"metadata":{"weight_version":"v7"}}`, llm.Response{Text: "x", Finish: llm.FinishAborted, WeightVersion: "v7"}},
		{"tools reported as stop, arguments as an object", `{"choices":[{"message":{"content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}},{"id":"b","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"stop"}]}`,
			llm.Response{Finish: llm.FinishTools, ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g", Arguments: "{}"}}}},
		{"gemini", `{"choices":[{"message":{"tool_calls":[{"id":"a","extra_content":{"google":{"thought_signature":"S"}},"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}}`,
			llm.Response{Finish: llm.FinishTools, ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}}, Thoughts: []llm.Thought{{ID: "a", Signature: "S"}}, Usage: llm.Usage{Input: 10, Output: 30, Reasoning: 25}}},
		{"deepseek", `{"choices":[{"message":{"content":"x","reasoning_content":"hm"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_cache_hit_tokens":6}}`,
			llm.Response{Text: "x", Finish: llm.FinishStop, Thoughts: []llm.Thought{{Text: "hm"}}, Usage: llm.Usage{Input: 10, Cached: 6, Output: 5}}},
		{"mistral", `{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"x"}]},"finish_reason":"stop"}]}`,
			llm.Response{Text: "x", Finish: llm.FinishStop, Thoughts: []llm.Thought{{Text: "hm"}}}},
		{"vllm", `{"prompt_token_ids":[1,2],"choices":[{"message":{"content":"ab"},"token_ids":[3,4],"logprobs":{"content":[{"token":"a","logprob":-1},{"token":"token_id:4","logprob":-2}]},"finish_reason":"stop"}]}`,
			llm.Response{Text: "ab", Finish: llm.FinishStop, PromptTokenIDs: []int{1, 2}, TokenIDs: []int{3, 4}, Logprobs: []llm.Logprob{{Token: "a", ID: 3, Logprob: -1}, {Token: "token_id:4", ID: 4, Logprob: -2}}}},
	} {
		got, err := DecodeResponse([]byte(c.body))
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.name, got, err, c.want)
		}
	}
}

func TestDecodeResponseFails(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]llm.Kind{
		`{"choices":[]}`: llm.KindMalformed,
		`{"choices":[{"message":{"content":7}}]}`:                                                  llm.KindMalformed,
		`{"choices":[{"message":{}}]}`:                                                             llm.KindMalformed,
		`{"error":{"code":429,"message":"slow"}}`:                                                  llm.KindRateLimited,
		`{"choices":[{"message":{"content":"x"},"finish_reason":"error"}]}`:                        llm.KindServer,
		`{"choices":[{"message":{"content":"x"},"finish_reason":"insufficient_system_resource"}]}`: llm.KindOverloaded,
		`{"choices":[{"error":{"code":502,"message":"x"},"finish_reason":"error"}]}`:               llm.KindServer,
	} {
		if r, err := DecodeResponse([]byte(body)); llm.KindOf(err) != want || r != nil {
			t.Errorf("%s: got %v, %v, want %s", body, r, err, want)
		}
	}
}

// stream assembles chunks.
func stream(chunks ...string) (*llm.Response, error) {
	return wiretest.Assemble(new(Assembler), wiretest.Data(chunks...)...)
}

func TestStream(t *testing.T) {
	t.Parallel()
	got, err := stream(
		`{"id":"c1","model":"m","prompt_token_ids":[1],"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
		`{"choices":[{"index":0,"delta":{"reasoning":"h","reasoning_content":"h"}}]}`,
		`{"choices":[{"index":1,"delta":{"content":"another choice"}},{"index":0,"delta":{"reasoning_content":"m","content":"He"},"token_ids":[5],"logprobs":{"content":[{"token":"He","logprob":-1}]}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"y","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x"}}]},"token_ids":[6],"logprobs":{"content":[{"token":"y","logprob":-2}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"h","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`,
		`[DONE]`, `not read`)
	want := &llm.Response{
		ID: "c1", Model: "m", Text: "Hey", Finish: llm.FinishTools, Thoughts: []llm.Thought{{Text: "hm"}}, Usage: llm.Usage{Input: 3, Output: 4},
		PromptTokenIDs: []int{1}, TokenIDs: []int{5, 6}, Logprobs: []llm.Logprob{{Token: "He", ID: 5, Logprob: -1}, {Token: "y", ID: 6, Logprob: -2}},
		ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g", Arguments: "{}"}, {ID: "c", Name: "h", Arguments: "{}"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	if r, err := stream(`{"choices":[{"delta":{"content":"x"}}],"x_groq":{"usage":{"prompt_tokens":1}}}`, `[DONE]`); err != nil || r.Finish != llm.FinishStop || r.Usage.Input != 1 {
		t.Errorf("[DONE] without a reason: %+v, %v", r, err)
	}
	if r, err := stream(`{"choices":[{"delta":{"content":"x"}}]}`); llm.KindOf(err) != llm.KindMalformed {
		t.Errorf("no end: %+v, %v", r, err)
	}
	if r, err := stream(`[DONE]`); llm.KindOf(err) != llm.KindMalformed {
		t.Errorf("nothing: %+v, %v", r, err)
	}
}

func TestStreamBoundsCalls(t *testing.T) {
	t.Parallel()
	chunk := `{"choices":[{"delta":{"tool_calls":[` + strings.TrimSuffix(strings.Repeat(`{"function":{"name":"f"}},`, 2000), ",") + `]}}]}`
	if _, err := stream(chunk, `[DONE]`); llm.KindOf(err) != llm.KindMalformed {
		t.Errorf("got %v", err)
	}
}

// TestStreamUsage checks that the largest usage counts, and that a negative one is not hidden.
func TestStreamUsage(t *testing.T) {
	t.Parallel()
	const said = `{"choices":[{"delta":{"content":"so"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`
	for _, tt := range []struct {
		first, last [3]int
		want        llm.Usage
	}{
		{[3]int{9, 5000, 8}, [3]int{9, 1, 0}, llm.Usage{Input: 9, Output: 5000}},
		{[3]int{900, 1, 800}, [3]int{9, 5, 0}, llm.Usage{Input: 900, Cached: 800, Output: 5}},
		{[3]int{9, -5, 0}, [3]int{9, 5, 0}, llm.Usage{Input: 9, Output: -5}},
		{[3]int{9, 5, 0}, [3]int{-9, 5, 0}, llm.Usage{Input: -9, Output: 5}},
		{[3]int{9, 5, 0}, [3]int{9, 5, -1}, llm.Usage{Input: 9, Cached: -1, Output: 5}},
	} {
		r, err := stream(fmt.Sprintf(said, tt.first[0], tt.first[1], tt.first[2]), fmt.Sprintf(said, tt.last[0], tt.last[1], tt.last[2]), `[DONE]`)
		if err != nil || r.Usage != tt.want {
			t.Errorf("%v, %v: %+v, %v, want %+v", tt.first, tt.last, r, err, tt.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":"c1","choices":[{"message":{"content":[{"text":"x"}],"tool_calls":[{"id":"a","function":{"arguments":{}}}]},"logprobs":{"content":[{}]}}],"usage":{"prompt_tokens":-1}}`))
	f.Add([]byte(`{"choices":[{"delta":{"tool_calls":[{"index":-5}]},"finish_reason":"stop"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, b, DecodeResponse)
		check(t, b, func(b []byte) (*llm.Response, error) { return stream(string(b), string(b)) })
	})
}

func check(t *testing.T, b []byte, decode func([]byte) (*llm.Response, error)) {
	t.Helper()
	r, err := decode(b)
	if (r == nil) == (err == nil) {
		t.Fatalf("%q: %v, %v", b, r, err)
	}
	if err != nil {
		if llm.AsError(err).Kind == "" {
			t.Errorf("%q: no kind", b)
		}
		return
	}
	if r.Finish == "" {
		t.Errorf("%q: %+v", b, r)
	}
}

func BenchmarkAppendRequest(b *testing.B) {
	req := full()
	c := provider.Capability{TopK: true, Efforts: []string{"low", "high"}}
	buf := make([]byte, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		buf, _, _ = AppendRequest(buf[:0], req, c, false)
	}
}

func BenchmarkDecodeResponse(b *testing.B) {
	body := []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("A sentence of an answer.\\n", 40) + `","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"service_tier":"default","system_fingerprint":null}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		DecodeResponse(body)
	}
}

// TestStrictServer sends everything to a server that refuses members it does not know, with the entry of docs/how-to/providers.md.
func TestStrictServer(t *testing.T) {
	t.Parallel()
	can := provider.Capability{UseMaxTokens: true, SeedField: "random_seed", NoStreamOptions: true, NoForce: true, NoParallel: true, NoLogprobs: true, Efforts: []string{"none", "high"}}
	req := &llm.Request{
		Model: "paris/m", MaxTokens: 9, Temperature: new(0.5), TopP: new(0.5), TopK: new(5), Seed: new(int64(7)), Stop: []string{"x"}, Effort: llm.EffortMedium,
		FrequencyPenalty: new(0.1), PresencePenalty: new(0.1), Logprobs: true, TopLogprobs: 2, Session: "s", ToolChoice: "look", OneTool: true,
		Tools:    []llm.Tool{{Name: "look", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}},
		Messages: []llm.Message{llm.User("hi")},
	}
	b, dropped, err := AppendRequest(nil, req, can, true)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		t.Fatal(err)
	}
	const known = "model messages stream tools temperature top_p max_tokens stop frequency_penalty presence_penalty reasoning_effort random_seed"
	for name := range members {
		if !slices.Contains(strings.Fields(known), name) {
			t.Errorf("%s is sent", name)
		}
	}
	if got := strings.Join(dropped, " "); got != "tool_choice one_tool top_k logprobs" || !strings.Contains(string(b), `"reasoning_effort":"high"`) {
		t.Errorf("dropped %q: %s", got, b)
	}
}

// TestScanIsUnmarshal checks that what Scan reads is what json.Unmarshal reads, for answers and for
// answers with a wrong byte.
func TestScanIsUnmarshal(t *testing.T) {
	t.Parallel()
	for _, seed := range []string{
		`{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a \"b\" \u00e9\n","refusal":null,"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":1,"reasoning_tokens":8},"completion_tokens_details":{"reasoning_tokens":2,"cached_tokens":9}}}`,
		`{"model":"m","choices":[{"index":0,"delta":{"content":[{"text":"x"}],"reasoning":"y"},"token_ids":[1],"meta_info":{"weight_version":2}}],"metadata":{"weight_version":"3"},"x_groq":{"usage":{"prompt_tokens":1}}}`,
		`{"choices":[{"index":1}],"choices":[{"index":2}],"usage":{"prompt_tokens":1},"usage":{"total_tokens":2}}`,
	} {
		wiretest.Scan(t, answersDecoder, seed)
	}
}

// TestTokenFields checks that token IDs are requested as the server wants it.
func TestTokenFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		c    provider.Capability
		want []string
	}{
		{provider.Capability{TokenIDs: true}, []string{"return_token_ids"}},
		{provider.Capability{TokenIDs: true, SGLangTokenIDs: true}, []string{"logprobs", "return_prompt_token_ids", "return_meta_info"}},
		{provider.Capability{SGLangTokenIDs: true}, nil},
		{provider.Capability{}, nil},
	} {
		req := &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("x")}, TokenIDs: true}
		b, dropped, err := AppendRequest(nil, req, c.c, false)
		var got map[string]json.RawMessage
		if err != nil || json.Unmarshal(b, &got) != nil {
			t.Fatalf("%s, %v", b, err)
		}
		for _, name := range []string{"logprobs", "return_token_ids", "return_prompt_token_ids", "return_meta_info"} {
			wanted := false
			for _, w := range c.want {
				wanted = wanted || w == name
			}
			if (string(got[name]) == "true") != wanted {
				t.Errorf("%+v: %s is %s", c.c, name, got[name])
			}
		}
		if (c.want == nil) != reflect.DeepEqual(dropped, []string{"token_ids"}) {
			t.Errorf("%+v: dropped %q", c.c, dropped)
		}
	}
}

// TestTokens checks that tokens, log probabilities and the version of the weights are read exactly, in
// every form.
func TestTokens(t *testing.T) {
	t.Parallel()
	const head = `{"choices":[{"message":{"content":"ab"},"finish_reason":"stop"`
	for _, c := range []struct {
		name, body string
		want       llm.Response
	}{
		{
			"sglang", head + `,"prompt_token_ids":[1,2],"meta_info":{"weight_version":"w8","output_token_logprobs":[[-0.12345678901234567,3,"a"],[-2,0,null]]},"logprobs":{"content":[{"token":"a","logprob":-0.1234},{"token":"b","logprob":-2}]}}]}`,
			llm.Response{PromptTokenIDs: []int{1, 2}, TokenIDs: []int{3, 0}, WeightVersion: "w8", Logprobs: []llm.Logprob{{Token: "a", ID: 3, Logprob: -0.12345678901234567}, {Token: "b", Logprob: -2}}},
		},
		{
			"sglang without texts", head + `,"meta_info":{"output_token_logprobs":[[-1,3],[-2,4]]}}]}`,
			llm.Response{TokenIDs: []int{3, 4}, Logprobs: []llm.Logprob{{ID: 3, Logprob: -1}, {ID: 4, Logprob: -2}}},
		},
		{
			"both ways", head + `,"token_ids":[3,4],"meta_info":{"output_token_logprobs":[[-1,3],[-2,4]]}}]}`,
			llm.Response{TokenIDs: []int{3, 4}},
		},
		{"version as a number", head + `}],"metadata":{"weight_version":17}}`, llm.Response{WeightVersion: "17"}},
		{"version at the top", head + `}],"weight_version":"default"}`, llm.Response{WeightVersion: "default"}},
		{"no version", head + `}],"weight_version":null,"metadata":{"weight_version":null,"x":[1]}}`, llm.Response{}},
		{"metadata of another sort", head + `}],"weight_version":{"a":1},"metadata":"hello"}`, llm.Response{}},
		{"metadata as a list", head + `}],"metadata":[1,2]}`, llm.Response{}},
	} {
		c.want.Text, c.want.Finish = "ab", llm.FinishStop
		got, err := DecodeResponse([]byte(c.body))
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.name, got, err, c.want)
		}
	}
	for _, bad := range []string{`[[-1]]`, `[["x",3]]`, `[[-1,"3"]]`, `[[-1,3.5]]`, `[-1,3]`} {
		if r, err := DecodeResponse([]byte(head + `,"meta_info":{"output_token_logprobs":` + bad + `}}]}`)); llm.KindOf(err) != llm.KindMalformed {
			t.Errorf("%s: tokens that cannot be read became %+v, %v", bad, r, err)
		}
	}
}
