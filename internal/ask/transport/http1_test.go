package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// to returns a Client of the server at an address, and counts how often it dials.
func to(t *testing.T, address string) (c *http1Client, dials *atomic.Int64) {
	t.Helper()
	dials = new(atomic.Int64)
	c = &http1Client{dialServer: func(ctx context.Context) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}}
	t.Cleanup(c.Close)
	return c, dials
}

func post(ctx context.Context) *http.Request {
	u := &url.URL{Scheme: "http", Host: "lab.test", Path: "/v1/x", RawQuery: "a=b"}
	return (&http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Header: http.Header{"User-Agent": {"parley"}}}).WithContext(ctx)
}

// askHTTP1 makes an exchange and returns the body of its answer.
func askHTTP1(c *http1Client, req *http.Request, body string) (string, error) {
	req.ContentLength = int64(len(body))
	if req.Method != http.MethodGet {
		req.Body = io.NopCloser(strings.NewReader(body))
	}
	res, err := c.RoundTrip(req)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(res.Body)
	return string(b), errors.Join(err, res.Body.Close())
}

// TestExchanges makes many exchanges with a server of net/http: small and large bodies, answers with a length and in
// chunks. Each gets its own answer, and connections are used again.
func TestExchanges(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Host != "lab.test" || r.URL.RawQuery != "a=b" || r.UserAgent() != "parley" || len(r.TransferEncoding) > 0 {
			t.Errorf("got %v with %v, %v", r.URL, r.Header, err)
		}
		if len(b)%2 == 0 {
			w.(http.Flusher).Flush() // in chunks
		}
		w.Write(b)
	}))
	defer srv.Close()
	c, dials := to(t, srv.Listener.Addr().String())
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range 20 {
				body := strings.Repeat(string(rune('a'+n)), i*i*i*20)
				if got, err := askHTTP1(c, post(t.Context()), body); err != nil || got != body {
					t.Errorf("%d bytes came back for %d: %v", len(got), len(body), err)
				}
			}
		})
	}
	wg.Wait()
	if dials.Load() > 4 {
		t.Errorf("%d connections for 4 calls at a time", dials.Load())
	}
}

// certified returns how a server and a client speak TLS with each other.
func certified(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	client = srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	client.ServerName, client.NextProtos = "example.com", nil
	return &tls.Config{Certificates: srv.TLS.Certificates}, client
}

// script serves each connection with the next of some scripts: what is answered to its requests in turn. Then the
// connection is closed.
func script(t *testing.T, secure bool, scripts ...[]string) (c *http1Client, dials *atomic.Int64, requests *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, dials = to(t, ln.Addr().String())
	if secure {
		server, client := certified(t)
		ln = tls.NewListener(ln, server)
		plain := c.dialServer
		c.dialServer = func(ctx context.Context) (net.Conn, error) {
			conn, err := plain(ctx)
			return tls.Client(conn, client), err
		}
	}
	requests = new(atomic.Int64)
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, answers := range scripts {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(conn)
			for _, answer := range answers {
				req, err := http.ReadRequest(in)
				if err != nil {
					break
				}
				_, _ = io.Copy(io.Discard, req.Body)
				requests.Add(1)
				_, _ = io.WriteString(conn, answer)
			}
			_ = conn.Close()
		}
	})
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { _ = ln.Close() })
	t.Cleanup(c.Close) // before the server waits for its connections
	return c, dials, requests
}

