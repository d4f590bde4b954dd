package gemini

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/ask/wire/wiretest"
	"parley/llm"
)

// talk is a request with everything that the format has.
func talk() *llm.Request {
	k, seed := 40, int64(7)
	return &llm.Request{
		Model: "gemini/m", MaxTokens: 100, Temperature: new(0.5), TopP: new(0.9), TopK: &k, Seed: &seed, FrequencyPenalty: new(1.0), PresencePenalty: new(-1.0), Stop: []string{"END"},
		Logprobs: true, TopLogprobs: 2, Effort: llm.EffortHigh, Tier: "flex", ToolChoice: "f",
		Tools:  []llm.Tool{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Schema: &llm.Schema{Name: "answer", JSON: json.RawMessage(`{"type":"object"}`)},
		Messages: []llm.Message{
			llm.System("be \"brief\""),
			{Role: llm.RoleUser, Parts: []llm.Part{{Text: "look"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte("png")}}, {Image: &llm.Image{URL: "https://x/y.png"}}}},
			{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "well"}}, Thoughts: []llm.Thought{{ID: textID, Signature: "S0"}, {ID: "c1", Signature: "S1"}},
				ToolCalls: []llm.ToolCall{{ID: "c1", Name: "f", Arguments: `{"x":1}`}, {ID: "c2", Name: "f", Arguments: `{"x":2}`}}},
			llm.ToolResult("c1", `{"y":2}`), {Role: llm.RoleTool, ToolCallID: "c2", ToolFailed: true, Parts: []llm.Part{{Text: "no"}}},
		},
	}
}

const written = `{"systemInstruction":{"parts":[{"text":"be \"brief\""}]},"contents":[` +
	`{"role":"user","parts":[{"text":"look"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}},{"fileData":{"fileUri":"https://x/y.png"}}]},` +
	`{"role":"model","parts":[{"text":"well","thoughtSignature":"S0"},{"functionCall":{"id":"c1","name":"f","args":{"x":1}},"thoughtSignature":"S1"},{"functionCall":{"id":"c2","name":"f","args":{"x":2}}}]},` +
	`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"y":2}}},{"functionResponse":{"id":"c2","name":"f","response":{"error":"no"}}}]}],` +
	`"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object"}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},` +
	`"generationConfig":{"maxOutputTokens":100,"temperature":0.5,"topP":0.9,"topK":40,"frequencyPenalty":1,"presencePenalty":-1,"seed":7,"stopSequences":["END"],"responseLogprobs":true,"logprobs":2,` +
	`"responseMimeType":"application/json","responseJsonSchema":{"type":"object"},"thinkingConfig":{"thinkingLevel":"HIGH","includeThoughts":true}},"serviceTier":"flex"}`

// TestRequest checks what is sent, and that the simulated provider reads the same request from it.
func TestRequest(t *testing.T) {
	t.Parallel()
	req := talk()
	b, dropped, err := AppendRequest(nil, req, provider.Capability{Efforts: []string{"low", "high"}}, true)
	if err != nil || len(dropped) > 0 || string(b) != written {
		t.Fatalf("%v %v\n%s, want\n%s", dropped, err, b, written)
	}
	var r request.Reader
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"systemInstruction", "contents", "tools", "toolConfig", "generationConfig", "serviceTier"} {
		if !ReadMember(&r, key, members[key]) {
			t.Errorf("%s is not read", key)
		}
	}
	want, got := *req, r.Request
	want.Model, want.Refers = "", true // what is at an address without a media type may be a video
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read as\n%+v, want\n%+v", got, want)
	}
}

// TestDropped checks what is left out for a model that refuses it, and how older models think.
func TestDropped(t *testing.T) {
	t.Parallel()
	req := talk()
	req.Effort, req.OneTool, req.TokenIDs = llm.EffortMedium, true, true
	b, dropped, err := AppendRequest(nil, req, provider.Capability{
		NoSampling: true, NoSeed: true, NoStop: true, NoSchema: true, NoForce: true, NoLogprobs: true, Thinking: provider.ThinkingBudget, Efforts: []string{"none", "medium"},
	}, false)
	if err != nil || !strings.HasSuffix(string(b), `"generationConfig":{"maxOutputTokens":100,"thinkingConfig":{"thinkingBudget":8192,"includeThoughts":true}},"serviceTier":"flex"}`) {
		t.Errorf("%v %s", err, b)
	}
	if want := "tool_choice temperature top_p top_k frequency_penalty presence_penalty seed stop logprobs schema token_ids one_tool"; strings.Join(dropped, " ") != want {
		t.Errorf("dropped %v, want %s", dropped, want)
	}
}

