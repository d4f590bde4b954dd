package dialect_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

func hello() *llm.Request {
	return &llm.Request{Model: "lab/fake-1", Messages: []llm.Message{llm.User("hello")}, MaxTokens: 100}
}

// say answers with a status, a content type and a body.
func say(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// hijack answers with raw bytes on the connection, and then calls end.
func hijack(raw string, end func(*net.TCPConn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		io.WriteString(c, raw)
		end(c.(*net.TCPConn))
	}
}

func closeConn(c *net.TCPConn) { c.Close() }
func resetConn(c *net.TCPConn) { c.SetLinger(0); c.Close() }

const htmlPage = "<!DOCTYPE html><html><head><title>Bad gateway</title></head><body>nginx</body></html>"

// TestFaults checks every dialect against the faults of real servers.
func TestFaults(t *testing.T) {
	t.Parallel()
	timeout := func(d time.Duration) func(*provider.Provider) { return func(p *provider.Provider) { p.Timeout = d } }
	short := timeout(30 * time.Millisecond)
	for _, c := range []struct {
		name      string
		handler   http.HandlerFunc
		kind      llm.Kind
		uncertain bool
		says      string
		change    func(*provider.Provider)
	}{
		{name: "closed before a byte", handler: hijack("", closeConn), kind: llm.KindTransport, uncertain: true, says: "closed"},
		{name: "reset before a byte", handler: hijack("", resetConn), kind: llm.KindTransport, uncertain: true},
		{name: "reset in the body", handler: hijack("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"id\":", resetConn), kind: llm.KindTransport, uncertain: true, says: "cut off"},
		{name: "cut off in the body", handler: hijack("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"id\":", closeConn), kind: llm.KindTransport, uncertain: true, says: "cut off"},
		{name: "not HTTP", handler: hijack("garbage \x1b[31m garbage\r\n\r\n", closeConn), kind: llm.KindTransport, uncertain: true},
		{name: "half a JSON", handler: say(200, "application/json", `{"id":"x","choices":[{"mess`), kind: llm.KindMalformed, uncertain: true},
		{name: "empty", handler: say(200, "application/json", ""), kind: llm.KindMalformed, uncertain: true, says: "empty"},
		{name: "another JSON", handler: say(200, "application/json", `{"hello":"world"}`), kind: llm.KindMalformed, uncertain: true},
		{name: "a list", handler: say(200, "application/json", `[1,2]`), kind: llm.KindMalformed, uncertain: true},
		{name: "HTML", handler: say(200, "text/html", htmlPage), kind: llm.KindMalformed, uncertain: true, says: "HTML page"},
		{name: "HTML as JSON", handler: say(200, "application/json", htmlPage), kind: llm.KindMalformed, uncertain: true, says: "HTML page"},
		{name: "plain text", handler: say(200, "text/plain", "hello"), kind: llm.KindMalformed, uncertain: true, says: "text/plain"},
		{name: "JSON under another type", handler: say(200, "text/plain", `{"choices":[]}`), kind: llm.KindMalformed, uncertain: true, says: "content type"},
		{name: "HTML 502", handler: say(502, "text/html", htmlPage), kind: llm.KindServer, says: "bad gateway"},
		{name: "HTML 404", handler: say(404, "text/html", htmlPage), kind: llm.KindBadRequest, says: "base_url"},
		{name: "503 while a model loads", handler: say(503, "application/json", `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`), kind: llm.KindOverloaded, says: "Loading model"},
		{name: "529", handler: say(529, "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`), kind: llm.KindOverloaded},
		{name: "429", handler: say(429, "application/json", `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`), kind: llm.KindRateLimited},
		{name: "out of credit", handler: say(429, "application/json", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`), kind: llm.KindQuota},
		{name: "bad JSON reported as 500", handler: say(500, "application/json", `{"error":{"code":500,"message":"[json.exception.parse_error.101] parse error","type":"server_error"}}`), kind: llm.KindBadRequest},
		{name: "500", handler: say(500, "application/json", `{"error":"something"}`), kind: llm.KindServer, says: "something"},
		{name: "prompt too long", handler: say(400, "application/json", `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`), kind: llm.KindTooLong},
		{name: "error under 200", handler: say(200, "application/json", `{"error":{"code":502,"message":"upstream failed"}}`), kind: llm.KindServer, says: "upstream failed"},
		{name: "redirect", handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://elsewhere.example/", 307) }, kind: llm.KindBadRequest, says: "redirects"},
		{name: "stall before a byte", handler: stall, kind: llm.KindTimeout, uncertain: true, says: "the server sent nothing", change: short},
		{name: "stall in the body", handler: stallAfter("application/json", `{"id":`), kind: llm.KindTimeout, uncertain: true, says: "stalled", change: short},
		{name: "stall in a stream", handler: stallAfter("text/event-stream", ": hello\n\n"), kind: llm.KindTimeout, uncertain: true, says: "stalled", change: short},
		{name: "stream of nothing", handler: say(200, "text/event-stream", ""), kind: llm.KindMalformed, uncertain: true, says: "incomplete"},
		{name: "stream of half a JSON", handler: say(200, "text/event-stream", "event: response.completed\ndata: {\"id\":\n\n"), kind: llm.KindMalformed, uncertain: true},
		{name: "error event", handler: say(200, "text/event-stream", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"), kind: llm.KindOverloaded, uncertain: true},
		{name: "bare error in a stream", handler: say(200, "text/event-stream", "{\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}\n\n"), kind: llm.KindRateLimited, uncertain: true},
		{name: "unknown encoding", handler: encoded("br", "x"), kind: llm.KindMalformed, uncertain: true, says: "br"},
		{name: "not gzip, although the header says so", handler: encoded("gzip", "hello hello hello hello"), kind: llm.KindMalformed, uncertain: true, says: "decompress"},
	} {
		for _, f := range formats() {
			t.Run(c.name+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				change := c.change
				if change == nil {
					change = func(*provider.Provider) {}
				}
				e := failure(t, f.open(t, c.handler, change))
				// On a busy machine the timeout can pass before the first byte arrives: wait longer then.
				for d := 300 * time.Millisecond; c.says == "stalled" && !strings.Contains(e.Error(), c.says) && d < time.Minute; d *= 4 {
					e = failure(t, f.open(t, c.handler, timeout(d)))
				}
				if e.Kind != c.kind || e.Uncertain != c.uncertain || !strings.Contains(e.Error(), c.says) {
					t.Errorf("got %s, uncertain %v: %v; want %s, %v, saying %q", e.Kind, e.Uncertain, e, c.kind, c.uncertain, c.says)
				}
			})
		}
	}
}

// failure asks and returns the error, which must be complete and clean.
func failure(t *testing.T, m llm.Model) *llm.Error {
	t.Helper()
	r, err := m.Ask(t.Context(), hello())
	var e *llm.Error
	if r != nil || !errors.As(err, &e) {
		t.Fatalf("Ask = %v, %v: want an *llm.Error", r, err)
	}
	if e.Provider != "lab" || e.Model != "fake-1" {
		t.Errorf("the error is of %q/%q, want lab/fake-1", e.Provider, e.Model)
	}
	if strings.ContainsAny(err.Error(), "\x1b\n\r\x00") {
		t.Errorf("the error is not fit for a terminal: %q", err)
	}
	return e
}

func stallAfter(contentType, head string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, head)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func encoded(encoding, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", encoding)
		say(200, "application/json", body)(w, r)
	}
}

// TestTruncatedStream cuts a good stream after every event. Only the whole stream is an answer.
func TestTruncatedStream(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		events := f.stream(answerTo(question{}))
		for n := range events {
			t.Run(fmt.Sprintf("%s/%d", f.name, n), func(t *testing.T) {
				t.Parallel()
				m := f.open(t, say(200, "text/event-stream", strings.Join(events[:n], "")))
				r, err := m.Ask(t.Context(), hello())
				// Chat completions are complete with the finish_reason and the usage.
				if f.name == "openai" && n == len(events)-1 {
					if err != nil || r.Text != "word by word by word" {
						t.Errorf("without [DONE]: %v, %v", r, err)
					}
					return
				}
				if llm.KindOf(err) != llm.KindMalformed || !llm.AsError(err).Uncertain {
					t.Errorf("%d of %d events gave %v, %v: want malformed and uncertain", n, len(events), r, err)
				}
			})
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		e := failure(t, f.dial(t, "http://127.0.0.1:1")) // a port that systems give to nobody
		if e.Kind != llm.KindTransport || e.Uncertain {
			t.Errorf("%s: %v, uncertain %v: want transport, and certainly not done", f.name, e, e.Uncertain)
		}
	}
}

// TestGigantic sends more than the limit, with and without a Content-Length.
func TestGigantic(t *testing.T) {
	t.Parallel()
	f := formats()[0]
	for name, head := range map[string]string{
		"with a length":    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n",
		"without a length": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
		"stream":           "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := failure(t, f.open(t, hijack(head, func(c *net.TCPConn) {
				defer c.Close()
				block := bytes.Repeat([]byte("{ "), 1<<16)
				for range 700 {
					if _, err := c.Write(block); err != nil {
						return
					}
				}
			})))
			if e.Kind != llm.KindMalformed || !strings.Contains(e.Message, "larger than 64 MB") {
				t.Errorf("got %v", e)
			}
		})
	}
}

func TestGzip(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, f.whole(answerTo(question{})))
		z.Close()
		r, err := f.open(t, encoded("gzip", b.String())).Ask(t.Context(), hello())
		if err != nil || r.Text != "word by word by word" {
			t.Errorf("%s: %v, %v", f.name, r, err)
		}
	}
}

// TestKeyIsSecret uses a server that echoes the key everywhere it can.
func TestKeyIsSecret(t *testing.T) {
	const key = "sk-secret-0123456789"
	t.Setenv("PARLEY_TEST_KEY", key)
	withKey := func(p *provider.Provider) { p.KeyEnv = "PARLEY_TEST_KEY" }
	for name, h := range map[string]http.HandlerFunc{
		"in an error":     say(401, "application/json", `{"error":{"message":"bad key `+key+`","type":"authentication_error","code":"`+key+`"},"request_id":"`+key+`"}`),
		"in a page":       say(500, "text/html", "<html><title>"+key+"</title>"),
		"in a text":       say(200, "text/plain", key),
		"in an event":     say(200, "text/event-stream", "data: {\"error\":{\"message\":\""+key+"\"}}\n\n"),
		"instead of HTTP": hijack(key+"\r\n\r\n", closeConn),
		"in a redirect":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/"+key, 302) },
	} {
		for _, f := range formats() {
			e := failure(t, f.open(t, h, withKey))
			for _, s := range []string{e.Error(), fmt.Sprintf("%+v", e), fmt.Sprint(e.Err), e.Code, e.RequestID} {
				if strings.Contains(s, key) {
					t.Errorf("%s, %s: the key is shown: %s", f.name, name, s)
				}
			}
		}
	}
}

// TestStaleConnection uses a server that closes each connection after a streamed answer, without
// notice. The next call finds the connection dead. It is not sent again here, and its error says why it failed, so that dispatch sends it over another.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			m := f.dial(t, staleServer(t, f), func(p *provider.Provider) { p.Stream = "always" })
			was := false
			for range 20 {
				_, err := m.Ask(t.Context(), hello())
				e := llm.AsError(err)
				if e != nil && (was || !e.Stale || !e.Uncertain) {
					t.Fatalf("%+v", e)
				}
				was = e != nil
			}
		})
	}
}

// staleServer implements HTTP/1.1 itself. A connection answers one request. It reads the next one and
// closes without an answer.
func staleServer(t *testing.T, f format) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Join(f.stream(answerTo(question{})), "")
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { serveOnce(c, body) })
		}
	})
	t.Cleanup(open.Wait) // once the client has closed its connections
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}

func serveOnce(c net.Conn, body string) {
	defer c.Close()
	r := bufio.NewReader(c)
	for n := range 2 {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		if n == 0 {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	}
}

// TestSilentCut uses a server that counts seven tokens for a long prompt: it truncated the prompt.
func TestSilentCut(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		m := f.open(t, f.serve)
		req := hello()
		req.Messages = []llm.Message{llm.User(strings.Repeat("many words ", 2000))}
		_, err := m.Ask(t.Context(), req)
		if e := llm.AsError(err); e == nil || e.Kind != llm.KindTooLong || e.Usage.Input != 7 {
			t.Errorf("%s: %v", f.name, err)
		}
		// Few words for the size prove nothing: base64, or spaces.
		req.Messages = []llm.Message{llm.User(strings.Repeat(" ", 20_000) + strings.Repeat("=", 20_000))}
		if _, err := m.Ask(t.Context(), req); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}
