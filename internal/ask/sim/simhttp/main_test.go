package simhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server on loopback until the test ends, and returns its address.
func serve(t testing.TB, cfg Config) (string, *Server) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String(), s
}

// client returns a client whose connections are closed at the end of the test.
func client(t testing.TB) *http.Client {
	t.Helper()
	tr := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// answered is the answer of the server.
type answered struct {
	status int
	header http.Header
	body   []byte
}

// at returns the value at a path, such as choices.0.message.content.
func (a answered) at(t testing.TB, path string) any {
	t.Helper()
	return dig(t, a.body, path)
}

func dig(t testing.TB, body []byte, path string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %.300s", err, body)
	}
	for part := range strings.SplitSeq(path, ".") {
		switch c := v.(type) {
		case map[string]any:
			v = c[part]
		case []any:
			i := int(part[0] - '0')
			if i >= len(c) {
				t.Fatalf("%s: no %s in %.300s", path, part, body)
			}
			v = c[i]
		default:
			t.Fatalf("%s: no %s in %.300s", path, part, body)
		}
	}
	return v
}

// call asks the server without a network, so that it works in a synctest bubble.
func call(t testing.TB, s *Server, method, path, body string, headers ...string) answered {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r = r.WithContext(t.Context())
	if strings.HasPrefix(path, "/v1/messages") {
		r.Header.Set("Anthropic-Version", "2023-06-01")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return answered{w.Code, w.Header(), w.Body.Bytes()}
}

// post asks over the network.
func post(t testing.TB, c *http.Client, url, body string) (answered, error) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := c.Do(req)
	if err != nil {
		return answered{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answered{resp.StatusCode, resp.Header, b}, err
}

func newServer(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
	messagesPath  = "/v1/messages"

	chatBody      = `{"model":"small","messages":[{"role":"user","content":"How do we cross the river?"}]}`
	responsesBody = `{"model":"small","input":"How do we cross the river?"}`
	messagesBody  = `{"model":"small","max_tokens":1000,"messages":[{"role":"user","content":"How do we cross the river?"}]}`
)

// with adds members to a JSON object.
func with(body, members string) string {
	return strings.TrimSuffix(body, "}") + "," + members + "}"
}

// events returns the data of a stream's events.
func events(body []byte) [][]byte {
	var out [][]byte
	for l := range bytes.SplitSeq(body, []byte("\n")) {
		if d, ok := bytes.CutPrefix(l, []byte("data: ")); ok {
			out = append(out, d)
		}
	}
	return out
}