// TestAgain: a connection is used again only after a whole answer with nothing behind it. A request is sent once, and its error says whether it
// was sent over a connection that was used before. A GET is then sent again.
func TestAgain(t *testing.T) {
	t.Parallel()
	const whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	long := "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + strings.Repeat("x", 99999)
	for _, c := range []struct {
		name     string
		scripts  [][]string
		dials    int64
		requests int64
		fails    int // which of the two calls fails
		get      bool
	}{
		{"kept", [][]string{{whole, whole}}, 1, 2, 0, false},
		{"after an announcement", [][]string{{"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + whole, whole}}, 1, 2, 0, false},
		{"no body", [][]string{{"HTTP/1.1 204 No Content\r\n\r\n", whole}}, 1, 2, 0, false},
		{"the server closes it", [][]string{{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"}, {whole}}, 2, 2, 0, false},
		{"the body ends with the connection", [][]string{{"HTTP/1.1 200 OK\r\n\r\nok"}, {whole}}, 2, 2, 0, false},
		{"something follows", [][]string{{whole + "HTTP/1.1 200 OK\r\n\r\n"}, {whole}}, 2, 2, 0, false},
		{"TLS, kept", [][]string{{long, whole}}, 1, 2, 0, false},
		{"TLS, something follows", [][]string{{long + "HTTP/1.1 200 OK\r\n\r\n", whole}, {whole}}, 2, 2, 0, false},
		{"stale, GET", [][]string{{whole, ""}, {whole}}, 2, 3, 0, true},
		{"stale, GET, twice", [][]string{{whole, ""}, {""}, {whole}}, 2, 3, 2, true},
		{"stale", [][]string{{whole, ""}, {whole}}, 1, 2, 2, false},
		{"closed in the middle of the head", [][]string{{whole, "HTTP/1.1 200"}}, 1, 2, 2, false},
		{"closed without an answer", [][]string{{""}, {whole}}, 2, 2, 1, false},
		{"cut off", [][]string{{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"}, {whole}}, 2, 2, 1, false},
		{"not HTTP", [][]string{{"SSH-2.0\r\n\r\n"}, {whole}}, 2, 2, 1, false},
		{"a head without end", [][]string{{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHead)}, {whole}}, 2, 2, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cl, dials, requests := script(t, strings.HasPrefix(c.name, "TLS"), c.scripts...)
			for call := 1; call <= 2; call++ {
				req := post(t.Context())
				body := "{}"
				if c.get {
					req.Method, body = http.MethodGet, ""
				}
				_, err := askHTTP1(cl, req, body)
				if (err != nil) != (call == c.fails) {
					t.Errorf("call %d: %v", call, err)
				}
				if failed, ok := errors.AsType[*exchangeError](err); ok && (!failed.sent || failed.reused != (c.name == "stale")) {
					t.Errorf("call %d: %+v", call, failed)
				}
			}
			if dials.Load() != c.dials || requests.Load() != c.requests {
				t.Errorf("%d connections for %d requests, want %d and %d", dials.Load(), requests.Load(), c.dials, c.requests)
			}
		})
	}
}

// TestEnds: an exchange ends with its context, and its connection is not used again.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"", "HTTP/1.1", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"} {
		synctest.Test(t, func(t *testing.T) {
			var wg sync.WaitGroup
			c := &http1Client{dialServer: func(context.Context) (net.Conn, error) {
				ours, theirs := net.Pipe()
				wg.Go(func() {
					_, _ = http.ReadRequest(bufio.NewReader(theirs))
					_, _ = io.WriteString(theirs, answer)
					_, _ = io.Copy(io.Discard, theirs) // until the client is gone
				})
				return ours, nil
			}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			if _, err := askHTTP1(c, post(ctx), ""); err == nil || time.Since(start) != time.Minute {
				t.Errorf("%q: %v after %v", answer, err, time.Since(start))
			}
			if len(c.idle) > 0 {
				t.Errorf("%q: the connection is kept", answer)
			}
			wg.Wait()
		})
	}
}

// TestUnread: an exchange over TLS ends with its context, also if the server has stopped to read.
func TestUnread(t *testing.T) {
	t.Parallel()
	server, client := certified(t)
	client.Time = func() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) } // the time of synctest is earlier than the certificate's
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c := &http1Client{dialServer: func(ctx context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			wg.Go(func() { _ = tls.Server(theirs, server).HandshakeContext(ctx) })
			return handshake(ctx, ours, client)
		}}
		server.SessionTicketsDisabled = true // nobody reads them
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if _, err := askHTTP1(c, post(ctx), "{}"); err == nil || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		wg.Wait()
	})
}

// TestHandshake: a server that accepts connections and says nothing is named as what it is.
func TestHandshake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		if _, err := handshake(t.Context(), ours, &tls.Config{ServerName: "lab.test"}); err != errHandshake {
			t.Errorf("got %v", err)
		}
	})
}

