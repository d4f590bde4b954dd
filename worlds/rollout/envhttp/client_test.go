package envhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley/llm"
)

func serve(t *testing.T, f http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(f)
	c := newClient(s.URL+"/", 4)
	t.Cleanup(func() { c.Close(); s.CloseClientConnections(); s.Close() })
	return c
}

// TestOnce: a request on a connection that the server closes without a word is not sent
// again, though it has a key, and though it is a GET: net/http would.
func TestOnce(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int64
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/warm" {
			return
		}
		arrived.Add(1)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		for range 5 {
			if err := c.Do(t.Context(), http.MethodGet, "/warm", "", nil, nil); err != nil {
				t.Fatal(err) // from here on a connection is kept alive
			}
			arrived.Store(0)
			var body any
			if method == http.MethodPost {
				body = map[string]string{"action": "x"}
			}
			err := llm.AsError(c.Do(t.Context(), method, "/step", "key", body, nil))
			if err == nil || err.Kind != llm.KindTransport || !err.Uncertain || arrived.Load() != 1 {
				t.Errorf("%s arrived %d times: %v", method, arrived.Load(), err)
			}
		}
	}
}

// TestNoBody: a request without a body has none on the wire, however long it takes to see that the body is empty: some servers take
// the end of a chunked body for another request.
func TestNoBody(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 1)
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			arrived <- struct{}{}
		}
		if len(r.TransferEncoding) > 0 || r.ContentLength != 0 {
			t.Errorf("%s: %v, %d bytes", r.Method, r.TransferEncoding, r.ContentLength)
		}
	})
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if err := c.Do(t.Context(), method, "/envs", "", nil, nil); err != nil {
			t.Error(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, c.base+"/late", nil)
		if err != nil {
			t.Fatal(err)
		}
		setBody(req, nil)
		req.Body = io.NopCloser(&lateReader{Reader: req.Body, when: arrived})
		resp, err := c.transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}

// lateReader is read only when the request has arrived.
type lateReader struct {
	io.Reader
	when <-chan struct{}
	once sync.Once
}

func (r *lateReader) Read(b []byte) (int, error) {
	r.once.Do(func() { <-r.when })
	return r.Reader.Read(b)
}

func TestFailures(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/400", "/422", "/418":
			w.WriteHeader(map[string]int{"/400": 400, "/422": 422, "/418": 418}[r.URL.Path])
			_, _ = w.Write([]byte(`{"detail":"no such thing"}`))
		case "/401", "/403":
			w.WriteHeader(401)
		case "/404":
			w.WriteHeader(404)
		case "/429", "/503":
			w.WriteHeader(503)
		case "/500":
			w.WriteHeader(500)
			_, _ = w.Write([]byte(strings.Repeat("x", 10_000)))
		case "/302":
			http.Redirect(w, r, "/400", http.StatusFound)
		case "/html":
			_, _ = w.Write([]byte("<html>"))
		case "/half":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		}
	})
	for _, x := range []struct {
		path      string
		kind      llm.Kind
		uncertain bool
	}{
		{"/400", llm.KindBadRequest, false}, {"/422", llm.KindBadRequest, false}, {"/401", llm.KindAuth, false}, {"/404", llm.KindServer, false},
		{"/429", llm.KindOverloaded, false}, {"/500", llm.KindServer, true}, {"/302", llm.KindMalformed, true}, {"/html", llm.KindMalformed, true},
		{"/half", llm.KindTransport, true}, {"/empty", llm.KindMalformed, true},
	} {
		var into map[string]any
		e := llm.AsError(c.Do(t.Context(), http.MethodPost, x.path, "", map[string]int{}, &into))
		if e == nil || e.Kind != x.kind || e.Uncertain != x.uncertain || e.Provider != c.Name() || len(e.Message) > 400 {
			t.Errorf("%s: %+v", x.path, e)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if e := llm.AsError(c.Do(ctx, http.MethodGet, "/", "", nil, nil)); e == nil || e.Kind != llm.KindCanceled {
		t.Errorf("%v", e)
	}
	gone := newClient("http://127.0.0.1:1", 1)
	if e := llm.AsError(gone.Do(t.Context(), http.MethodGet, "/", "", nil, nil)); e == nil || e.Kind != llm.KindTransport || e.Uncertain {
		t.Errorf("no server: %+v", e)
	}
}

// TestWrongForms: an answer of another form is described in words, without names of Go types.
func TestWrongForms(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`[1]`: "the answer is a JSON array: want an object", `"x"`: "the answer is a JSON string: want an object", `{"info":{"n":"x"}}`: "info.n is a JSON string: want a number",
		`{"done":1}`: "done is a JSON number: want true or false", `{"reward":NaN,"done":true}`: "reward is NaN, which JSON does not have: want a number",
		`{"reward": [1, -Infinity]}`: "reward is Infinity, which JSON does not have: want a number", `[NaN]`: "a value is NaN, which JSON does not have: want a number",
		` `: "the answer is empty: want JSON", `<html>`: `the answer is not JSON; it begins with "<html>"`, `{"a":`: `the answer is not JSON; it begins with "{\"a\":"`,
	} {
		var into struct {
			Info struct{ N int }
			Done bool
		}
		if err := decode([]byte(in), &into); err == nil || !strings.EqualFold(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	for in, kind := range map[string]llm.Kind{`[1]`: llm.KindInvalid, `{"info":NaN}`: llm.KindInvalid, `<html>`: llm.KindMalformed, ``: llm.KindMalformed} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(in)) })
		var into struct{ Info int }
		e := llm.AsError(c.Do(t.Context(), http.MethodPost, "/env/id/reset", "", nil, &into))
		if e == nil || e.Kind != kind || !e.Uncertain || !strings.HasPrefix(e.Message, "reset: ") || e.Provider != c.Name() {
			t.Errorf("%q: %+v", in, e)
		}
	}
}
