package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
)

// lab is a running gateway with a client.
type lab struct {
	t      testing.TB
	url    string
	file   string
	g      *Gateway
	client *http.Client
	drain  context.CancelFunc
	abort  context.CancelFunc
	ended  chan error
	once   sync.Once
	err    error
}

// simulated serves the simulated provider.
func simulated(t *testing.T, c sim.Config) string {
	t.Helper()
	s, err := simhttp.New(simhttp.Config{Sim: c, ChunkTokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	return serving(t, s)
}

// serving serves h and returns its address with /v1.
func serving(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

func upstream(dialect, url string) provider.Provider {
	return provider.Provider{Name: dialect, Dialect: dialect, BaseURL: url}
}

// start runs a gateway over a new run file, or over c.Journal.
func start(t testing.TB, c Config) *lab {
	t.Helper()
	return startAt(t, c, filepath.Join(t.TempDir(), "run.parley"))
}

func startAt(t testing.TB, c Config, file string) *lab {
	t.Helper()
	if c.Journal == nil {
		c.Journal = store(t, file, c.Replay)
	}
	c.Begin = Begin{Run: "lab", Tool: "test", Now: time.Now(), Plan: json.RawMessage(`{}`)}
	g, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, abort := context.WithCancel(context.WithoutCancel(t.Context()))
	drain, stop := context.WithCancel(ctx)
	l := &lab{
		t: t, url: "http://" + ln.Addr().String(), file: file, g: g, drain: stop, abort: abort, ended: make(chan error, 1),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}},
	}
	go func() { l.ended <- g.Run(ctx, drain, ln) }()
	t.Cleanup(func() { l.stop() })
	return l
}

func store(t testing.TB, file string, readOnly bool) journal.Journal {
	t.Helper()
	var s *runfile.Store
	var err error
	if readOnly {
		s, err = runfile.OpenRead(file)
	} else {
		s, err = runfile.Open(t.Context(), file, runfile.Either)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// stop drains the gateway and returns the result of Run.
func (l *lab) stop() error {
	l.once.Do(func() {
		l.client.CloseIdleConnections()
		l.drain()
		l.err = <-l.ended
		l.abort()
		if s, ok := l.g.cfg.Journal.(io.Closer); ok {
			s.Close()
		}
	})
	return l.err
}

// reply is what a client sees.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) want(t *testing.T, status int, words ...string) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	for _, w := range words {
		if !strings.Contains(r.body, w) {
			t.Errorf("want %q in %s", w, r.body)
		}
	}
	return r
}

// post sends a request and reads its answer.
func (l *lab) post(path, body string, header ...string) reply {
	l.t.Helper()
	r, err := l.try(l.t.Context(), path, body, header...)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

func (l *lab) try(ctx context.Context, path, body string, header ...string) (reply, error) {
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, l.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := l.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(res.Body)
	return reply{res.StatusCode, res.Header, b.String()}, err
}

// calls stops the gateway and reads the recorded calls of a session.
func (l *lab) calls(session string) []Call {
	l.t.Helper()
	if err := l.stop(); err != nil {
		l.t.Fatal(err)
	}
	return recorded(l.t, l.file, session)
}

func recorded(t testing.TB, file, session string) []Call {
	t.Helper()
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	state, err := readLedger(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var episodes []int // of all owners
	for name, n := range state.Sessions {
		if name.ID == session {
			episodes = append(episodes, n)
		}
	}
	if len(episodes) == 0 {
		t.Fatalf("there is no session %q: %v", session, state.Sessions)
	}
	slices.Sort(episodes)
	var all []Call
	for _, n := range episodes {
		calls, err := ReadCalls(t.Context(), s, n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, calls...)
	}
	return all
}

// chatOf is a chat completion that asks one question.
func chatOf(model, question string, more ...string) string {
	q, _ := json.Marshal(question)
	return `{"model":"` + model + `","messages":[{"role":"user","content":` + string(q) + `}]` + strings.Join(more, "") + `}`
}

const streamed = `,"stream":true`

func messageOf(model, question string, more ...string) string {
	return strings.TrimSuffix(chatOf(model, question, more...), "}") + `,"max_tokens":200}`
}

// scripted is a provider that answers call by call as the test says; the last answer is repeated.
type scripted struct {
	mu    sync.Mutex
	steps []http.HandlerFunc
	calls int
	seen  []string // bodies
	heads []http.Header
}

func script(steps ...http.HandlerFunc) *scripted { return &scripted{steps: steps} }

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	step := s.steps[min(s.calls, len(s.steps)-1)]
	s.calls++
	s.seen, s.heads = append(s.seen, string(b)), append(s.heads, r.Header.Clone())
	s.mu.Unlock()
	step(w, r)
}

func (s *scripted) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// saying answers with a chat completion.
func saying(words string) http.HandlerFunc {
	return answering(200, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"`+words+`"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`)
}

func answering(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// events answers with a stream.
func events(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, d := range data {
			io.WriteString(w, "data: "+d+"\n\n")
			w.(http.Flusher).Flush()
		}
	}
}

// chunk is an event of a chat completion.
func chunk(words string) string {
	return `{"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"` + words + `"},"finish_reason":null}]}`
}

// ends are the last events of a chat completion.
func ends() []string {
	return []string{
		`{"id":"1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"id":"1","model":"m","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, "[DONE]",
	}
}

// to returns a gateway over one scripted provider of OpenAI's format.
func to(t testing.TB, s http.Handler, change ...func(*Config)) *lab {
	t.Helper()
	c := Config{Upstreams: []provider.Provider{upstream("openai", serving(t, s))}}
	for _, f := range change {
		f(&c)
	}
	return start(t, c)
}

const chatPath = "/v1/sessions/s/chat/completions"

// limited returns settings with a budget and so many retries.
func limited(budget llm.Money, retries int) *settings.Settings {
	s := settings.New(settings.Gateway)
	s.Budget, s.Retry.Retries = budget, retries
	return s
}
