package gateway

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/llm"
)

// TestKeys checks that a key is needed, in either vendor's header.
func TestKeys(t *testing.T) {
	t.Parallel()
	l := to(t, script(saying("fine")), func(c *Config) { c.Keys = []string{"alpha-key", "beta-key"} })
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"Authorization", "Bearer alpha-key", 200}, {"X-Api-Key", "beta-key", 200},
		{"Authorization", "Bearer alpha-keys", 401}, {"X-Api-Key", "", 401}, {"Authorization", "alpha-key", 401},
	} {
		got := l.post(chatPath, chatOf("m", "hi"), c.name, c.value)
		if got.status != c.status || strings.Contains(got.body, "alpha") {
			t.Errorf("%+v: %d %s", c, got.status, got.body)
		}
	}
	l.post("/healthz", "").want(t, 200)
	l.post("/metrics", "").want(t, 401)
	l.post("/v1/sessions/s", "").want(t, 401)
}

// TestNoWebPages checks that requests of web pages are refused.
func TestNoWebPages(t *testing.T) {
	t.Parallel()
	l := to(t, script(saying("fine")))
	l.post(chatPath, chatOf("m", "hi"), "Origin", "https://example.com").want(t, 403, "does not serve web pages")
	l.post(chatPath, chatOf("m", "hi")).want(t, 200)
}

// TestSecrets looks for keys in answers, records and errors.
func TestSecrets(t *testing.T) {
	t.Setenv("GATEWAY_TEST_KEY", "sk-upstream-secret")
	echo := func(w http.ResponseWriter, r *http.Request) {
		answering(401, `{"error":{"message":"Incorrect API key provided: `+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+`"}}`)(w, r)
	}
	tell := func(w http.ResponseWriter, r *http.Request) {
		events(chunk("so"), `{"error":{"message":"bad key `+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+`"}}`)(w, r)
	}
	up := script(echo, echo, tell, saying("fine"))
	p := upstream("openai", serving(t, up))
	p.KeyEnv = "GATEWAY_TEST_KEY"
	l := start(t, Config{Upstreams: []provider.Provider{p}, Keys: []string{"client-secret"}})
	got := l.post(chatPath, chatOf("m", "hi"), "Authorization", "Bearer client-secret").want(t, 401, "Incorrect API key provided: [key]")
	// Without its own keys the gateway sends the client's.
	q := upstream("openai", p.BaseURL)
	open := start(t, Config{Upstreams: []provider.Provider{q}})
	other := open.post(chatPath, chatOf("m", "hi"), "Authorization", "Bearer sk-clients-own").want(t, 401, "[key]")
	streams := open.post(chatPath, chatOf("m", "hi", streamed), "Authorization", "Bearer sk-clients-own").want(t, 200, "bad key [key]")
	// A client's bad key does not affect others.
	open.post(chatPath, chatOf("m", "hi"), "Authorization", "Bearer sk-another-one").want(t, 200, "fine")
	if h := up.heads; h[0].Get("Authorization") != "Bearer sk-upstream-secret" || h[1].Get("Authorization") != "Bearer sk-clients-own" {
		t.Errorf("%v", h)
	}
	l.calls("s")
	open.calls("s")
	for _, file := range []string{l.file, open.file} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"sk-upstream-secret", "client-secret", "sk-clients-own"} {
			if bytes.Contains(b, []byte(secret)) || strings.Contains(got.body+other.body+streams.body, secret) {
				t.Errorf("%s is in %s, or was sent", secret, file)
			}
		}
	}
}

// TestBadRequests checks the errors of requests that cannot be served.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	l := to(t, script(saying("fine")), func(c *Config) { c.MaxBody = 1000 })
	l.post(chatPath, "no JSON").want(t, 400, "not a JSON object")
	l.post(chatPath, `{"model":"m","messages":[]`).want(t, 400, "not a JSON object")
	l.post(chatPath, chatOf("m", strings.Repeat("x", 2000))).want(t, 413, "too large")
	l.post(chatPath, chatOf("m", "hi"), "Content-Encoding", "gzip").want(t, 400, "compressed")
	l.post("/v1/files", `{}`).want(t, 404, "POST /v1/chat/completions")
	l.post("/v1/chat/completions", chatOf("m", "hi"), "X-Parley-Session", strings.Repeat("s", 300)).want(t, 400, "at most 200 characters")
	l.post("/v1/messages/count_tokens", chatOf("m", "hi")).want(t, 404, "only a provider of Anthropic's format counts tokens")
}

// TestSlowClients checks that a client has limited time to send its request.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	l := to(t, script(saying("fine")), func(c *Config) { c.Patience = 2 * time.Second }) // a busy machine needs some of it
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write([]byte("POST " + chatPath + " HTTP/1.1\r\nHost: " + conn.RemoteAddr().String() + "\r\nContent-Length: 100\r\n\r\n{"))
	b := make([]byte, 4096)
	n, err := conn.Read(b) // blocks forever if the gateway does
	if err != nil || !strings.Contains(string(b[:n]), "400") {
		t.Errorf("%q, %v", b[:n], err)
	}
}

// TestClientReadsNothing checks a client that does not read its stream: the provider is slowed down, others
// are served, and in the end the call is canceled.
func TestClientReadsNothing(t *testing.T) {
	t.Parallel()
	long := "data: " + chunk(strings.Repeat("so ", 20_000)) + "\n\n"
	held, ended := make(chan struct{}, 1), make(chan struct{})
	l := to(t, script(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		events()(w, r)
		for r.Context().Err() == nil { // writing blocks when nobody reads
			if _, err := w.Write([]byte(long)); err != nil {
				return
			}
			select {
			case held <- struct{}{}:
			default:
			}
		}
	}, saying("fine")), func(c *Config) { c.Patience = 2 * time.Second }) // a busy machine needs some of it
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := chatOf("m", "hi", streamed)
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", chatPath, conn.RemoteAddr(), len(body), body)
	<-held
	l.post("/v1/sessions/other/chat/completions", chatOf("m", "hi")).want(t, 200, "fine")
	<-ended
	calls := l.calls("s")
	if e := calls[0].Error; len(calls) != 1 || e == nil || e.Kind != llm.KindCanceled || !strings.Contains(e.Message, "took nothing for 2s after") || !calls[0].Wire.Cut {
		t.Errorf("%+v", e)
	}
}

// TestWatched reads the gateway's own metrics and status.
func TestWatched(t *testing.T) {
	t.Parallel()
	l := start(t, Config{Upstreams: both(simulated(t, sim.Config{}))})
	l.post(chatPath, chatOf("m", "hi"))
	l.post("/v1/messages", messageOf("m", "hi"), anthropicVersion()...)
	l.post("/metrics", "").want(t, 200,
		`parley_gateway_requests_total{code="200",endpoint="chat"} 1`, `parley_gateway_attempts_total{model="openai/m"} 1`,
		`parley_gateway_tokens_total{model="anthropic/m",type="output"}`, "parley_gateway_sessions_open 2", "go_goroutines")
	l.post("/readyz", "").want(t, 200, `"status":"ready"`)
	l.g.draining.Store(true)
	l.post("/readyz", "").want(t, 503, `"draining"`)
}
