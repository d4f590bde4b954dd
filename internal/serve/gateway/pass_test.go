package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/llm"
)

// anthropicVersion is the header that Anthropic's API wants.
func anthropicVersion() []string { return []string{"Anthropic-Version", "2023-06-01"} }

// tee records what a provider sends.
type tee struct {
	http.Handler
	mu   sync.Mutex
	last bytes.Buffer
}

func (p *tee) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.last.Reset()
	p.mu.Unlock()
	p.Handler.ServeHTTP(&teeWriter{w, p}, r)
}

type teeWriter struct {
	http.ResponseWriter
	p *tee
}

func (w *teeWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	w.p.last.Write(b)
	w.p.mu.Unlock()
	return w.ResponseWriter.Write(b)
}

func (w *teeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (p *tee) sent() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.String()
}

// TestPassesThrough checks on every endpoint and kind of path that the client gets the provider's bytes and
// status.
func TestPassesThrough(t *testing.T) {
	t.Parallel()
	server, err := simhttp.New(simhttp.Config{Lax: true, ChunkTokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := &tee{Handler: server}
	l := start(t, Config{Upstreams: both(serving(t, p))})
	tools := `,"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}}],"tool_choice":"required"`
	const used = `,"stream":true,"stream_options":{"include_usage":true}`
	for _, c := range []struct {
		name, path, body string
		status           int
	}{
		{"chat", "/chat/completions", chatOf("m", "hello"), 200},
		{"chat-stream", "/chat/completions", chatOf("m", "hello", used), 200},
		{"chat-tools", "/chat/completions", chatOf("m", "hello", tools), 200},
		{"chat-tools-stream", "/chat/completions", chatOf("m", "hello", tools, used), 200},
		{"chat-logprobs", "/chat/completions", chatOf("m", "hello", `,"logprobs":true,"top_logprobs":2`), 200},
		{"chat-unknown", "/chat/completions", chatOf("m", "hello", `,"no_such_field":{"a":[1, 2]}`), 200},
		{"chat-refused", "/chat/completions", `{"model":"m","messages":[]}`, 400},
		{"responses", "/responses", `{"model":"m","input":"hello"}`, 200},
		{"responses-stream", "/responses", `{"model":"m","input":"hello","stream":true}`, 200},
		{"embeddings", "/embeddings", `{"model":"m","input":["a","b"]}`, 200},
		{"messages", "/messages", messageOf("m", "hello"), 200},
		{"messages-stream", "/messages", messageOf("m", "hello", streamed), 200},
		{"messages-refused", "/messages", chatOf("m", "hello"), 400},
		{"count", "/messages/count_tokens", chatOf("m", "hello"), 200},
		{"models", "/models", "", 200},
	} {
		for _, prefix := range []string{"/v1", "", "/v1/sessions/" + c.name, "/v1/plain-" + c.name + "/v1"} {
			got := l.post(prefix+c.path, c.body, anthropicVersion()...)
			if want := p.sent(); got.status != c.status || got.body != want || want == "" {
				t.Errorf("%s%s: %d %s\nwant %d %s", prefix, c.path, got.status, got.body, c.status, want)
			}
		}
	}
}

func both(url string) []provider.Provider {
	return []provider.Provider{upstream("openai", url), upstream("anthropic", url)}
}

// TestRecords checks the record of calls of each kind.
func TestRecords(t *testing.T) {
	t.Parallel()
	l := start(t, Config{Upstreams: both(simulated(t, sim.Config{}))})
	l.post("/v1/sessions/a/chat/completions", `{"model":"echo","temperature":0.5,"user":"u","messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"say this"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`).want(t, 200)
	l.post("/v1/a/chat/completions", chatOf("openai/echo", "and this", streamed)).want(t, 200)
	l.post("/v1/messages", messageOf("echo", "third"), append(anthropicVersion(), "X-Parley-Session", "a")...).want(t, 200)
	l.post("/v1/sessions/a/models", "").want(t, 200)
	calls := l.calls("a")
	if len(calls) != 4 {
		t.Fatalf("%d calls: %+v", len(calls), calls)
	}
	for i, want := range []struct{ label, model, text string }{
		{"chat", "openai/echo", "say this"}, {"chat", "openai/echo", "and this"}, {"messages", "anthropic/echo", "third"},
	} {
		c := calls[i]
		if c.Turn != i || c.Label != want.label || c.Request.Model != want.model || c.Response == nil || c.Response.Text != want.text {
			t.Errorf("call %d: %+v %+v %+v", i, c, c.Request, c.Response)
		}
		if c.Response.Usage.Input == 0 || c.Response.Usage.Output == 0 || c.Response.Metadata.Latency == 0 || c.Wire.Status != 200 {
			t.Errorf("call %d: %+v", i, c.Response)
		}
	}
	first := calls[0].Request
	if m := first.Messages; len(m) != 2 || m[0].Role != llm.RoleSystem || m[1].Parts[1].Image == nil || *first.Temperature != 0.5 || string(first.Extra["user"]) != `"u"` {
		t.Errorf("%+v", first)
	}
	if act := calls[3].Act; act == nil || act.Name != "models" {
		t.Errorf("%+v", calls[3])
	}
}

// TestStreamsComeAsTheyGo checks that each event arrives before the next is sent, and the end only after the
// call is recorded.
func TestStreamsComeAsTheyGo(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	up := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(b), `"stream_options":{"include_usage":true}`) {
			t.Errorf("usage was not asked for: %s", b)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for e := range next {
			io.WriteString(w, e)
			w.(http.Flusher).Flush()
		}
	}))
	l := start(t, Config{Upstreams: []provider.Provider{upstream("openai", up)}})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, l.url+"/v1/chat/completions", strings.NewReader(chatOf("m", "hello", streamed)))
	events := []string{
		": a comment\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"He\"},\"finish_reason\":null}], \"odd\" : 1}\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"llo\"}}]}\r\n\r\n",
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { next <- events[0] })
	res, err := l.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	readThis(t, res.Body, events[0])
	for _, e := range events[1:] {
		next <- e
		readThis(t, res.Body, e)
	}
	end := "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	next <- end
	next <- "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n"
	next <- "data: [DONE]\n\n"
	close(next)
	readThis(t, res.Body, end+"data: [DONE]\n\n") // without the usage that was not asked for
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	// The end has arrived, so the call is in the file.
	c := recorded(t, l.file, sessionDefault)
	if len(c) != 1 || c[0].Response.Text != "Hello" || c[0].Response.Usage != (llm.Usage{Input: 7, Output: 2}) {
		t.Fatalf("%+v", c)
	}
	if want := strings.Join(events, "") + end + "data: [DONE]\n\n"; string(c[0].Wire.Body) != want {
		t.Errorf("%q\nwant %q", c[0].Wire.Body, want)
	}
}

func readThis(t *testing.T, r io.Reader, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(r, b); err != nil || string(b) != want {
		t.Fatalf("%q, %v, want %q", b, err, want)
	}
}