// TestContents checks conversations that the format has in another form.
func TestContents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		messages []llm.Message
		want     string
	}{
		{[]llm.Message{llm.System("a"), llm.System("b")}, `"contents":[{"role":"user","parts":[{"text":"a"},{"text":"b"}]}]`},
		{[]llm.Message{llm.Assistant("a"), llm.User("")}, `"contents":[{"role":"user","parts":[{"text":"(The conversation begins.)"}]},{"role":"model","parts":[{"text":"a"}]}]`},
		{[]llm.Message{llm.User("a"), llm.User("b"), llm.Assistant("c")}, `"contents":[{"role":"user","parts":[{"text":"a"},{"text":"b"}]},{"role":"model","parts":[{"text":"c"}]}]`},
		{[]llm.Message{llm.User("a"), {Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "f", Arguments: "{"}}}, llm.ToolResult("1", "x")},
			`"functionCall":{"id":"1","name":"f","args":{"malformed":"{"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"result":"x"}}}]}]`},
	} {
		b, _, err := AppendRequest(nil, &llm.Request{Model: "g/m", Messages: c.messages}, provider.Capability{}, false)
		if err != nil || !json.Valid(b) || !strings.Contains(string(b), c.want) {
			t.Errorf("%v: %s, want %s", err, b, c.want)
		}
	}
	if got := Path("a b/c", false) + " " + Path("m", true) + " " + CountPath("m"); got != "/models/a%20b%2Fc:generateContent /models/m:streamGenerateContent?alt=sse /models/m:countTokens" {
		t.Error(got)
	}
	stored := &llm.Request{Model: "g/m", Messages: []llm.Message{llm.System("s"), llm.User("a")}, Extra: map[string]json.RawMessage{"cachedContent": json.RawMessage(`"cachedContents/1"`)}}
	if b, _, err := AppendRequest(nil, stored, provider.Capability{}, false); err != nil || string(b) != `{"contents":[{"role":"user","parts":[{"text":"s"},{"text":"a"}]}],"generationConfig":{},"cachedContent":"cachedContents/1"}` {
		t.Errorf("%s %v", b, err)
	}
	stored.Tools = []llm.Tool{{Name: "f"}}
	if _, _, err := AppendRequest(nil, stored, provider.Capability{}, false); err == nil || !strings.Contains(err.Error(), "cached_content") {
		t.Errorf("tools beside cached content: %v", err)
	}
	for _, extra := range []string{"contents", "generationConfig"} {
		req := &llm.Request{Model: "g/m", Messages: []llm.Message{llm.User("a")}, Extra: map[string]json.RawMessage{extra: json.RawMessage(`{}`)}}
		if _, _, err := AppendRequest(nil, req, provider.Capability{}, false); err == nil {
			t.Errorf("extra may replace %s", extra)
		}
	}
}

