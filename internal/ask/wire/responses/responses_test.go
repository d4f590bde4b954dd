package responses

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/wiretest"
	"parley/internal/kit/sse"
	"parley/llm"
)

//go:fix inline

const place = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`

type appendCase struct {
	name    string
	c       provider.Capability
	req     llm.Request
	want    map[string]string
	dropped []string
}

func TestAppendRequest(t *testing.T) {
	t.Parallel()
	for _, c := range appendCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.req.Model = "lab/m"
			b, dropped, err := AppendRequest(nil, &c.req, c.c, false)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]json.RawMessage
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			for k, v := range c.want {
				if string(got[k]) != v {
					t.Errorf("%s = %s\nwant %s", k, got[k], v)
				}
			}
			if !reflect.DeepEqual(dropped, c.dropped) {
				t.Errorf("dropped %q, want %q", dropped, c.dropped)
			}
		})
	}
}

func appendCases() []appendCase {
	return []appendCase{
		{"items", provider.Capability{}, llm.Request{Messages: []llm.Message{
			llm.System("A"), llm.System("B"),
			{Role: llm.RoleUser, Parts: []llm.Part{{Text: "Look"}, {Image: &llm.Image{URL: "https://x/y", Detail: "low"}}, {Image: &llm.Image{MediaType: "image/png", Data: []byte("png")}}}},
			{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "Hm."}}, Thoughts: []llm.Thought{{ID: "rs_1", Text: "sum", Opaque: "enc"}, {ID: "rs_2", Opaque: "enc2"}, {Text: "other", Signature: "s"}}, ToolCalls: []llm.ToolCall{{ID: "c1", Name: "f", Arguments: "{}"}}},
			llm.ToolResult("c1", "out"), llm.System("C"), llm.User("so?"),
		}}, map[string]string{
			"model": `"m"`, "store": "false", "instructions": `"A\n\nB"`, "include": "",
			"input": `[{"type":"message","role":"user","content":[{"type":"input_text","text":"Look"},{"type":"input_image","image_url":"https://x/y","detail":"low"},{"type":"input_image","image_url":"data:image/png;base64,cG5n","detail":"auto"}]},` +
				`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"sum"}],"encrypted_content":"enc"},{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"enc2"},{"type":"message","role":"assistant","content":"Hm."},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},` +
				`{"type":"function_call_output","call_id":"c1","output":"out"},{"type":"message","role":"developer","content":"C"},{"type":"message","role":"user","content":"so?"}]`,
		}, nil},
		{"only the system", provider.Capability{}, llm.Request{Messages: []llm.Message{llm.System("A")}},
			map[string]string{"instructions": "", "input": `[{"type":"message","role":"developer","content":"A"}]`}, nil},
		{"all", provider.Capability{Efforts: []string{"low", "max"}, CacheKey: true}, llm.Request{
			Messages: []llm.Message{llm.User("hi")}, Tools: []llm.Tool{{Name: "f", Description: "d", Strict: true, Parameters: json.RawMessage(place)}, {Name: "g"}},
			ToolChoice: "f", OneTool: true, Schema: &llm.Schema{Name: "p", Description: "D", JSON: json.RawMessage(place)}, Effort: llm.EffortXHigh,
			MaxTokens: 9, Temperature: new(0.5), TopP: new(0.9), Logprobs: true, TopLogprobs: 3, Tier: "flex", Session: "s",
		}, map[string]string{
			"tools":       `[{"type":"function","name":"f","description":"d","parameters":` + place + `,"strict":true},{"type":"function","name":"g","parameters":{"type":"object","properties":{}},"strict":false}]`,
			"tool_choice": `{"type":"function","name":"f"}`, "parallel_tool_calls": "false", "reasoning": `{"effort":"max"}`,
			"text":              `{"format":{"type":"json_schema","name":"p","description":"D","schema":` + place + `,"strict":true}}`,
			"max_output_tokens": "9", "temperature": "0.5", "top_p": "0.9", "top_logprobs": "3", "service_tier": `"flex"`, "prompt_cache_key": `"s"`,
			"include": `["reasoning.encrypted_content","message.output_text.logprobs"]`,
		}, nil},
		{"refused", provider.Capability{NoSampling: true, NoSchema: true, NoTools: true, NoLogprobs: true}, llm.Request{
			Messages: []llm.Message{llm.User("hi")}, Tools: []llm.Tool{{Name: "g"}}, Schema: &llm.Schema{JSON: json.RawMessage(place)}, Effort: llm.EffortLow,
			Temperature: new(0.5), TopP: new(0.9), TopK: new(1), FrequencyPenalty: new(1.0), PresencePenalty: new(1.0), Seed: new(int64(1)), Stop: []string{"x"}, TokenIDs: true, Logprobs: true,
		}, map[string]string{"tools": "", "text": "", "temperature": "", "top_p": "", "reasoning": "", "include": ""},
			[]string{"tools", "schema", "effort", "temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop", "token_ids", "logprobs"}},
		{"not forced", provider.Capability{NoForce: true}, llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []llm.Tool{{Name: "g"}}, ToolChoice: "required"},
			map[string]string{"tool_choice": ""}, []string{"tool_choice"}},
	}
}

const whole = `{"id":"r1","object":"response","model":"gpt","status":"completed","service_tier":"default","error":null,"incomplete_details":null,"output":[
{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"enc"},
{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"He","logprobs":[{"token":"He","logprob":-1,"top_logprobs":[{"token":"Ho","logprob":-2}]}]},{"type":"output_text","text":"y"}]},
{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"x\":1}"},{"type":"web_search_call","id":"w"}],
"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"output_tokens":12,"output_tokens_details":{"reasoning_tokens":8},"total_tokens":21}}`