// TestSilent: a connection is silent only if the server sends nothing and does not close it.
func TestSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, do := range map[string]func(net.Conn){
			"nothing": func(net.Conn) {},
			"a byte":  func(c net.Conn) { _, _ = c.Write([]byte("x")) },
			"an end":  func(c net.Conn) { _ = c.Close() },
		} {
			ours, theirs := net.Pipe()
			go do(theirs)
			k := newConn(ours)
			if got := k.silent(time.Now().Add(time.Millisecond)); got != (name == "nothing") {
				t.Errorf("%s: %v", name, got)
			}
			_ = k.cut()
			_ = theirs.Close()
		}
	})
}

// TestIdle: connections that are not used are closed after a while, and those that come back after Close at once.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		var open atomic.Int64
		c := &http1Client{dialServer: func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			open.Add(1)
			wg.Go(func() {
				for in := bufio.NewReader(theirs); ; {
					if _, err := http.ReadRequest(in); err != nil {
						open.Add(-1)
						return
					}
					_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			})
			return ours, nil
		}}
		want := func(n int64) {
			t.Helper()
			if synctest.Wait(); open.Load() != n {
				t.Errorf("%d connections are open, want %d", open.Load(), n)
			}
		}
		first, err := c.RoundTrip(post(t.Context()))
		second, err2 := c.RoundTrip(post(t.Context()))
		if err := errors.Join(err, err2, first.Body.Close()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(idleFor / 2)
		_ = second.Body.Close()
		want(2)
		time.Sleep(idleFor/2 + time.Second)
		want(1)
		time.Sleep(idleFor)
		want(0)
		last, err := c.RoundTrip(post(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		want(1)
		_ = last.Body.Close()
		want(0)
		wg.Wait()
	})
}

// TestHead: what would break the head of a request is refused, and nothing is sent.
func TestHead(t *testing.T) {
	t.Parallel()
	c := &http1Client{dialServer: func(context.Context) (net.Conn, error) { return nil, errors.New("dialed") }}
	for name, change := range map[string]func(*http.Request){
		"value":   func(r *http.Request) { r.Header["X"] = []string{"a\r\nb: c"} },
		"name":    func(r *http.Request) { r.Header["X: y\r\nZ"] = []string{"a"} },
		"no name": func(r *http.Request) { r.Header[""] = []string{"a"} },
		"method":  func(r *http.Request) { r.Method = "GET /" },
		"host":    func(r *http.Request) { r.Host = "lab\r\nx: y" },
		"query":   func(r *http.Request) { r.URL.RawQuery = "a b\r\nc: d" },
	} {
		req := post(t.Context())
		change(req)
		if _, err := askHTTP1(c, req, ""); err == nil || err.Error() == "dialed" {
			t.Errorf("%s: %v", name, err)
		}
	}
	req := post(t.Context())
	req.Header = http.Header{"B": {" b\t"}, "A": {"1", "2"}, "Content-Length": {"99"}, "Transfer-Encoding": {"chunked"}}
	req.ContentLength = 7
	b, err := appendHead(nil, req)
	if want := "POST /v1/x?a=b HTTP/1.1\r\nHost: lab.test\r\nA: 1\r\nA: 2\r\nB: b\r\nContent-Length: 7\r\n\r\n"; err != nil || string(b) != want {
		t.Errorf("got %q, %v", b, err)
	}
}
