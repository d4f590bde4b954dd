package auth

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, header, value string
		want                int
	}{
		{"none sent", "", "", 401},
		{"bearer", "Authorization", "Bearer two", 200},
		{"not as a bearer", "Authorization", "two", 401},
		{"own header", "X-Api-Key", "one", 200},
		{"wrong", "X-Api-Key", "on", 401},
		{"longer", "Authorization", "Bearer one ", 401},
		{"both keys", "Authorization", "Bearer onetwo", 401},
	} {
		g := &Guard{Keys: HashKeys([]string{"one", "two"})}
		r := request("127.0.0.1:8090", "127.0.0.1:8090")
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		if got := status(g.refusal(r)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	g := &Guard{Keys: HashKeys([]string{"one"}), Public: func(*http.Request) bool { return true }}
	if why := g.refusal(request("127.0.0.1:8090", "127.0.0.1:8090")); why != nil {
		t.Error("a public request needs a key:", why)
	}
	if g.refusal(request("evil.example:8090", "127.0.0.1:8090")) == nil {
		t.Error("a public request is answered under any name")
	}
}

// request returns a request to a local address with a Host.
func request(host, local string) *http.Request {
	at, err := net.ResolveTCPAddr("tcp", local)
	if err != nil {
		panic(err)
	}
	ctx := context.WithValue(context.Background(), http.LocalAddrContextKey, net.Addr(at))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	if err != nil {
		panic(err)
	}
	r.Host = host
	return r
}

func status(r *Refusal) int {
	if r == nil {
		return http.StatusOK
	}
	return r.Status
}

// TestHost tries what a rebinding page, a proxy or a careless client sends in Host.
func TestHost(t *testing.T) {
	t.Parallel()
	const here = "127.0.0.1:8090"
	for _, c := range []struct {
		host, local string
		tls, ok     bool
	}{
		{"127.0.0.1:8090", here, false, true},
		{"localhost:8090", here, false, true},
		{"LocalHost:8090", here, false, true},
		{"[::1]:8090", "[::1]:8090", false, true},
		{"[0:0:0:0:0:0:0:1]:8090", "[::1]:8090", false, true},
		{"192.168.1.5:8090", "192.168.1.5:8090", false, true},
		{"192.168.1.5:8090", "[::ffff:192.168.1.5]:8090", false, true},
		{"localhost", "127.0.0.1:80", false, true},
		{"[::1]", "[::1]:80", false, true},
		{"localhost", "127.0.0.1:443", true, true},
		{"parley.example", here, false, true},
		{"parley.example:443", here, false, true},
		{"PARLEY.example:99", here, false, true},
		{"lab.example:9000", here, false, true},

		{"", here, false, false},
		{"evil.example:8090", here, false, false},
		{"127.0.0.1", here, false, false},
		{"localhost", "127.0.0.1:443", false, false},
		{"localhost", "127.0.0.1:80", true, false},
		{"127.0.0.1:8091", here, false, false},
		{"127.0.0.1:08090x", here, false, false},
		{"127.0.0.1:+8090", here, false, false},
		{"127.0.0.1:", here, false, false},
		{"127.0.0.1:8090:8090", here, false, false},
		{"127.0.0.1.:8090", here, false, false},
		{"localhost.:8090", here, false, false},
		{"localhost.evil.example:8090", here, false, false},
		{"127.0.0.1.nip.io:8090", here, false, false},
		{"evil.example@127.0.0.1:8090", here, false, false},
		{"127.0.0.1:8090@evil.example", here, false, false},
		{"0.0.0.0:8090", here, false, false},
		{"[::]:8090", here, false, false},
		{"127.1:8090", here, false, false},
		{"2130706433:8090", here, false, false},
		{"0x7f000001:8090", here, false, false},
		{"0177.0.0.1:8090", here, false, false},
		{"127.0.0.2:8090", here, false, false},
		{"127.000.000.001:8090", here, false, false},
		{"[::ffff:127.0.0.1]:8090", here, false, false},
		{"[::1%25lo]:8090", "[::1]:8090", false, false},
		{"[::1%lo]:8090", "[::1]:8090", false, false},
		{"::1", "[::1]:80", false, false},
		{"[127.0.0.1]:8090", here, false, false},
		{"[::1", here, false, false},
		{"[::1]8090", "[::1]:8090", false, false},
		{"lab.example:9001", here, false, false},
		{"lab.example", here, false, false},
		{"xparley.example", here, false, false},
		{"parley.example.", here, false, false},
		{"localhost:8090, evil.example", here, false, false},
		{"localhost:8090/", here, false, false},
		{" localhost:8090", here, false, false},
		{":8090", here, false, false},
		{strings.Repeat("a", 1<<16), here, false, false},
	} {
		g := &Guard{Access: Access{Hosts: []string{"parley.example", "lab.example:9000"}}}
		r := request(c.host, c.local)
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		why := g.refusal(r)
		if (why == nil) != c.ok || why != nil && (why.Status != 403 || why.Code != "host_refused" || len(why.Message) > 300) {
			t.Errorf("%.60q at %s: %+v", c.host, c.local, why)
		}
	}
	if (&Guard{}).refusal(request("127.0.0.1:8090", here).WithContext(context.Background())) == nil {
		t.Error("a request of no known connection is answered")
	}
}

// TestOrigin checks that only allowed web pages are served, with or without a key.
func TestOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		header http.Header
		ok     bool
	}{
		{"a program", http.Header{}, true},
		{"a program of Node", http.Header{"Sec-Fetch-Mode": {"cors"}}, true},
		{"a person who typed the address", http.Header{"Sec-Fetch-Site": {"none"}}, true},
		{"allowed", http.Header{"Origin": {"https://app.example"}, "Sec-Fetch-Site": {"cross-site"}}, true},
		{"another", http.Header{"Origin": {"https://evil.example"}}, false},
		{"allowed, with another port", http.Header{"Origin": {"https://app.example:8443"}}, false},
		{"allowed, with another scheme", http.Header{"Origin": {"http://app.example"}}, false},
		{"sandboxed", http.Header{"Origin": {"null"}}, false},
		{"empty", http.Header{"Origin": {""}}, false},
		{"two", http.Header{"Origin": {"https://app.example", "https://evil.example"}}, false},
		{"an image", http.Header{"Sec-Fetch-Site": {"cross-site"}}, false},
		{"a page of another port", http.Header{"Sec-Fetch-Site": {"same-site"}}, false},
		{"a page of another site", http.Header{"Sec-Fetch-Site": {"same-origin"}}, false},
		{"same origin by its name", http.Header{"Origin": {"http://127.0.0.1:8090"}, "Sec-Fetch-Site": {"same-origin"}}, false},
		{"two sites", http.Header{"Sec-Fetch-Site": {"none", "cross-site"}}, false},
		{"a site of the future", http.Header{"Sec-Fetch-Site": {"nearby"}}, false},
	} {
		r := request("127.0.0.1:8090", "127.0.0.1:8090")
		c.header.Set("Authorization", "Bearer k")
		r.Header = c.header
		g := &Guard{Access: Access{Origins: []string{"https://app.example"}}, Keys: HashKeys([]string{"k"})}
		why := g.refusal(r)
		if (why == nil) != c.ok || why != nil && (why.Code != "origin_refused" || !strings.Contains(why.Message, "--allow-origin")) {
			t.Errorf("%s: %+v", c.name, why)
		}
	}
}