// TestReads checks what a Reader holds of requests that AppendRequest does not write, and what it notes or leaves to its caller.
func TestReads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, value string
		held       bool
		strange    string
		want       func(r *request.Reader) bool
	}{
		{"contents", `[{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g"}},{"functionCall":{"name":"f"}}]},
			{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"result":"G"}}},{"functionResponse":{"name":"f","response":{"result":"1"}}},{"functionResponse":{"name":"f","response":{"result":"2"}}}]}]`, true, "",
			func(r *request.Reader) bool { // ids are made for calls and results that have none
				m := r.Request.Messages
				c := m[0].ToolCalls
				return len(m) == 4 && c[0].ID != c[1].ID && c[0].ID != c[2].ID && m[1].ToolCallID == c[1].ID && m[2].ToolCallID == c[0].ID && m[3].ToolCallID == c[2].ID && m[3].Text() == "2"
			}},
		{"contents", `[{"role":"model","parts":[{"text":"hm","thought":true},{"text":"Yes."}]}]`, true, "",
			func(r *request.Reader) bool {
				return r.Request.Messages[0].Text() == "Yes." && r.Request.Messages[0].Thoughts[0].Text == "hm"
			}},
		{"contents", `[{"parts":[{"inlineData":{"mimeType":"video/mp4","data":"AAAA"}}]}]`, true, "contents[0]", func(r *request.Reader) bool { return r.Audio }},
		{"contents", `[{"parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"https://x/files/1"}}]}]`, true, "contents[0]", func(r *request.Reader) bool { return r.Audio && r.Request.Refers }},
		{"contents", `[{"parts":[{"fileData":{"mimeType":"image/png","fileUri":"https://x/y.png"}}]}]`, true, "", func(r *request.Reader) bool { return !r.Request.Refers }},
		{"contents", `[{"parts":[{"functionResponse":{"id":"1","name":"f","response":{},"parts":[{"inlineData":{"data":"AAAA"}}]}}]}]`, true, "contents[0].parts of a functionResponse", func(r *request.Reader) bool { return r.Unread > 20 }},
		{"systemInstruction", `{"parts":{"text":"Be brief."}}`, false, "systemInstruction", nil},
		{"tools", `[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}]`, false, "tool googleSearch", func(r *request.Reader) bool { return len(r.Request.Tools) == 1 }},
		{"toolConfig", `{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","g"]}}`, false, "", func(r *request.Reader) bool { return r.Request.ToolChoice == "required" }},
		{"toolConfig", `{"functionCallingConfig":{"mode":"VALIDATED"}}`, false, "", nil},
		{"generationConfig", `{"candidateCount":3,"maxOutputTokens":5}`, true, "", func(r *request.Reader) bool { return r.Choices == 3 && r.Request.MaxTokens == 5 }},
		{"generationConfig", `{"responseModalities":["IMAGE"],"maxOutputTokens":5}`, false, "", func(r *request.Reader) bool { return r.Request.MaxTokens == 5 }},
		{"generationConfig", `{"responseMimeType":"application/json"}`, false, "", nil},
		{"generationConfig", `{"thinkingConfig":{"thinkingBudget":5000}}`, false, "", func(r *request.Reader) bool { return r.Request.Effort == llm.EffortMedium }},
		{"generationConfig", `{"thinkingConfig":{"includeThoughts":true}}`, false, "", nil},
	} {
		var r request.Reader
		if held := ReadMember(&r, c.key, []byte(c.value)); held != c.held || strings.Join(r.Strange, " ") != c.strange || c.want != nil && !c.want(&r) {
			t.Errorf("%s: held is %v, strange %q: %+v", c.value, held, r.Strange, r)
		}
	}
	for call, want := range map[string]string{"m:generateContent": "m generateContent", "qwen3:8b:countTokens": "qwen3:8b countTokens", "m": "m "} {
		if model, method := SplitCall(call); model+" "+method != want {
			t.Errorf("%s: %s %s", call, model, method)
		}
	}
	const refused = `{"error":{"code":402,"message":"no","status":"FAILED_PRECONDITION","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"budget"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1s"}]}}`
	if got := string(AppendError(nil, openai.Error{Type: Status(402), Code: "402", Message: "no", Reason: "budget", Param: "1s"})); got != refused {
		t.Error(got)
	}
}

// TestAnswers checks the reading of whole answers.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer string
		want         llm.Response
	}{
		{"thoughts", `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"Hi","thoughtSignature":"S"}],"role":"model"},"finishReason":"STOP"}],
			"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":1,"cachedContentTokenCount":4,"candidatesTokenCount":2,"thoughtsTokenCount":3,"serviceTier":"flex"},"modelVersion":"m-1","responseId":"r"}`,
			llm.Response{Text: "Hi", Thoughts: []llm.Thought{{Text: "hm"}, {ID: textID, Signature: "S"}}, Finish: llm.FinishStop, Usage: llm.Usage{Input: 11, Cached: 4, Output: 5, Reasoning: 3}, Model: "m-1", ID: "r", Tier: "flex"}},
		{"calls", `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"},"thoughtSignature":"S"},{"functionCall":{"id":"x","name":"g","args":{"a":1}}}]},"finishReason":"STOP"}]}`,
			llm.Response{Finish: llm.FinishTools, ToolCalls: []llm.ToolCall{{ID: "call-0", Name: "f", Arguments: "{}"}, {ID: "x", Name: "g", Arguments: `{"a":1}`}}, Thoughts: []llm.Thought{{ID: "call-0", Signature: "S"}}}},
		{"several", `{"candidates":[{"index":1,"content":{"parts":[{"text":"B"}]},"finishReason":"MAX_TOKENS"},{"index":0,"content":{"parts":[{"text":"A"}]},"finishReason":"STOP"}]}`, llm.Response{Text: "A", Finish: llm.FinishStop}},
		{"cut", `{"candidates":[{"finishReason":"MAX_TOKENS"}]}`, llm.Response{Finish: llm.FinishLength}},
		{"unsafe", `{"candidates":[{"content":{"parts":[{"text":"I"}]},"finishReason":"SAFETY","finishMessage":"no"}]}`, llm.Response{Text: "I", Finish: llm.FinishRefused, Refusal: "the answer was blocked: SAFETY no"}},
		{"blocked", `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}`,
			llm.Response{Finish: llm.FinishRefused, Refusal: "the prompt was blocked: PROHIBITED_CONTENT", Usage: llm.Usage{Input: 3}}},
		{"logprobs", `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","logprobsResult":{"topCandidates":[{"candidates":[{"token":"a","tokenId":5,"logProbability":-0.1},{"token":"b","logProbability":-2}]}],"chosenCandidates":[{"token":"a","tokenId":5,"logProbability":-0.1}]}}]}`,
			llm.Response{Text: "a", Finish: llm.FinishStop, Logprobs: []llm.Logprob{{Token: "a", ID: 5, Logprob: -0.1, Top: []llm.Logprob{{Token: "a", ID: 5, Logprob: -0.1}, {Token: "b", Logprob: -2}}}}}},
	} {
		got, err := DecodeResponse([]byte(c.answer))
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %v\n%+v, want\n%+v", c.name, err, got, c.want)
		}
	}
}