func wholeWant() *llm.Response {
	return &llm.Response{
		ID: "r1", Model: "gpt", Tier: "default", Text: "Hey", Finish: llm.FinishTools,
		Thoughts:  []llm.Thought{{ID: "rs_1", Text: "a\n\nb", Opaque: "enc"}},
		ToolCalls: []llm.ToolCall{{ID: "c1", Name: "f", Arguments: `{"x":1}`}},
		Logprobs:  []llm.Logprob{{Token: "He", Logprob: -1, Top: []llm.Logprob{{Token: "Ho", Logprob: -2}}}},
		Usage:     llm.Usage{Input: 9, Cached: 4, CacheWrite: 2, Output: 12, Reasoning: 8},
	}
}

func TestDecodeResponse(t *testing.T) {
	t.Parallel()
	got, err := DecodeResponse([]byte(whole))
	if err != nil || !reflect.DeepEqual(got, wholeWant()) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, wholeWant())
	}
	for body, want := range map[string]llm.Finish{
		`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`:             llm.FinishLength,
		`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`:                llm.FinishRefused,
		`{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]}`: llm.FinishRefused,
		`{"status":"completed","output":[]}`: llm.FinishStop,
		`{"status":"cancelled","output":[]}`: llm.FinishAborted,
		`{"output":[]}`:                      llm.FinishStop,
	} {
		if r, err := DecodeResponse([]byte(body)); err != nil || r.Finish != want {
			t.Errorf("%s: %+v, %v, want %s", body, r, err, want)
		}
	}
	for body, want := range map[string]llm.Kind{
		`{"status":"failed","error":{"code":"server_error","message":"x"}}`:        llm.KindServer,
		`{"status":"failed","error":{"code":"rate_limit_exceeded","message":"x"}}`: llm.KindRateLimited,
		`{"status":"failed","error":{"code":"invalid_prompt","message":"x"}}`:      llm.KindRefused,
		`{"status":"failed","error":{"code":"invalid_image","message":"x"}}`:       llm.KindBadRequest,
		`{"status":"failed","error":null}`:                                         llm.KindServer,
		`{"status":"in_progress","output":[]}`:                                     llm.KindMalformed,
		`{}`:                                                                       llm.KindMalformed,
		`{"status":"completed","output":7}`:                                        llm.KindMalformed,
	} {
		if r, err := DecodeResponse([]byte(body)); llm.KindOf(err) != want || r != nil {
			t.Errorf("%s: got %v, %v, want %s", body, r, err, want)
		}
	}
}

func stream(events ...sse.Event) (*llm.Response, error) {
	return wiretest.Assemble(new(Assembler), events...)
}

func event(name, data string) sse.Event { return sse.Event{Name: []byte(name), Data: []byte(data)} }

func TestStream(t *testing.T) {
	t.Parallel()
	flat := strings.ReplaceAll(whole, "\n", "")
	for _, name := range []string{"response.completed", ""} {
		got, err := stream(event("response.created", "{}"), event("response.output_text.delta", "not even JSON"), event(name, `{"type":"response.completed","response":`+flat+`}`))
		if err != nil || !reflect.DeepEqual(got, wholeWant()) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, wholeWant())
		}
	}
	for _, c := range []struct {
		e    sse.Event
		want llm.Kind
	}{
		{event("response.created", "{}"), llm.KindMalformed},
		{event("response.completed", "{"), llm.KindMalformed},
		{event("", "[DONE]"), llm.KindMalformed},
		{event("response.failed", `{"response":{"status":"failed","error":{"code":"server_error","message":"x"}}}`), llm.KindServer},
		{event("error", `{"type":"error","code":"rate_limit_exceeded","message":"x"}`), llm.KindRateLimited},
		{event("", `{"error":{"code":"insufficient_quota","message":"x"}}`), llm.KindQuota},
	} {
		if r, err := stream(c.e); llm.KindOf(err) != c.want {
			t.Errorf("%s: %+v, %v, want %s", c.e.Data, r, err, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"type":"response.failed","response":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := DecodeResponse(b); (r == nil) == (err == nil) {
			t.Fatalf("%q: %v, %v", b, r, err)
		}
		if r, err := stream(event("", string(b)), event("response.completed", string(b))); (r == nil) == (err == nil) {
			t.Fatalf("%q: %v, %v", b, r, err)
		}
	})
}

// TestScanIsUnmarshal checks that what Scan reads is what json.Unmarshal reads, for answers and for
// answers with a wrong byte.
func TestScanIsUnmarshal(t *testing.T) {
	t.Parallel()
	for _, seed := range []string{
		`{"id":"r1","object":"response","status":"completed","incomplete_details":null,"model":"m","output":[{"id":"i","type":"message","content":[{"type":"output_text","annotations":[],"logprobs":[{"token":"a","logprob":-1}],"text":"a \"b\"\n"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"reasoning","id":"rs","summary":[]}],"usage":{"input_tokens":3,"output_tokens":4,"input_tokens_details":{"cached_tokens":1}}}`,
		`{"status":"incomplete","incomplete_details":{"reason":"x"},"output":[]}`,
	} {
		wiretest.Scan(t, answersDecoder, seed)
	}
}
