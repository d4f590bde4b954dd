package dialect_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/llm"
)

// format is the server side of a dialect.
type format struct {
	name   string
	path   string
	read   func(map[string]any) question
	whole  func(reply) string
	stream func(reply) []string // events
}

// question is the part of a request that a fake server reads.
type question struct {
	schema, stream bool
	tool           string // that must be called
	max            int
	stop           string
}

type reply struct {
	text, tool, finish string
	input, output      int
}

func formats() []format {
	return []format{
		{"openai", "/v1/chat/completions", readChat, wholeChat, streamChat},
		{"responses", "/v1/responses", readResponses, wholeResponses, streamResponses},
		{"anthropic", "/v1/messages", readMessages, wholeMessages, streamMessages},
		{"gemini", "/v1beta/models/fake-1:generateContent", readGemini, wholeGemini, streamGemini},
	}
}

// simFormats are the formats of the simulated provider.
func simFormats() []format {
	return append(formats(), format{name: "bedrock", path: "/"})
}

// answerTo returns the answer of a fake server.
func answerTo(q question) reply {
	r := reply{text: "word by word by word", finish: "stop", input: 7, output: 5}
	switch {
	case q.tool != "":
		r.text, r.tool, r.finish = "", q.tool, "tool"
	case q.schema:
		r.text = `{"city":"Rome","people":3}`
	case q.max > 0 && q.max < 5:
		r.text, r.finish = "word", "length"
	case q.stop != "":
		r.text, _, _ = strings.Cut("shoreline", q.stop)
	}
	return r
}

// serve answers like a well-behaved server of the format.
func (f format) serve(w http.ResponseWriter, req *http.Request) {
	var m map[string]any
	path, streamed := req.URL.Path, req.URL.RawQuery == "alt=sse"
	if streamed { // Gemini says it in the path
		path = strings.Replace(path, ":streamG", ":g", 1)
	}
	if err := json.NewDecoder(req.Body).Decode(&m); err != nil || path != f.path {
		http.Error(w, fmt.Sprintf(`{"error":{"message":"bad request to %s: %v"}}`, req.URL.Path, err), http.StatusBadRequest)
		return
	}
	q := f.read(m)
	q.stream, _ = m["stream"].(bool)
	q.stream = q.stream || streamed
	r := answerTo(q)
	if !q.stream {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, f.whole(r))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range f.stream(r) {
		io.WriteString(w, e)
		w.(http.Flusher).Flush()
	}
}

// open returns a model that speaks format f over HTTP to a handler.
func (f format) open(t *testing.T, h http.HandlerFunc, change ...func(*provider.Provider)) llm.Model {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return f.dial(t, srv.URL, change...)
}

// openHTTP2 is open over HTTP/2 without TLS.
func (f format) openHTTP2(t *testing.T, h http.HandlerFunc, change ...func(*provider.Provider)) llm.Model {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return f.dial(t, srv.URL, append(change, func(p *provider.Provider) { p.HTTP2 = true })...)
}

func (f format) dial(t *testing.T, url string, change ...func(*provider.Provider)) llm.Model {
	t.Helper()
	version, _, _ := strings.Cut(f.path[1:], "/")
	p := provider.Provider{Name: "lab", Dialect: f.name, BaseURL: url + "/" + version}
	if f.name == "bedrock" { // PATH stands for a key: it is always set
		p.BaseURL, p.KeyEnv, p.Capabilities = url, "PATH", []provider.Capability{{Match: "*", Schema: true}}
	}
	for _, c := range change {
		c(&p)
	}
	m, err := dialect.Open(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.(io.Closer).Close() })
	return m
}

