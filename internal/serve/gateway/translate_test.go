package gateway

import (
	"net/http"
	"strings"
	"testing"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/transport"
	"parley/internal/kit/sse"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

const (
	chatTools = `,"tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}}}],"tool_choice":"required"`
	tools     = `,"tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}}],"tool_choice":{"type":"any"}`
)

// read reads an answer as a client of a format does.
func read(t *testing.T, api format.API, stream bool, body string) *llm.Response {
	t.Helper()
	codec, _ := dialect.Codec(api.Dialect())
	if !stream {
		r, err := codec.Decode([]byte(body))
		if err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return r
	}
	return gathered(t, codec.Assemble(), body)
}

func gathered(t *testing.T, a transport.Assembler, body string) *llm.Response {
	t.Helper()
	for e := range sse.Split([]byte(body)) {
		if _, err := a.Event(sse.Parse(e)); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
	r, err := a.Response()
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return r
}

// TestTranslates asks a provider of the other format, whole and streamed, with and without tools: the client
// reads the same answer in its own format.
func TestTranslates(t *testing.T) {
	t.Parallel()
	url := simulated(t, sim.Config{})
	for _, c := range []struct {
		api      format.API
		dialect  string // of the provider
		path     string
		ask      func(model, question string, more ...string) string
		tools    string
		streamed string
	}{
		{format.Chat, "anthropic", "/v1/s/chat/completions", chatOf, chatTools, `,"stream":true,"stream_options":{"include_usage":true}`},
		{format.Messages, "openai", "/v1/s/messages", messageOf, tools, streamed},
	} {
		l := start(t, Config{Upstreams: []provider.Provider{upstream(c.dialect, url)}})
		for _, more := range []string{"", c.tools} {
			for _, stream := range []string{"", c.streamed} {
				got := l.post(c.path, c.ask("m", "hello", more, stream), "Anthropic-Version", "2023-06-01").want(t, 200)
				r := read(t, c.api, stream != "", got.body)
				if (more != "") != (len(r.ToolCalls) > 0) || (r.Text == "") == (more == "") || r.Usage.Input == 0 || r.Usage.Output == 0 || r.Model != "m" {
					t.Errorf("%s on %s%s%s: %+v\n%s", c.api, c.dialect, more, stream, r, got.body)
				}
				if more != "" && (r.Finish != llm.FinishTools || r.ToolCalls[0].Name != "look" || r.ToolCalls[0].ID == "" || !strings.HasPrefix(r.ToolCalls[0].Arguments, "{")) {
					t.Errorf("%+v", r)
				}
			}
		}
		calls := l.calls("s")
		if len(calls) != 4 {
			t.Fatalf("%d calls", len(calls))
		}
		whole, flow := calls[0], calls[1]
		if whole.Response.Text != flow.Response.Text || whole.Response.Text == "" || whole.Request.Model != c.dialect+"/m" {
			t.Errorf("%+v\n%+v", whole.Response, flow.Response)
		}
	}
}

// TestTranslatesTurns checks that nothing of a conversation with tools, images and a schema is lost in the
// other format.
func TestTranslatesTurns(t *testing.T) {
	t.Parallel()
	up := script(answering(200, `{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"text","text":"Yes."}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}`))
	l := start(t, Config{Upstreams: []provider.Provider{upstream("anthropic", serving(t, up))}})
	got := l.post("/v1/chat/completions", `{"model":"m","max_tokens":50,"stop":"END","user":"u","store":true,"messages":[
		{"role":"system","content":"Be brief."},
		{"role":"user","content":[{"type":"text","text":"See:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"at\":\"it\"}"}}]},
		{"role":"tool","tool_call_id":"call_1","content":"A cat."}]`+chatTools+`}`)
	got.want(t, 200, `"content":"Yes."`, `"reasoning_content":"Hm."`, `"finish_reason":"stop"`)
	if d := got.header.Get("X-Parley-Dropped"); d != "store,user" {
		t.Errorf("dropped %q", d)
	}
	if c := recorded(t, l.file, sessionDefault); strings.Join(c[0].Response.Dropped, ",") != "store,user" {
		t.Errorf("%+v", c[0].Response)
	}
	for _, want := range []string{
		`"system":[{"type":"text","text":"Be brief."}]`, `"stop_sequences":["END"]`, `"max_tokens":50`, `"media_type":"image/png","data":"AAAA"`, `"media_type":"application/pdf","data":"JVBERi0="},"title":"a.pdf"`,
		`{"type":"tool_use","id":"call_1","name":"look","input":{"at":"it"}}`, `"tool_use_id":"call_1"`, `"text":"A cat."`, `"input_schema":{"type":"object"`, `"tool_choice":{"type":"any"}`,
	} {
		if !strings.Contains(up.seen[0], want) {
			t.Errorf("want %s in %s", want, up.seen[0])
		}
	}
	if h := up.heads[0]; h.Get("Anthropic-Version") == "" || h.Get("Authorization") != "" {
		t.Errorf("%v", h)
	}
	for body, why := range map[string]string{
		`{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`:                             "cannot be said in the format of anthropic: messages[0].content of type input_audio",
		`{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"SUQz","format":"mp3"}}]}]}`: "messages[0].content[0], audio (audio/mp3, 3 bytes), cannot be sent",
		chatOf("m", "hi", `,"n":2`): "one answer a call",
	} {
		l.post("/v1/chat/completions", body).want(t, 400, why)
	}
	l.post("/v1/responses", `{"model":"m","input":"hi"}`).want(t, 400, "cannot be translated")
}

// TestTranslatesErrors checks that errors, whole and in a stream, arrive in the client's format.
func TestTranslatesErrors(t *testing.T) {
	t.Parallel()
	up := script(
		answering(400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`),
		func(w http.ResponseWriter, r *http.Request) {
			events(chunk("so"), `{"error":{"message":"out of luck"}}`)(w, r)
		})
	l := start(t, Config{Upstreams: []provider.Provider{upstream("openai", serving(t, up))}})
	l.post("/v1/messages", messageOf("m", "hi")).want(t, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"too long"}`)
	got := l.post("/v1/messages", messageOf("m", "hi", streamed)).want(t, 200, "event: message_start", `"text":"so"`, "event: error", "out of luck")
	if strings.Contains(got.body, "message_stop") {
		t.Errorf("it looks whole: %s", got.body)
	}
}