func TestAccessIsChecked(t *testing.T) {
	t.Parallel()
	for _, h := range []string{"", "*", "*.example", "http://a", "a/b", "a:", "a:0", "a:99999", "a b", "a@b", "[::1%lo]", "a,b", ":80"} {
		if (Access{Hosts: []string{h}}).Check() == nil {
			t.Errorf("host %q is allowed", h)
		}
	}
	for _, o := range []string{"", "*", "null", "app.example", "https://", "https://*.example", "https://a/", "https://a/b", "https://u@a"} {
		if (Access{Origins: []string{o}}).Check() == nil {
			t.Errorf("origin %q is allowed", o)
		}
	}
	if err := (Access{Hosts: []string{"a", "a.b:80", "[::1]:80", "10.0.0.1"}, Origins: []string{"http://a:1", "app://x"}}).Check(); err != nil {
		t.Error(err)
	}
}

// pipe serves a guard on one in-memory connection with a loopback address.
type pipe struct {
	net.Conn
	local net.Addr
}

func (p pipe) LocalAddr() net.Addr { return p.local }

type oneConn struct {
	conns chan net.Conn
	local net.Addr
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.local }

// talk serves next and passes the client's end of a connection to client.
func talk(t *testing.T, g *Guard, next http.Handler, client func(net.Conn)) {
	t.Helper()
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8090}
	here, there := net.Pipe()
	l := &oneConn{conns: make(chan net.Conn, 1), local: local}
	l.conns <- pipe{there, local}
	g.Refuse = func(w http.ResponseWriter, _ *http.Request, why Refusal) { http.Error(w, why.Message, why.Status) }
	srv := g.Server(next)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	client(here)
	here.Close()
	close(l.conns)
	srv.Close()
	<-served
}

