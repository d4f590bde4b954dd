package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/provider"
	"parley/llm"
)

// recorder is a server that records requests, and answers with a status and a page.
type recorder struct {
	mu     sync.Mutex
	at     []string // method, escaped path, X-Session-Id
	bodies []string
	status int
	page   string
}

func (h *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = append(h.at, strings.TrimSpace(r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("X-Session-Id")))
	h.bodies = append(h.bodies, string(b))
	w.Header().Set("Content-Type", "application/json")
	if h.status != 0 {
		w.WriteHeader(h.status)
	}
	io.WriteString(w, h.page)
}

// codec sends the session in the body, and accepts any answer.
func codec() Codec {
	return Codec{
		Path: "/ask",
		Append: func(dst []byte, req *llm.Request, _ provider.Capability, _ bool) ([]byte, []string, error) {
			return append(dst, `"`+req.Session+`"`...), nil, nil
		},
		Decode: func([]byte) (*llm.Response, error) { return &llm.Response{}, nil },
	}
}

func listen(t *testing.T, h *recorder, p provider.Provider) *Model {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	p.Name, p.Dialect, p.BaseURL = "lab", "openai", srv.URL+"/v1"
	m, err := Open(p, codec(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestSession checks that a session is sent only in the way that the provider wants, and that its name
// is always one path segment.
func TestSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how           provider.Session
		session       string
		at, body, bad string
	}{
		{"", "s1", "POST /v1/ask", `""`, ""},
		{"none", "s1", "POST /v1/ask", `""`, ""},
		{"header", "s1", "POST /v1/ask s1", `"s1"`, ""},
		{"header", "a\r\nX-Evil: b", "POST /v1/ask a  X-Evil: b", "\"a\r\nX-Evil: b\"", ""},
		{"header", "", "POST /v1/ask", `""`, ""},
		{"path", "s1", "POST /v1/s1/ask", `"s1"`, ""},
		{"path", "", "POST /v1/ask", `""`, ""},
		{"path", "a/../b?c#d%2Fe é", "POST /v1/a%2F..%2Fb%3Fc%23d%252Fe%20%C3%A9/ask", "", ""},
		{"path", "..", "", "", "cannot be the name of a session"},
		{"path", ".", "", "", "cannot be the name of a session"},
		{"path", strings.Repeat("x", 201), "", "", "cannot be the name of a session"},
	} {
		h := &recorder{page: "{}"}
		m := listen(t, h, provider.Provider{Session: c.how})
		req := &llm.Request{Model: "lab/m", Session: c.session, Messages: []llm.Message{llm.User("x")}}
		_, err := m.Ask(t.Context(), req)
		switch {
		case c.bad != "":
			if llm.KindOf(err) != llm.KindBadRequest || !strings.Contains(err.Error(), c.bad) || h.at != nil {
				t.Errorf("%s %q: %v, the server heard %q", c.how, c.session, err, h.at)
			}
		case err != nil || len(h.at) != 1 || h.at[0] != c.at || (c.body != "" && h.bodies[0] != c.body):
			t.Errorf("%s %q: %v, the server heard %q %q", c.how, c.session, err, h.at, h.bodies)
		}
		if req.Session != c.session {
			t.Errorf("the request was changed to %q", req.Session)
		}
	}
}

func TestAlive(t *testing.T) {
	t.Parallel()
	for status, alive := range map[int]bool{200: true, 401: true, 404: true, 500: false, 503: false} {
		h := &recorder{status: status, page: "{}"}
		m := listen(t, h, provider.Provider{})
		if err := m.Alive(t.Context()); (err == nil) != alive || h.at[0] != "GET /v1/models" {
			t.Errorf("%d: %v, %q", status, err, h.at)
		}
	}
	m := listen(t, &recorder{}, provider.Provider{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if m.Alive(ctx) == nil {
		t.Error("a canceled look found it alive")
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	h := &recorder{page: "vllm:num_requests_running{engine=\"0\"} 4\nvllm:num_requests_waiting 2"}
	m := listen(t, h, provider.Provider{Metrics: "/metrics"})
	if l, err := m.Load(t.Context()); err != nil || l != (replica.Load{Running: 4, Waiting: 2}) || h.at[0] != "GET /metrics" {
		t.Errorf("%+v, %v, %q", l, err, h.at)
	}
	for _, h := range []*recorder{{status: 404}, {page: "<html>"}} {
		if _, err := listen(t, h, provider.Provider{Metrics: "/metrics"}).Load(t.Context()); err == nil {
			t.Errorf("%+v is taken for metrics", h)
		}
	}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	h := &recorder{page: "{}"}
	m := listen(t, h, provider.Provider{Session: "path"})
	for _, whole := range []bool{true, false} {
		if err := m.End(t.Context(), "a/b", whole); err != nil {
			t.Error(err)
		}
	}
	if h.at[0] != "POST /v1/a%2Fb/close" || !strings.Contains(h.bodies[0], `"complete"`) || !strings.Contains(h.bodies[1], `"abort"`) {
		t.Errorf("%q %q", h.at, h.bodies)
	}
	if m.End(t.Context(), "..", true) == nil {
		t.Error("a session above its own was closed")
	}
}

func TestSeveralServersAreOpenedOneByOne(t *testing.T) {
	t.Parallel()
	p := provider.Provider{Name: "lab", Dialect: "openai", BaseURLs: []string{"http://a/v1", "http://b/v1"}}
	if _, err := New(p, Config{}, nil); err == nil || !strings.Contains(err.Error(), "base_url") {
		t.Errorf("%v", err)
	}
	for _, one := range p.Servers() {
		if _, err := New(one, Config{}, nil); err != nil {
			t.Error(err)
		}
	}
}
