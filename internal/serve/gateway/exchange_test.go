package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley/internal/ask/cache"
	"parley/internal/ask/price"
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
	server, err := simhttp.New(simhttp.Config{ChunkTokens: 1})
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
		if c.Turn.Turn != i || c.Label != want.label || c.Request.Model != want.model || c.Response == nil || c.Response.Text != want.text {
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
	c := recorded(t, l.file, defaultSession)
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

var errFull = errors.New("the disk is full")

// TestDeadline checks that calls wait for a limit until their deadline.
func TestDeadline(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	up := script(func(w http.ResponseWriter, r *http.Request) { close(asked); <-release; saying("late")(w, r) })
	l := to(t, up, func(c *Config) { c.Upstreams[0].Limits.Concurrency = 1 })
	var wg sync.WaitGroup
	wg.Go(func() { l.post(chatPath, chatOf("m", "first")).want(t, 200, "late") })
	<-asked
	l.post("/v1/other/chat/completions", chatOf("m", "second"), "X-Parley-Deadline", "30ms").want(t, 504, "no answer began within 30ms")
	close(release)
	wg.Wait()
	calls := l.calls("other")
	if e := calls[0].Error; e == nil || e.Kind != llm.KindTimeout {
		t.Errorf("%+v", calls)
	}
}

// TestFair checks that a session with one call does not wait behind a session with many.
func TestFair(t *testing.T) {
	t.Parallel()
	var queue fairQueue
	var greedy, modest int64
	var places []int64
	for range 1000 {
		places = append(places, queue.position(&greedy))
	}
	queue.admitted(places[0])
	if at := queue.position(&modest); at > places[1] {
		t.Errorf("the modest session's call is at %d, behind %d", at, places[1])
	}
	queue.admitted(places[999])
	if at := queue.position(&modest); at < places[999] {
		t.Errorf("who was away may not come before what is served now: %d", at)
	}
}

// TestBudget checks that no more than the budget is spent.
func TestBudget(t *testing.T) {
	t.Parallel()
	prices, err := price.Read(strings.NewReader(`{"models":{"openai/m":{"input":1,"output":2}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.parley")
	c := Config{Upstreams: []provider.Provider{upstream("openai", simulated(t, sim.Config{MinTokens: 50, MaxTokens: 50}))}, Prices: prices, Settings: limited(llm.Dollars(0.01), 4)}
	answered := 0
	for range 2 { // the second process continues with the rest
		l := startAt(t, c, file)
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range 8 {
			wg.Go(func() {
				for {
					r := l.post(chatPath, chatOf("m", "hello", `,"max_completion_tokens":100`))
					if r.status != 200 {
						r.want(t, 402, "budget")
						return
					}
					mu.Lock()
					answered++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		var spent llm.Money
		for _, call := range l.calls("s") {
			if call.Response != nil {
				spent += call.Response.Metadata.Cost
			}
		}
		if spent > c.Settings.Budget || spent < c.Settings.Budget*9/10 {
			t.Errorf("spent %v of %v", spent, c.Settings.Budget)
		}
	}
	if answered == 0 {
		t.Error("nothing was answered")
	}
	l := startAt(t, c, file)
	l.post(chatPath, chatOf("m", "hello", `,"n":3`)).want(t, 400, "max_completion_tokens")
}

// TestCache checks that the same question gets the same answer, and another draw in one session.
func TestCache(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	up := script(saying("one"), saying("two"), saying("three"))
	l := to(t, up, func(c *Config) { c.Cache = store })
	ask := func(path, more string) string {
		return l.post(path, chatOf("m", "hi", more)).want(t, 200).body
	}
	first := ask("/v1/a/chat/completions", "")
	for _, c := range []struct {
		path, more string
		same       bool
	}{
		{"/v1/b/chat/completions", "", true},
		{"/v1/b/chat/completions", `,"user":"somebody"`, false}, // the second draw of b
		{"/v1/chat/completions", "", true},
		{"/v1/chat/completions", "", true},
		{"/v1/c/chat/completions", `,"temperature":0.1`, false},
	} {
		if same := ask(c.path, c.more) == first; same != c.same {
			t.Errorf("%+v", c)
		}
	}
	if up.count() != 3 {
		t.Errorf("the provider was asked %d times", up.count())
	}
	if calls := l.calls("b"); !calls[0].Response.Metadata.Cached || calls[0].Response.Text != "one" || calls[1].Response.Metadata.Cached {
		t.Errorf("%+v", calls)
	}
}

// TestCachedStream serves a stream again, byte for byte.
func TestCachedStream(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	up := script(events(append([]string{chunk("fine")}, ends()...)...))
	l := to(t, up, func(c *Config) { c.Cache = store })
	first := l.post("/v1/a/chat/completions", chatOf("m", "hi", streamed)).want(t, 200, "[DONE]")
	second := l.post("/v1/b/chat/completions", chatOf("m", "hi", streamed)).want(t, 200)
	if first.body != second.body || second.header.Get("Content-Type") != "text/event-stream" || up.count() != 1 {
		t.Errorf("%q, %q, asked %d times", first.body, second.body, up.count())
	}
}

// TestSteps checks the answer that tells an agent to stop, in every format.
func TestSteps(t *testing.T) {
	t.Parallel()
	l := start(t, Config{Upstreams: both(simulated(t, sim.Config{})), MaxSteps: 2})
	for _, c := range []struct{ session, path, body, stream string }{
		{"c", "/chat/completions", chatOf("m", "hi"), `"finish_reason":"stop"`},
		{"cs", "/chat/completions", chatOf("m", "hi", streamed), "data: [DONE]"},
		{"r", "/responses", `{"model":"m","input":"hi"}`, `"status":"completed"`},
		{"rs", "/responses", `{"model":"m","input":"hi","stream":true}`, "event: response.completed"},
		{"m", "/messages", messageOf("m", "hi"), `"stop_reason":"end_turn"`},
		{"ms", "/messages", messageOf("m", "hi", streamed), "event: message_stop"},
		{"g", "/v1beta/models/m:generateContent", contentsOf("hi"), `"finishReason":"STOP"`},
		{"gs", "/v1beta/models/m:streamGenerateContent?alt=sse", contentsOf("hi"), `"finishReason":"STOP"`},
	} {
		path := "/v1/sessions/" + c.session + c.path
		for range 2 {
			if got := l.post(path, c.body, anthropicVersion()...).want(t, 200); strings.Contains(got.body, "step limit") {
				t.Errorf("%s: reported too early", c.session)
			}
		}
		got := l.post(path, c.body, anthropicVersion()...).want(t, 200, "The step limit of this session is reached", c.stream)
		if got.header.Get("X-Parley-Stop") != "max_steps" {
			t.Errorf("%v", got.header)
		}
		l.post("/v1/sessions/"+c.session, "").want(t, 200, `"llm_step_count":2`, `"truncated":true`, `"truncate_reason":"max_steps"`, `"stop_responses_sent":1`)
		// Another model has its own steps.
		l.post(strings.Replace(path, "/m:", "/other:", 1), strings.Replace(c.body, `"m"`, `"other"`, 1), anthropicVersion()...).want(t, 200)
	}
}

// TestRoutes finds models by alias, by provider and by format, and falls back.
func TestRoutes(t *testing.T) {
	t.Parallel()
	first, second := script(answering(404, `{"error":{"message":"no such model"}}`), saying("first")), script(saying("second"))
	a, b := upstream("openai", serving(t, first)), upstream("openai", serving(t, second))
	b.Name = "lab"
	l := start(t, Config{
		Upstreams: []provider.Provider{a, b}, Aliases: map[string]string{"small": "lab/tiny"},
		Fallbacks: map[string][]string{"openai/gone": {"lab/spare"}},
	})
	l.post(chatPath, chatOf("gone", "hi")).want(t, 200, "second")
	l.post(chatPath, chatOf("small", "hi")).want(t, 200, "second")
	l.post(chatPath, chatOf("lab/some/model", "hi")).want(t, 200, "second")
	l.post(chatPath, chatOf("org/model", "hi")).want(t, 200, "first")
	l.post(chatPath, `{"messages":[]}`).want(t, 400, "names no model")
	for i, want := range []string{`"model":"spare"`, `"model":"tiny"`, `"model":"some/model"`} {
		if !strings.Contains(second.seen[i], want) {
			t.Errorf("%s: want %s", second.seen[i], want)
		}
	}
	if !strings.Contains(first.seen[1], `"model":"org/model"`) {
		t.Error(first.seen)
	}
	for _, bad := range []Config{
		{}, {Upstreams: []provider.Provider{a, a}},
		{Upstreams: []provider.Provider{a}, Aliases: map[string]string{"x": "nowhere/m"}},
		{Upstreams: []provider.Provider{a}, Fallbacks: map[string][]string{"openai/m": {"m"}}},
	} {
		if _, err := Open(context.Background(), bad); err == nil {
			t.Errorf("%+v was opened", bad)
		}
	}
}

// TestWebSocketRefused: a program that asks for a WebSocket is told to use HTTP, and any other unknown address that there is none.
func TestWebSocketRefused(t *testing.T) {
	t.Parallel()
	l := start(t, Config{Upstreams: []provider.Provider{upstream("openai", serving(t, script(saying("hi"))))}})
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
	for _, path := range []string{"/v1/responses", "/v1/try-1/responses"} {
		l.post(path, "", upgrade...).want(t, 426, "websocket_refused", "send a POST")
		l.post(path, "").want(t, 404, "unknown_url")
	}
	l.post(chatPath, chatOf("m", "hi")).want(t, 200, "hi")
}

// provided serves answers of a usual length at once.
func provided(b *testing.B) string {
	body := `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("A sentence. ", 30) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":90,"total_tokens":190}}`
	return serving(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	}))
}

var question = strings.Repeat("What is to be done now? ", 20)

// BenchmarkCall is a whole call through the gateway with its record, client and provider
// included, many at once. The command `go -C test/oracle run ./bench gateway` measures the
// gateway from outside.
func BenchmarkCall(b *testing.B) {
	p := upstream("openai", provided(b))
	p.Limits.Concurrency = 1000
	l := start(b, Config{Upstreams: []provider.Provider{p}})
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := l.try(b.Context(), "/v1/chat/completions", chatOf("m", strconv.FormatInt(n.Add(1), 10)+question))
			if err != nil || r.status != 200 {
				b.Error(r, err)
				return
			}
		}
	})
}
