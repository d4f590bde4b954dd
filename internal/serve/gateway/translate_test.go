package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/gemini"
	"parley/internal/kit/sse"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

const (
	chatTools = `,"tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}}}],"tool_choice":"required"`
	tools     = `,"tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}}],"tool_choice":{"type":"any"}`
)

const inputTools = `,"tools":[{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}}],"tool_choice":"required"`

// inputOf returns the body of a call of responses.
func inputOf(model, question string, more ...string) string {
	return fmt.Sprintf(`{"model":%q,"input":%q%s}`, model, question, strings.Join(more, ""))
}

// readAnswer reads an answer as a client of a format does.
func readAnswer(t *testing.T, api format.API, stream bool, body string) *llm.Response {
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
		{format.Responses, "anthropic", "/v1/s/responses", inputOf, inputTools, streamed},
	} {
		l := start(t, Config{Upstreams: []provider.Provider{upstream(c.dialect, url)}})
		for _, more := range []string{"", c.tools} {
			for _, stream := range []string{"", c.streamed} {
				got := l.post(c.path, c.ask("m", "hello", more, stream), "Anthropic-Version", "2023-06-01").want(t, 200)
				r := readAnswer(t, c.api, stream != "", got.body)
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
	if c := recorded(t, l.file, defaultSession); strings.Join(c[0].Response.Dropped, ",") != "store,user" {
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

// clouds returns presets of clouds at a simulated server, each with a key of its own.
func clouds(t *testing.T, url string) map[string]provider.Provider {
	t.Helper()
	for name, value := range map[string]string{
		"PARLEY_CLOUD_KEY": "hunter2-cloud", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "hunter2-secret", "AWS_SESSION_TOKEN": "hunter2-session",
	} {
		t.Setenv(name, value)
	}
	url = strings.TrimSuffix(url, "/v1")
	all := map[string]provider.Provider{}
	for _, c := range []struct{ name, preset, path, version string }{
		{"azure", "azure", "/openai/v1", ""}, {"azure-old", "azure", "/openai", "2024-10-21"}, {"gemini", "gemini", "/v1beta", ""},
		{"vertex", "vertex", "/v1/projects/p/locations/l/publishers/google", ""}, {"vertex-anthropic", "vertex-anthropic", "/v1/projects/p/locations/l/publishers/anthropic", provider.VertexVersion},
		{"bedrock", "bedrock", "", ""},
	} {
		p, ok := provider.Lookup(c.preset)
		if !ok {
			t.Fatal(c.preset)
		}
		p.DropKey()
		p.Name, p.BaseURL, p.APIVersion, p.Batch = c.name, url+c.path, c.version, nil
		if p.Dialect != "bedrock" { // whose requests are signed
			p.KeyEnv = "PARLEY_CLOUD_KEY"
		}
		all[c.name] = p
	}
	return all
}

// TestClouds asks accounts at Azure, Google and AWS in both formats of clients, whole and streamed, with and without tools.
func TestClouds(t *testing.T) {
	for name, p := range clouds(t, simulated(t, sim.Config{})) {
		l := start(t, Config{Upstreams: []provider.Provider{p}})
		for _, c := range []struct {
			api      format.API
			ask      func(model, question string, more ...string) string
			tools    string
			streamed string
		}{
			{format.Chat, chatOf, chatTools, `,"stream":true,"stream_options":{"include_usage":true}`},
			{format.Messages, messageOf, tools, streamed},
			{format.Responses, inputOf, inputTools, streamed},
		} {
			for _, more := range []string{"", c.tools} {
				for _, stream := range []string{"", c.streamed} {
					got := l.post("/v1/s"+c.api.Path(), c.ask("m", "hello", more, stream), "Anthropic-Version", "2023-06-01", "Authorization", "Bearer of-the-client").want(t, 200)
					r := readAnswer(t, c.api, stream != "", got.body)
					if (more != "") != (len(r.ToolCalls) > 0) || (r.Text == "") == (more == "") || r.Usage.Input == 0 || r.Usage.Output == 0 {
						t.Errorf("%s at %s%s%s: %+v\n%s", c.api, name, more, stream, r, got.body)
					}
					if strings.Contains(got.body, "hunter2") {
						t.Errorf("%s: %s", name, got.body)
					}
				}
			}
		}
		if calls := l.calls("s"); len(calls) != 12 || calls[0].Response.Text != calls[1].Response.Text || calls[0].Response.Text == "" {
			t.Errorf("%s: %d calls", name, len(calls))
		}
	}
}

// TestCloudsTurns: a conversation with tools goes on in the format of each account, and Gemini gets its signatures back.
func TestCloudsTurns(t *testing.T) {
	const google = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"look","args":{"at":"it"}},"thoughtSignature":"SIG+/="}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}`
	for _, stream := range []bool{false, true} {
		up := script(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.String(), "alt=sse") != stream {
				t.Errorf("%s", r.URL)
			}
			if stream {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: %s\n\n", google)
				return
			}
			answering(200, google)(w, r)
		})
		l := start(t, Config{Upstreams: []provider.Provider{upstream("gemini", serving(t, up))}})
		more := chatTools
		if stream {
			more += streamed
		}
		first := readAnswer(t, format.Chat, stream, l.post("/v1/chat/completions", chatOf("m", "hello", more)).want(t, 200).body)
		if len(first.ToolCalls) != 1 || first.ToolCalls[0].Name != "look" || first.Finish != llm.FinishTools {
			t.Fatalf("%+v", first)
		}
		id := first.ToolCalls[0].ID
		l.post("/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"hello"},
			{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"look","arguments":"{\"at\":\"it\"}"}}]},
			{"role":"tool","tool_call_id":%q,"content":"A cat."}]%s}`, id, id, more)).want(t, 200)
		if body := up.seen[1]; !strings.Contains(body, `"thoughtSignature":"SIG+/="`) || strings.Contains(body, markOf(id)) || !strings.Contains(body, "A cat.") {
			t.Error(body)
		}
	}
}

