package transport

import (
	"bufio"
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
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

// TestShared makes 500 calls at once to three kinds of servers. Over HTTP/2 they share a few
// connections. A server that speaks only HTTP/1.1 gets one connection per call.
func TestShared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		start func(*httptest.Server)
		proto int
		max   int64 // connections
	}{
		{"TLS, HTTP/2", func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }, 2, 8},
		{"TLS, HTTP/1.1 only", func(s *httptest.Server) { s.StartTLS() }, 1, 501},
		{"no TLS, HTTP/2", func(s *httptest.Server) {
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetUnencryptedHTTP2(true)
			s.Start()
		}, 2, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const calls = 500
			var conns atomic.Int64
			together := barrier(calls)
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor != c.proto {
					http.Error(w, "spoke "+r.Proto, http.StatusTeapot)
					return
				}
				together()
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, "{}")
			}))
			srv.Config.ConnState = countNew(&conns)
			c.start(srv)
			defer srv.Close()
			ask(t, srv.URL, calls)
			if n := conns.Load(); n > c.max {
				t.Errorf("%d connections for %d calls, want at most %d", n, calls, c.max)
			}
		})
	}
}

// ask makes n calls at once, each of which must succeed.
func ask(t *testing.T, url string, n int) {
	t.Helper()
	cl, err := New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: url, HTTP2: true}, Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			a, err := cl.Do(t.Context(), Request{Path: "/x", Body: []byte("{}")})
			if err != nil {
				t.Error(err)
				return
			}
			defer a.Close()
			if _, err := a.Bytes(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// barrier returns a function that returns when n goroutines have called it.
func barrier(n int64) func() {
	all := make(chan struct{})
	var here atomic.Int64
	return func() {
		if here.Add(1) == n {
			close(all)
		}
		<-all
	}
}

func countNew(n *atomic.Int64) func(c netConn, s http.ConnState) {
	return func(_ netConn, s http.ConnState) {
		if s == http.StateNew {
			n.Add(1)
		}
	}
}

func TestUntrusted(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	url := strings.Replace(srv.URL, "127.0.0.1", "localhost", 1) // which the certificate does not name
	cl, err := New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: url}, Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	_, err = cl.Do(t.Context(), Request{Path: "/x", Body: []byte("{}")})
	if e := llm.AsError(err); e.Kind != llm.KindTransport || !e.Final || e.Uncertain {
		t.Errorf("got %v, final %v, uncertain %v", e, e.Final, e.Uncertain)
	}
}

// TestRefusesLarge: a server refuses a large body without reading it, and the call gets its answer.
func TestRefusesLarge(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
		}
		<-ended
	})
	cl, err := New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "http://" + ln.Addr().String(), Timeout: 5 * time.Second}, Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = cl.Do(t.Context(), Request{Path: "/x", Body: make([]byte, 32<<20)})
	if e := llm.AsError(err); e.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("got %v", err)
	}
	close(ended)
	wg.Wait()
	_ = errors.Join(cl.Close(), ln.Close())
}

// TestUnzipCloses: Close closes the body of a compressed answer, whether it was read or not and whether it is compressed or not.
func TestUnzipCloses(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{false, true} {
		in, out := io.Pipe()
		a := &Answer{Header: http.Header{"Content-Encoding": {"gzip"}}, body: in}
		if err := a.unzip(); err != nil {
			t.Fatal(err)
		}
		if reads {
			go out.Write([]byte("this is not compressed"))
			if _, err := a.body.Read(make([]byte, 10)); err == nil || !isGzip(err) {
				t.Errorf("got %v", err)
			}
		}
		_ = a.body.Close()
		if _, err := out.Write(nil); err != io.ErrClosedPipe {
			t.Errorf("reads %v: the body is open: %v", reads, err)
		}
	}
}

// TestRoom checks that calls over HTTP/2 share connections up to a number, and that a call that has ended makes room.
func TestRoom(t *testing.T) {
	t.Parallel()
	p := newPool(true, &url.URL{Scheme: "http", Host: "lab.test"})
	defer p.close()
	var leases []lease
	for range 2 { // the second time nothing is new
		for range maxStreams + 1 {
			l, err := p.take(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
		}
		if len(p.shards) != 2 || p.shards[0].load != maxStreams || p.shards[1].load != 1 {
			t.Errorf("%d connections", len(p.shards))
		}
		for _, l := range leases {
			p.release(l)
		}
		leases = nil
		for _, s := range p.shards {
			if s.load != 0 {
				t.Errorf("a connection is still counted as carrying %d calls", s.load)
			}
		}
	}
}