// TestSlowBody checks that a body or a header that arrives a byte a second ends after the patience, whether or
// not it is read.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]http.HandlerFunc{
		"read": func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err == nil {
				t.Error("the whole body arrived")
			}
		},
		"not read": func(http.ResponseWriter, *http.Request) {},
	} {
		for _, head := range []string{"POST / HTTP/1.1\r\nHost: 127.0.0.1:8090\r\nContent-Length: 100000\r\n\r\n", "GET / HTTP/1.1\r\n"} {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				talk(t, &Guard{ClientTimeout: 10 * time.Second}, next, func(c net.Conn) {
					go func() { _, _ = io.Copy(io.Discard, c) }()
					_, err := io.WriteString(c, head)
					for i := 0; err == nil && i < 100_000; i++ {
						time.Sleep(time.Second)
						_, err = c.Write([]byte("x"))
					}
				})
				if took := time.Since(began); took > 30*time.Second {
					t.Errorf("%s, %.10s: the connection lasted %v", name, head, took)
				}
			})
		}
	}
}

// TestSlowAnswer checks that the patience is only for the request: an answer may take any time.
func TestSlowAnswer(t *testing.T) {
	t.Parallel()
	for _, head := range []string{
		"GET / HTTP/1.1\r\nHost: 127.0.0.1:8090\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: 127.0.0.1:8090\r\nContent-Length: 2\r\n\r\nhi",
		"POST / HTTP/1.1\r\nHost: 127.0.0.1:8090\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			next := func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadAll(r.Body); err != nil {
					t.Error(err)
				}
				select {
				case <-time.After(time.Hour):
				case <-r.Context().Done():
					t.Error("the answer was ended:", context.Cause(r.Context()))
				}
				fmt.Fprint(w, "done")
			}
			talk(t, &Guard{ClientTimeout: 10 * time.Second}, http.HandlerFunc(next), func(c net.Conn) {
				go func() { _, _ = io.WriteString(c, head) }()
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = res.Body.Close() }()
				b, err := io.ReadAll(res.Body)
				if string(b) != "done" || err != nil {
					t.Errorf("%q %v", b, err)
				}
			})
		})
	}
}

// TestTargets checks that the guard sees unusual request targets.
func TestTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		head   string
		status int
	}{
		{"GET / HTTP/1.1\r\nHost: localhost:8090\r\n\r\n", 200},
		{"GET http://evil.example/ HTTP/1.1\r\nHost: localhost:8090\r\n\r\n", 403},
		{"GET http://localhost:8090/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
		{"CONNECT localhost:8090 HTTP/1.1\r\nHost: localhost:8090\r\n\r\n", 403},
		{"GET / HTTP/1.0\r\n\r\n", 403},
		{"POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 100\r\n\r\n{", 403},
		{"GET / HTTP/1.1\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: localhost:8090\r\nHost: evil.example\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost:8090\r\n\r\n", 403},
		{"GET / HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", 403},
		{"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
		{"GET //evil.example/ HTTP/1.1\r\nHost: localhost:8090\r\n\r\n", 200},
	} {
		next := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
		talk(t, &Guard{}, http.HandlerFunc(next), func(conn net.Conn) {
			go func() { _, _ = io.WriteString(conn, c.head) }()
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%q: %v", c.head, err)
			}
			defer func() { _ = res.Body.Close() }()
			if res.StatusCode != c.status {
				t.Errorf("%q: %v, want %d", c.head, res, c.status)
			}
		})
	}
}