// TestBadAnswers: what is incomplete or not an answer is an error of the right kind.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]llm.Kind{
		``: llm.KindMalformed, `7`: llm.KindMalformed, `{}`: llm.KindMalformed, `{"candidates":[]}`: llm.KindMalformed,
		`{"candidates":[{"content":{"parts":[{"text":"half"}]}}]}`:                                    llm.KindMalformed,
		`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"\u001b[2J"}]}`:     llm.KindMalformed,
		`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`:          llm.KindOverloaded,
		`[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}]`:                    llm.KindRateLimited,
		`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":"many"}}`:        llm.KindMalformed,
		`{"candidates":[{"finishReason":"STOP","content":{"parts":[{"functionCall":{"name":[]}}]}}]}`: llm.KindMalformed,
	} {
		r, err := DecodeResponse([]byte(answer))
		if llm.KindOf(err) != want || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %+v, %v, want %s", answer, r, err, want)
		}
	}
	r, err := DecodeResponse([]byte(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":-5,"candidatesTokenCount":9}}`))
	if err != nil || r.Usage.Input >= 0 {
		t.Errorf("an impossible count is hidden: %+v, %v", r, err)
	}
}

// TestStream checks that a stream that the simulated provider writes is read as the whole answer is.
func TestStream(t *testing.T) {
	t.Parallel()
	r := &llm.Response{
		Text: "one two", Thoughts: []llm.Thought{{Text: "hm"}}, Finish: llm.FinishTools, Model: "m", ID: "i", Usage: llm.Usage{Input: 9, Cached: 3, Output: 5, Reasoning: 1},
		ToolCalls: []llm.ToolCall{{ID: "c", Name: "f", Arguments: `{"x":1}`}},
	}
	meta := openai.Meta{ID: "i", Model: "m", Prompt: llm.Usage{Input: 9, Cached: 3}}
	whole, err := DecodeResponse(AppendResponse(nil, meta, r))
	if err != nil || !reflect.DeepEqual(whole, r) {
		t.Errorf("%v\n%+v, want\n%+v", err, whole, r)
	}
	var events []string
	for block := range strings.SplitSeq(strings.TrimSpace(string(openai.AppendStream(nil, NewWriter(meta), r))), "\n\n") {
		events = append(events, strings.TrimPrefix(block, "data: "))
	}
	streamed, err := wiretest.Assemble(new(Assembler), wiretest.Data(events...)...)
	if err != nil || !reflect.DeepEqual(streamed, r) {
		t.Errorf("%v\n%+v, want\n%+v", err, streamed, r)
	}
	if _, err := wiretest.Assemble(new(Assembler), wiretest.Data(events[:len(events)-1]...)...); llm.KindOf(err) != llm.KindMalformed {
		t.Errorf("a stream without its end: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`))
	f.Add([]byte(written))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := DecodeResponse(b); (r == nil) == (err == nil) {
			t.Errorf("%v and %v", r, err)
		}
		var r request.Reader
		for _, key := range []string{"systemInstruction", "contents", "tools", "toolConfig", "generationConfig"} {
			if json.Valid(b) {
				ReadMember(&r, key, b)
			}
		}
	})
}