// TestCloudsSwitch: a conversation that began with Gemini goes on elsewhere without the signatures, in the client's own format or
// in another, and nothing else in it changes.
func TestCloudsSwitch(t *testing.T) {
	const id, text = "call_1~thought~SIG+/=", "about ~thought~ in ids"
	chat := fmt.Sprintf(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%q},
		{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"look","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":%q,"content":"A cat."}]}`, text, id, id)
	message := fmt.Sprintf(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%q},
		{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"look","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"A cat."}]}]}`, text, id, id)
	for _, dialect := range []string{"openai", "anthropic"} {
		up := script(answering(400, `{"error":{"message":"no"}}`))
		l := start(t, Config{Upstreams: []provider.Provider{upstream(dialect, serving(t, up))}, Settings: limited(0, 0)})
		for api, body := range map[format.API]string{format.Chat: chat, format.Messages: message, format.Count: message} {
			if api == format.Count && dialect != "anthropic" {
				continue
			}
			l.post("/v1"+api.Path(), body, "Anthropic-Version", "2023-06-01").want(t, 400)
			if got := up.seen[up.count()-1]; strings.Count(got, `"call_1"`) != 2 || strings.Contains(got, "SIG") || !strings.Contains(got, text) {
				t.Errorf("%s to %s: %s", api, dialect, got)
			}
		}
	}
}

// TestCloudsTier: Vertex AI gets the service tier in its header, if it is another than the usual one.
func TestCloudsTier(t *testing.T) {
	up := script(answering(400, `{"error":{"message":"no"}}`))
	l := start(t, Config{Upstreams: []provider.Provider{clouds(t, serving(t, up))["vertex"]}, Settings: limited(0, 0)})
	l.post("/v1/chat/completions", chatOf("m", "hi", `,"service_tier":"flex"`)).want(t, 400)
	l.post("/v1/chat/completions", chatOf("m", "hi", `,"service_tier":"auto"`)).want(t, 400)
	if flex, auto := up.heads[0].Get(gemini.TierHeader), up.heads[1][gemini.TierHeader]; flex != "flex" || auto != nil {
		t.Errorf("the headers have the tiers %q and %q", flex, auto)
	}
}

// markOf returns the part of an id that only the gateway may see.
func markOf(id string) string {
	_, after, _ := strings.Cut(id, "~")
	return "~" + after
}

// TestCloudsRefuse: what an account cannot answer is refused with a reason, and its errors have the format of the client.
func TestCloudsRefuse(t *testing.T) {
	up := script(answering(400, `{"message":"hunter2-session is too long"}`, "X-Amzn-Errortype", "ValidationException"))
	all := clouds(t, serving(t, up))
	l := start(t, Config{Upstreams: []provider.Provider{all["bedrock"], all["vertex-anthropic"], all["gemini"], all["vertex"]}, Settings: limited(0, 0)})
	for _, account := range []string{"bedrock", "vertex-anthropic", "gemini", "vertex"} {
		for api, advice := range map[format.API]string{format.Embeddings: "route the model to a provider that has embeddings"} {
			got := l.post("/v1"+api.Path(), `{"model":"`+account+`/m","input":"hi"}`).want(t, 400)
			var e struct {
				Error struct{ Message, Type, Code string }
			} // as OpenAI writes it
			want := string(api) + " cannot be translated to the format of " + account + ": " + advice
			if err := json.Unmarshal([]byte(got.body), &e); err != nil || !strings.Contains(e.Error.Message, want) || e.Error.Type == "" {
				t.Errorf("%v: %s, want %s", err, got.body, want)
			}
		}
	}
	l.post("/v1/messages", messageOf("bedrock/m", "hi")).want(t, 400, `"type":"invalid_request_error","message":"[key] is too long"`)
	l.post("/v1/chat/completions", chatOf("bedrock/m", "hi")).want(t, 400, `"message":"[key] is too long"`)
	if h := up.heads[0]; !strings.HasPrefix(h.Get("Authorization"), "AWS4-HMAC-SHA256 ") || h.Get("X-Amz-Security-Token") == "" {
		t.Errorf("%v", h)
	}
	l.post("/v1/messages/count_tokens", messageOf("vertex-anthropic/m", "hi")).want(t, 200, `{"input_tokens":`)
	l.post("/v1/models", "").want(t, 404, "does not have this")
	if up.count() != 2 {
		t.Errorf("%d calls", up.count())
	}
}
