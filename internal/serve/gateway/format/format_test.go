package format

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/responses"
	"parley/internal/kit/sse"
	"parley/llm"
)

// question uses everything that all formats have.
func question() *llm.Request {
	return &llm.Request{
		Model: "m", MaxTokens: 300, Temperature: new(0.5), TopP: new(0.9),
		Messages: []llm.Message{
			llm.System("Be brief."),
			{Role: llm.RoleUser, Parts: []llm.Part{{Text: "See \"this\":"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte("png")}}}},
			{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "Let me look."}}, ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "look", Arguments: `{"at":"it"}`}}},
			llm.ToolResult("call_1", "A cat \u00e9."),
		},
		Tools:      []llm.Tool{{Name: "look", Description: "Looks.", Strict: true, Parameters: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}},"required":["at"],"additionalProperties":false}`)}},
		ToolChoice: "look", OneTool: true,
	}
}

// TestDecode reads back what the dialects write.
func TestDecode(t *testing.T) {
	t.Parallel()
	type writer = func([]byte, *llm.Request, provider.Capability, bool) ([]byte, []string, error)
	for api, write := range map[API]writer{Chat: openai.AppendRequest, Responses: responses.AppendRequest, Messages: anthropic.AppendRequest, Gemini: gemini.AppendRequest} {
		want := question()
		b, _, err := write(nil, want, provider.Capability{}, true)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Decode(api, Address{Model: "m", Stream: true}, b)
		if err != nil {
			t.Fatalf("%s: %v: %s", api, err, b)
		}
		if api == Gemini { // it has neither
			want.OneTool, want.Tools[0].Strict = false, false
		}
		got := c.Request
		if !c.Stream || len(c.Strange) > 0 {
			t.Errorf("%s: %+v", api, c)
		}
		if api == Responses { // words and calls are apart there
			if n := len(got.Messages); n != 5 {
				t.Fatalf("%d messages: %+v", n, got.Messages)
			}
			got.Messages[2].ToolCalls = got.Messages[3].ToolCalls
			got.Messages = append(got.Messages[:3:3], got.Messages[4])
			got.Messages[1].Parts[1].Image.Detail = "" // which is always said there
		}
		got.Extra, got.Model = nil, want.Model
		if a, b := encodeFormat(t, &got), encodeFormat(t, want); a != b {
			t.Errorf("%s:\n%s\nwant\n%s", api, a, b)
		}
	}
}

func encodeFormat(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDecodeKeeps checks that unknown members, and members of the wrong type, are kept.
func TestDecodeKeeps(t *testing.T) {
	t.Parallel()
	c, err := Decode(Chat, Address{}, []byte(`{"model":"m","temperature":"hot","odd":{"a":1},"stream":null,"n":2,"seed":7,"top_k":5,
		"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}},"stop":["a","b"],
		"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"x"}}]},{"role":"alien","content":"?"},7,{"role":"assistant","content":"","reasoning_content":"Hm.","refusal":"No."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	q := c.Request
	if string(q.Extra["temperature"]) != `"hot"` || string(q.Extra["odd"]) != `{"a":1}` || c.Choices != 2 || *q.Seed != 7 || *q.TopK != 5 || len(q.Stop) != 2 || string(q.Schema.JSON) != `{"type":"object"}` {
		t.Errorf("%+v", q)
	}
	if len(q.Messages) != 4 || !strings.Contains(q.Messages[0].Text(), "input_audio") || q.Messages[2].Text() != "7" || q.Messages[3].Thoughts[0].Text != "Hm." || q.Messages[3].Text() != "No." {
		t.Errorf("%+v", q.Messages)
	}
	if len(c.Strange) != 3 {
		t.Errorf("%q", c.Strange)
	}
	for _, bad := range []string{"", "[]", "null", `{"model":`, "\x00", `{"a":"`} {
		if _, err := Decode(Chat, Address{}, []byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	of := func(api API, body string) [32]byte {
		c, err := Decode(api, Address{}, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return c.Digest
	}
	want := of(Chat, `{"model":"m","messages":[],"x":1}`)
	for body, same := range map[string]bool{
		`{"x":1,"messages":[],"model":"m"}`:                      true,
		"\n{ \"model\" : \"m\" , \"messages\" : [], \"x\" : 1 }": true,
		`{"model":"m","messages":[],"x":1,"user":"me"}`:          true,
		`{"model":"m","messages":[],"x":2}`:                      false,
		`{"model":"m","messages":[]}`:                            false,
		`{"model":"m","messages":[{"role":"user"}],"x":1}`:       false,
	} {
		if got := of(Chat, body) == want; got != same {
			t.Errorf("%s: %v", body, got)
		}
	}
	if of(Messages, `{"model":"m","messages":[],"x":1}`) == want {
		t.Error("another endpoint, and the same digest")
	}
	seen := map[[32]byte]Address{}
	for _, at := range []Address{{"m", false}, {"m", true}, {"n", false}, {"mfalse", false}} {
		c, err := Decode(Gemini, at, []byte(`{"contents":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[c.Digest]; ok {
			t.Errorf("%+v and %+v have one digest", at, other)
		}
		seen[c.Digest] = at
	}
}

// TestGemini checks the paths of Gemini's format, the members of its configuration, and the names that its servers read in two ways.
func TestGemini(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/models/m:generateContent": "generate_content m false", "/models/lab/m%20x:streamGenerateContent": "generate_content lab/m x true",
		"/models/qwen3:8b:countTokens": "gemini_count_tokens qwen3:8b false", "/models/m:embedContent": "", "/models/m": "", "/models/:generateContent": "", "/m:generateContent": "", "/models/%zz:generateContent": "",
	} {
		api, at, ok := ParseGemini(path)
		if got := fmt.Sprintf("%s %s %v", api, at.Model, at.Stream); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s %v, want %q", path, got, ok, want)
		}
	}
	c, err := Decode(Gemini, Address{Model: "m"}, []byte(`{"contents":[{"parts":[{"text":"hi"}]}],"cachedContent":"c/1","generationConfig":{"maxOutputTokens":7,"candidateCount":2,"mediaResolution":"HIGH","topK":null},"tools":[{"googleSearch":{}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	q := c.Request
	if c.MaxTokens() != 14 || q.Model != "m" || len(q.Extra) != 3 || string(q.Extra["mediaResolution"]) != `"HIGH"` || q.Extra["cachedContent"] == nil || q.Extra["tools"] == nil {
		t.Errorf("%+v", c)
	}
	for body, want := range map[string]string{
		`{"contents":[],"generation_config":{"maxOutputTokens":9}}`:  `"generation_config": write it "generationConfig"`,
		`{"contents":[],"generationConfig":{"max_output_tokens":9}}`: `generationConfig: the name "max_output_tokens": write it "maxOutputTokens"`,
		`{"contents":[{"parts":[{"inline_data":{}}]}]}`:              `"inline_data": write it "inlineData"`,
		`{"contents":[],"GenerationConfig":{}}`:                      `write it "generationConfig"`,
		`{"contents":[],"model":"models/other"}`:                     `the model is in the address`,
		`{"contents":[],"generationConfig":{"maxOutputTokens":"9"}}`: `want a whole number`,
		`{"contents":[],"contents":[]}`:                              `"contents" is given twice`,
	} {
		if _, err := Decode(Gemini, Address{Model: "m"}, []byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	const fine = `{"contents":[{"parts":[{"functionCall":{"name":"f","args":{"max_output_tokens":1,"Model":2}}}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters_json_schema":{"properties":{"inline_data":{}}}}]}]}`
	if c, err := Decode(Gemini, Address{Model: "m"}, []byte(fine)); err != nil || c.Request.Tools[0].Parameters == nil {
		t.Errorf("%+v %v", c, err)
	}
}

// TestDigestCannotBeForged checks that members that would cancel out, and texts that run together, have
// different digests.
func TestDigestCannotBeForged(t *testing.T) {
	t.Parallel()
	seen := map[[32]byte]string{}
	for _, body := range []string{
		`{"model":"m"}`, `{"model":"m","a":1,"b":1}`, `{"model":"m","a":1}`, `{"model":"m","b":1}`, `{"model":"m","a":"1,b:1"}`, `{"model":"m","ab":1}`,
		`{"model":"m","a":[1],"b":[2]}`, `{"model":"m","a":[2],"b":[1]}`, `{"model":"m","a\u000012":1}`, `{"model":"m","a":121}`,
	} {
		c, err := Decode(Chat, Address{}, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[c.Digest]; ok {
			t.Errorf("%s and %s have one digest", body, other)
		}
		seen[c.Digest] = body
	}
}

// TestStrict checks that bodies that servers would read in different ways are refused.
func TestStrict(t *testing.T) {
	t.Parallel()
	const m = `"messages":[{"role":"user","content":"x"}]`
	for body, want := range map[string]string{
		`{"model":"a","model":"b",` + m + `}`:                                           `the body: "model" is given twice`,
		`{"model":"a","m\u006fdel":"b",` + m + `}`:                                      `has 'o' escaped`,
		`{"m\u006Fdel":"b",` + m + `}`:                                                  `has 'o' escaped`,
		`{"model":"a","messages":[{"role":"user","c\u006fntent":"x"}]}`:                 `messages[0]: the name`,
		`{"model":"a","messages":[{"role":"user","content":"a","content":"b"}]}`:        `messages[0]: "content" is given twice`,
		`{"model":"a",` + m + `,"x":{"y":[1,{"k":1,"k":2}]}}`:                           `x.y[1]: "k" is given twice`,
		`{"model":"a",` + m + `,"x":{"a/b":1,"a\/b":2}}`:                                `"a/b" is given twice`,
		`{"model":"a","Model":"b",` + m + `}`:                                           `"Model" is not "model"`,
		`{"model":"a","\u017ftream":true,` + m + `}`:                                    `is not "stream"`,
		`{"model":"a","MAX_TOKENS":5,` + m + `}`:                                        `is not "max_tokens"`,
		`{"model":"a","messages":[{"role":"user","Content":"x"}]}`:                      `messages[0]: the name "Content"`,
		`{"model":"a",` + m + `} {"model":"b"}`:                                         `there is more after the value`,
		`{"model":"a",` + m + `}x`:                                                      `there is more after the value`,
		"\xef\xbb\xbf" + `{"model":"a",` + m + `}`:                                      `byte order mark`,
		`{"model":"a\xff",` + m + `}`:                                                   `not UTF-8`,
		"{\x00\"\x00m\x00\"\x00:\x001\x00}\x00":                                         `not valid JSON`,
		`{"model":"a","x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`: `nested too deep`,
		`{"model":5,` + m + `}`:                                                         `model is 5: want a string`,
		`{"model":"a",` + m + `,"stream":"true"}`:                                       `stream is "true": want true or false`,
		`{"model":"a",` + m + `,"max_tokens":9000000000000000000}`:                      `want at most 2147483647`,
		`{"model":"a",` + m + `,"max_tokens":1e400}`:                                    `want a whole number`,
		`{"model":"a",` + m + `,"max_tokens":1.5}`:                                      `max_tokens is 1.5: want a whole number`,
		`{"model":"a",` + m + `,"max_tokens":"5"}`:                                      `max_tokens is "5": want a whole number`,
		`{"model":"a",` + m + `,"max_completion_tokens":{"a":1}}`:                       `want a whole number`,
		`{"model":"a",` + m + `,"n":99999999999}`:                                       `want at most`,
		`{"model":"a",` + m + `,"n":true}`:                                              `want a whole number`,
		`{"model":"a",` + m + `,"max_tokens":1000000,"n":1000000}`:                      `1000000 answers of 1000000 tokens each`,
		`{"model":"a",` + m + `,"max_tokens":1000000,"best_of":1000000}`:                `1000000 answers`,
	} {
		body = strings.ReplaceAll(body, `\xff`, "\xff")
		_, err := Decode(Chat, Address{}, []byte(body))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: %v, want %s", body, err, want)
		}
	}
	many := strings.Builder{}
	for i := range 1000 {
		fmt.Fprintf(&many, `"k%d":1,`, i)
	}
	if _, err := Decode(Chat, Address{}, []byte(`{"model":"a","x":{`+many.String()+`"k7":2}}`)); err == nil || !strings.Contains(err.Error(), `x: "k7" is given twice`) {
		t.Errorf("%v", err)
	}
	for _, fine := range []string{
		`{"model":"a","tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"Model":{},"model":{},"Content":{}}}}}],` + m + `}`,
		`{"model":"a","metadata":{"Model":"x"},"logit_bias":{"N":1},"extra_body":{"Stream":true},` + m + `}`,
		`{"model":"a","x":{"\u00e9":1,"a<\u003cb":2,"e":3},` + m + `}`,
		`{"model":"a","x":{` + many.String() + `"z":1},` + m + `}`,
	} {
		if _, err := Decode(Chat, Address{}, []byte(fine)); err != nil {
			t.Errorf("%.200s: %v", fine, err)
		}
	}
}

// TestLimits checks that token limits are read as the maximum that any server would use.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		api  API
		more string
		max  int
	}{
		{Chat, ``, 0}, {Chat, `,"max_tokens":5`, 5}, {Chat, `,"max_tokens":5,"max_completion_tokens":70`, 70}, {Chat, `,"max_completion_tokens":7,"max_tokens":500`, 500},
		{Chat, `,"max_tokens":-1`, 0}, {Chat, `,"max_tokens":-1,"max_completion_tokens":70`, 0}, {Chat, `,"max_completion_tokens":70,"max_tokens":0`, 0},
		{Chat, `,"max_tokens":null,"max_completion_tokens":70`, 70}, {Chat, `,"max_tokens":1e3,"n":2.0`, 2000}, {Chat, `,"max_tokens":5,"n":0`, 5}, {Chat, `,"max_tokens":5,"n":2,"best_of":3`, 15},
		{Responses, `,"max_output_tokens":9,"max_tokens":100`, 9}, {Messages, `,"max_tokens":2147483647`, 2147483647},
	} {
		got, err := Decode(c.api, Address{}, []byte(`{"model":"m"`+c.more+`}`))
		if err != nil || got.MaxTokens() != c.max {
			t.Errorf("%s %s: %+v, %v", c.api, c.more, got, err)
		}
	}
	c, err := Decode(Chat, Address{}, []byte(`{"model":"m","messages":[{"role":"assistant","content":null,"function_call":{"arguments":"12345"}}]}`))
	if err != nil || c.Unread != len(`{"arguments":"12345"}`) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	const body = ` {"a": [1, {"model":"inner"}], "model" :"old","b":"\u00e9" , "model": "twice"}`
	if got, want := string(SetModel([]byte(body), `new "one"`)), ` {"a": [1, {"model":"inner"}], "model" :"new \"one\"","b":"\u00e9" , "model": "new \"one\""}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for body, want := range map[string]string{
		`{"stream":true}`:               `{"stream_options":{"include_usage":true},"stream":true}`,
		` {}`:                           ` {"stream_options":{"include_usage":true}}`,
		`{"stream_options":null,"x":1}`: `{"stream_options":{"include_usage":true},"x":1}`,
		`{"stream_options":{"include_obfuscation":false}}`:                `{"stream_options":{"include_usage":true,"include_obfuscation":false}}`,
		`{"stream_options":{"include_usage":false, "x":1},"stream":true}`: `{"stream_options":{"include_usage":true, "x":1},"stream":true}`,
		`{"stream_options":{},"stream":true}`:                             `{"stream_options":{"include_usage":true},"stream":true}`,
	} {
		if got := string(AskUsage([]byte(body))); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		api        API
		event      string
		ends, last bool
		fails      bool
	}{
		{Chat, "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"finish_reason\\\":\\\"stop\\\"\"},\"finish_reason\":null}]}\n\n", false, false, false},
		{Chat, "data: {\"choices\":[{\"delta\":{},\"finish_reason\" : \"stop\"}]}\n\n", true, false, false},
		{Chat, "data: [DONE]\n\n", false, true, false},
		{Chat, "data: {\"error\":{\"message\":\"x\"}}\n\n", false, false, true},
		{Chat, "data: {\"choices\":[{\"delta\":{\"content\":\"an \\\"error\\\"\"}}],\"error\":null}\n\n", false, false, false},
		{Messages, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n", true, false, false},
		{Messages, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"stop_reason\":null}}\n\n", false, false, false},
		{Messages, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", false, true, false},
		{Messages, "event: error\ndata: {\"type\":\"error\"}\n\n", false, false, true},
		{Responses, "data: {\"type\":\"response.completed\",\"response\":{}}\n\n", false, true, false},
		{Responses, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"error\":null}}\n\n", false, true, false},
		{Gemini, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\\\"finishReason\\\":\\\"STOP\\\"\"}]}}]}\n\n", false, false, false},
		{Gemini, "data: {\"candidates\":[{\"finishReason\": \"STOP\"}]}\n\n", true, false, false},
		{Gemini, "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n", true, false, false},
		{Gemini, "data: {\"error\":{\"code\":503}}\n\n", false, false, true},
	} {
		e := sse.Parse([]byte(c.event))
		if c.api.Ends(e) != c.ends || c.api.Last(e) != c.last || c.api.Fails(e) != c.fails {
			t.Errorf("%s %q: ends %v, last %v, fails %v", c.api, c.event, c.api.Ends(e), c.api.Last(e), c.api.Fails(e))
		}
	}
	if Chat.Ends(sse.Parse([]byte("data: {\"finish_reason\":\"\"}\n\n"))) {
		t.Error("an empty reason counts as a reason")
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"model":"m","messages":[{"role":"user","content":"x"}]}`, `{"system":[{"type":"text"}],"tools":[{}],"thinking":{"type":"enabled"}}`, `{"input":[{"type":"reasoning","summary":[]}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, api := range []API{Chat, Responses, Messages, Count, Embeddings, Gemini} {
			c, err := Decode(api, Address{}, b)
			if err != nil {
				continue
			}
			if out := SetModel(b, "m"); json.Valid(b) && !json.Valid(out) {
				t.Errorf("%q became %q", b, out)
			}
			if out := CutIDs(b, "~"); json.Valid(b) && !json.Valid(out) {
				t.Fatalf("CutIDs: %q became %q", b, out)
			}
			if out := AskUsage(b); json.Valid(b) && !json.Valid(out) {
				t.Errorf("%q became %q", b, out)
			}
			_ = c.Request.Digest()
		}
	})
}

// TestRefers checks that a call that refers to data outside it says so.
func TestRefers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		api  API
		body string
		want bool
	}{
		{Chat, `{"model":"m","messages":[{"role":"user","content":"the file_id\" and url\""}]}`, false},
		{Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}`, false},
		{Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]}`, true},
		{Chat, `{"model":"m","messages":[{"role":"assistant","audio":{"id":"a"}}]}`, true},
		{Responses, `{"model":"m","input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}`, true},
		{Responses, `{"model":"m","input":[{"type":"item_reference","id":"i"}]}`, true},
		{Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"document","citations":{"enabled":true},"source":{"type":"url","url":"https://a.example/b.pdf"}}]}]}`, true},
		{Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"words"}}]}]}`, false},
	} {
		c, err := Decode(tt.api, Address{}, []byte(tt.body))
		if err != nil || c.Request.Refers != tt.want {
			t.Errorf("%s: %+v, %v", tt.body, c, err)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: {\"error\":1,\"usage\":{}}\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for raw := range sse.Split(b) {
			e := sse.Parse(raw)
			_, _, _ = Chat.Ends(e), Messages.Fails(e), OnlyUsage(e)
		}
	})
}

// TestCutIDs: only the ids of tool calls and of their results are changed.
func TestCutIDs(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"a~b","id":"a~b"}]}`: ``,
		`{"messages":[{"tool_calls":[{"id":"a"}]}],"id":"a~b"}`:     ``,
		`{"input":["a~b"]}`:  ``,
		`{"messages":"a~b"}`: ``,
		`{"messages": [{"tool_calls":[ {"id" : "a~b", "function":{"name":"f","arguments":"{\"id\":\"a~b\"}"}},{"id":"c\\~d~e"}]}, {"tool_call_id":"a~b","content":"a~b"} ]}`:                                                             `{"messages": [{"tool_calls":[ {"id" : "a", "function":{"name":"f","arguments":"{\"id\":\"a~b\"}"}},{"id":"c\\"}]}, {"tool_call_id":"a","content":"a~b"} ]}`,
		`{"messages":[{"content":[{"type":"tool_use","id":"a~b","input":{"id":"a~b"}},{"id":"a~b","type":"tool_use"},{"type":"tool_result","tool_use_id":"a~b","content":[{"type":"text","text":"a~b"}]},{"type":"text","id":"a~b"}]}]}`: `{"messages":[{"content":[{"type":"tool_use","id":"a","input":{"id":"a~b"}},{"id":"a","type":"tool_use"},{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"a~b"}]},{"type":"text","id":"a~b"}]}]}`,
		`{"input":[{"type":"function_call","id":"a~b","call_id":"a~b"},{"call_id":"a~b","output":"a~b"}]}`:                                                                                                                               `{"input":[{"type":"function_call","id":"a~b","call_id":"a"},{"call_id":"a","output":"a~b"}]}`,
	} {
		if got := string(CutIDs([]byte(body), "~")); got != cmp.Or(want, body) {
			t.Errorf("%s\nbecame %s", body, got)
		}
	}
}

// TestLimitOutput: a call asks for no more tokens than the gateway allows, in every format, and every other byte of its body is as the client
// wrote it.
func TestLimitOutput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		api        API
		body, want string
	}{
		{Chat, `{ "model":"m", "max_tokens" : 64000, "x":[1 ,2]}`, `{ "model":"m", "max_tokens" : 8000, "x":[1 ,2]}`},
		{Chat, `{"model":"m","max_completion_tokens":6.4e4}`, `{"model":"m","max_completion_tokens":8000}`},
		{Chat, `{"model":"m","max_tokens":10,"max_completion_tokens":64000}`, `{"model":"m","max_tokens":10,"max_completion_tokens":8000}`},
		{Chat, `{"model":"m"}`, `{"max_tokens":8000,"model":"m"}`},
		{Chat, `{"model":"m","max_tokens":null}`, `{"model":"m","max_tokens":8000}`},
		{Chat, `{"model":"m","max_tokens":-1}`, `{"model":"m","max_tokens":8000}`},
		{Chat, `{"model":"m","max_tokens":8000}`, `{"model":"m","max_tokens":8000}`},
		{Chat, `{"model":"m","max_tokens":7}`, `{"model":"m","max_tokens":7}`},
		{Responses, `{"model":"m","max_output_tokens":64000,"input":"max_output_tokens"}`, `{"model":"m","max_output_tokens":8000,"input":"max_output_tokens"}`},
		{Responses, `{"model":"m","input":"x"}`, `{"max_output_tokens":8000,"model":"m","input":"x"}`},
		{Messages, `{"model":"m","max_tokens":64000,"thinking":{"type":"enabled","budget_tokens":31999}}`, `{"model":"m","max_tokens":8000,"thinking":{"type":"enabled","budget_tokens":4000}}`},
		{Messages, `{"model":"m","max_tokens":64000,"thinking":{"type":"enabled","budget_tokens":2000}}`, `{"model":"m","max_tokens":8000,"thinking":{"type":"enabled","budget_tokens":2000}}`},
		{Gemini, `{"generationConfig": {"topP":1,"maxOutputTokens":64000}, "contents":[]}`, `{"generationConfig": {"topP":1,"maxOutputTokens":8000}, "contents":[]}`},
		{Gemini, `{"generationConfig":{"topP":1}}`, `{"generationConfig":{"maxOutputTokens":8000,"topP":1}}`},
		{Gemini, `{"generationConfig":null}`, `{"generationConfig":{"maxOutputTokens":8000}}`},
		{Gemini, `{"contents":[]}`, `{"generationConfig":{"maxOutputTokens":8000},"contents":[]}`},
		{Tokens, `{"token_ids":[1],"sampling_params":{"max_tokens":64000}}`, `{"token_ids":[1],"sampling_params":{"max_tokens":8000}}`},
		{Generate, `{"input_ids":[1]}`, `{"sampling_params":{"max_new_tokens":8000},"input_ids":[1]}`},
		{Embeddings, `{"model":"m","input":"x"}`, `{"model":"m","input":"x"}`},
	} {
		at := Address{}
		if c.api.Google() {
			at.Model = "m"
		}
		call, err := Decode(c.api, at, []byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		digest := call.Digest
		call.LimitOutput(0)
		if got := string(call.SetLimit([]byte(c.body), "max_tokens")); got != c.body {
			t.Errorf("without a limit, %s became %s", c.body, got)
		}
		call.LimitOutput(8000)
		if got := string(call.SetLimit([]byte(c.body), "max_tokens")); got != c.want || call.Digest != digest {
			t.Errorf("%s became %s, want %s", c.body, got, c.want)
		}
		if n := call.MaxTokens(); n > 8000 || n == 0 && c.api != Embeddings {
			t.Errorf("%s: %d tokens are set aside", c.body, n)
		}
	}
}