func at(v any, path ...any) any {
	for _, p := range path {
		switch k := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

func str(v any) string { s, _ := v.(string); return s }
func num(v any) int    { f, _ := v.(float64); return int(f) }

// forced reads OpenAI's tool_choice.
func forced(choice any, name string) string {
	if choice == "required" {
		return "weather"
	}
	return name
}

func readChat(m map[string]any) question {
	return question{
		schema: at(m, "response_format", "json_schema", "schema") != nil,
		tool:   forced(m["tool_choice"], str(at(m, "tool_choice", "function", "name"))),
		max:    max(num(m["max_completion_tokens"]), num(m["max_tokens"])), stop: str(at(m, "stop", 0)),
	}
}

func readResponses(m map[string]any) question {
	return question{
		schema: at(m, "text", "format", "schema") != nil,
		tool:   forced(m["tool_choice"], str(at(m, "tool_choice", "name"))),
		max:    num(m["max_output_tokens"]),
	}
}

func readMessages(m map[string]any) question {
	tool := str(at(m, "tool_choice", "name"))
	if str(at(m, "tool_choice", "type")) == "any" {
		tool = "weather"
	}
	return question{
		schema: at(m, "output_config", "format", "schema") != nil, tool: tool,
		max: num(m["max_tokens"]), stop: str(at(m, "stop_sequences", 0)),
	}
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

const chatUsage = `{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}`

func chatFinish(r reply) string {
	if r.finish == "tool" {
		return "tool_calls"
	}
	return r.finish
}

func wholeChat(r reply) string {
	message := `"content":` + quote(r.text)
	if r.tool != "" {
		message = `"content":null,"tool_calls":[{"id":"call_9","type":"function","function":{"name":` + quote(r.tool) + `,"arguments":"{\"city\":\"Paris\"}"}}]`
	}
	return `{"id":"c1","object":"chat.completion","model":"fake-1","choices":[{"index":0,"message":{"role":"assistant",` + message +
		`},"finish_reason":"` + chatFinish(r) + `"}],"usage":` + chatUsage + `}`
}

func streamChat(r reply) []string {
	chunk := func(delta, finish string) string {
		return `data: {"id":"c1","object":"chat.completion.chunk","model":"fake-1","choices":[{"index":0,"delta":{` + delta + `},"finish_reason":` + finish + "}]}\n\n"
	}
	events := []string{": hello\n\n", chunk(`"role":"assistant","content":""`, "null")}
	if r.tool != "" {
		events = append(events,
			chunk(`"tool_calls":[{"index":0,"id":"call_9","type":"function","function":{"name":`+quote(r.tool)+`,"arguments":""}}]`, "null"),
			chunk(`"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]`, "null"),
			chunk(`"tool_calls":[{"index":0,"function":{"arguments":"\"Paris\"}"}}]`, "null"))
	}
	for _, w := range strings.SplitAfter(r.text, " ") {
		events = append(events, chunk(`"content":`+quote(w), "null"))
	}
	return append(events, chunk("", `"`+chatFinish(r)+`"`),
		`data: {"id":"c1","object":"chat.completion.chunk","model":"fake-1","choices":[],"usage":`+chatUsage+"}\n\n", "data: [DONE]\n\n")
}

func wholeResponses(r reply) string {
	item := `{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":` + quote(r.text) + `,"annotations":[]}]}`
	if r.tool != "" {
		item = `{"type":"function_call","id":"f1","call_id":"call_9","name":` + quote(r.tool) + `,"arguments":"{\"city\":\"Paris\"}","status":"completed"}`
	}
	status := `"status":"completed","incomplete_details":null`
	if r.finish == "length" {
		status = `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`
	}
	return `{"id":"r1","object":"response","model":"fake-1",` + status + `,"error":null,"output":[` + item +
		`],"usage":{"input_tokens":7,"output_tokens":5,"total_tokens":12,"input_tokens_details":{"cached_tokens":2},"output_tokens_details":{"reasoning_tokens":1}}}`
}

func streamResponses(r reply) []string {
	last := "response.completed"
	if r.finish == "length" {
		last = "response.incomplete"
	}
	return []string{
		"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\",\"status\":\"in_progress\"}}\n\n",
		"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":" + quote(r.text) + "}\n\n",
		"event: " + last + "\ndata: {\"type\":\"" + last + "\",\"response\":" + wholeResponses(r) + "}\n\n",
	}
}

func stopReason(r reply) string {
	return map[string]string{"stop": "end_turn", "length": "max_tokens", "tool": "tool_use"}[r.finish]
}

func wholeMessages(r reply) string {
	block := `{"type":"text","text":` + quote(r.text) + `}`
	if r.tool != "" {
		block = `{"type":"tool_use","id":"call_9","name":` + quote(r.tool) + `,"input":{"city":"Paris"}}`
	}
	return `{"id":"a1","type":"message","role":"assistant","model":"fake-1","content":[` + block + `],"stop_reason":"` + stopReason(r) +
		`","stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":2,"cache_read_input_tokens":2,"output_tokens":5,"service_tier":"standard"}}`
}

func streamMessages(r reply) []string {
	event := func(name, data string) string {
		return "event: " + name + "\ndata: {\"type\":\"" + name + "\"" + data + "}\n\n"
	}
	events := []string{
		event("message_start", `,"message":{"id":"a1","type":"message","role":"assistant","model":"fake-1","content":[],"stop_reason":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":2,"cache_read_input_tokens":2,"output_tokens":1,"service_tier":"standard"}}`),
		event("ping", ""),
	}
	if r.tool != "" {
		events = append(events,
			event("content_block_start", `,"index":0,"content_block":{"type":"tool_use","id":"call_9","name":`+quote(r.tool)+`,"input":{}}`),
			event("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}`),
			event("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":"\"Paris\"}"}`))
	} else {
		events = append(events, event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`))
		for _, w := range strings.SplitAfter(r.text, " ") {
			events = append(events, event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":`+quote(w)+`}`))
		}
	}
	return append(events, event("content_block_stop", `,"index":0`),
		event("message_delta", `,"delta":{"stop_reason":"`+stopReason(r)+`","stop_sequence":null},"usage":{"output_tokens":5}`),
		event("message_stop", ""))
}

func readGemini(m map[string]any) question {
	tool := str(at(m, "toolConfig", "functionCallingConfig", "allowedFunctionNames", 0))
	if tool == "" && str(at(m, "toolConfig", "functionCallingConfig", "mode")) == "ANY" {
		tool = "weather"
	}
	return question{
		schema: at(m, "generationConfig", "responseJsonSchema") != nil, tool: tool,
		max: num(at(m, "generationConfig", "maxOutputTokens")), stop: str(at(m, "generationConfig", "stopSequences", 0)),
	}
}

func geminiAnswer(part, finish string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + part + `]},"index":0` + finish + `}],"modelVersion":"fake-1","responseId":"g1",` +
		`"usageMetadata":{"promptTokenCount":7,"cachedContentTokenCount":2,"candidatesTokenCount":4,"thoughtsTokenCount":1,"totalTokenCount":12}}`
}

func geminiFinish(r reply) string {
	if r.finish == "length" {
		return `,"finishReason":"MAX_TOKENS"`
	}
	return `,"finishReason":"STOP"`
}

func wholeGemini(r reply) string {
	if r.tool != "" {
		return geminiAnswer(`{"functionCall":{"id":"call_9","name":`+quote(r.tool)+`,"args":{"city":"Paris"}}}`, geminiFinish(r))
	}
	return geminiAnswer(`{"text":`+quote(r.text)+`}`, geminiFinish(r))
}

func streamGemini(r reply) (events []string) {
	if r.tool != "" {
		return []string{"data: " + wholeGemini(r) + "\r\n\r\n"}
	}
	for _, w := range strings.SplitAfter(r.text, " ") {
		events = append(events, "data: "+geminiAnswer(`{"text":`+quote(w)+`}`, "")+"\r\n\r\n")
	}
	return append(events, "data: "+geminiAnswer(`{"text":""}`, geminiFinish(r))+"\r\n\r\n")
}
