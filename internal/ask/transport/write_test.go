package transport

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"parley/internal/ask/provider"
	"parley/llm"
)

// TestOneWrite checks that a small request is sent in one piece: its header and its body.
func TestOneWrite(t *testing.T) {
	t.Parallel()
	c := piped(t, provider.Provider{}, nil)
	c.pool.Small.Dial = func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			b := make([]byte, 64<<10)
			n, err := theirs.Read(b) // what one Write wrote
			if err != nil || !bytes.HasSuffix(b[:n], []byte(`{"model":"m"}`)) {
				t.Errorf("the first write is %q, %v", b[:n], err)
				return
			}
			io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		}()
		return ours, nil
	}
	a, err := c.Do(t.Context(), Request{Path: "/chat/completions", Body: []byte(`{"model":"m"}`)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if !a.sent.Load() {
		t.Error("the request is not recorded as sent")
	}
	if b, err := a.Bytes(t.Context()); err != nil || string(b) != "{}" {
		t.Errorf("Bytes = %q, %v", b, err)
	}
}

// TestBodies sends bodies of many sizes at once, which share buffers: each must arrive as it was written, over
// HTTP/1.1 and HTTP/2, also if the server answers some of them before it has read them.
func TestBodies(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		early := r.ContentLength%3 == 0
		if early {
			_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always is
			io.WriteString(w, "{}")
			w.(http.Flusher).Flush()
		}
		b, err := io.ReadAll(r.Body)
		if !early && (err != nil || int64(len(b)) != r.ContentLength) {
			t.Errorf("%d bytes of %d: %v", len(b), r.ContentLength, err)
		}
		if len(b) > 0 && bytes.Count(b, b[:1]) != len(b) {
			t.Errorf("a body of %d bytes is mixed with another", len(b))
		}
		if !early {
			io.WriteString(w, "{}")
		}
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	defer srv.Close()
	for _, http2 := range []bool{false, true} {
		letters := codec()
		letters.Append = func(dst []byte, req *llm.Request, _ provider.Capability, _ bool) ([]byte, []string, error) {
			return append(dst, bytes.Repeat([]byte{'a' + byte(req.Sample%26)}, req.MaxTokens)...), nil, nil
		}
		m, err := Open(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL, HTTP2: http2}, letters, nil)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				for i := range 40 {
					req := &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("?")}, Sample: 40*n + i, MaxTokens: 1 + (n+1)*i*i*29}
					_, _ = m.Ask(t.Context(), req) // an early answer may end the connection
				}
			})
		}
		wg.Wait()
		m.Close()
	}
}

// TestSentAgain: a request that is sent again, with a new key and over a new connection, has the same body, although
// its memory was given back when it was first sent.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bodies []string
	var m *Model
	command, set := printer(t)
	set("old")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if string(b) == "other" {
			io.WriteString(w, "{}")
			return
		}
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(b))
		if len(bodies)%2 == 1 { // another call uses the memory
			if _, err := m.Ask(t.Context(), &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("other")}}); err != nil {
				t.Error(err)
			}
		}
		switch len(bodies) {
		case 1:
			set("new")
			w.WriteHeader(http.StatusUnauthorized)
		case 3: // this connection was used before
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
			return
		}
		io.WriteString(w, "{}")
	}))
	defer srv.Close()
	texts := codec()
	var written atomic.Int32
	texts.Append = func(dst []byte, req *llm.Request, _ provider.Capability, _ bool) ([]byte, []string, error) {
		written.Add(1)
		return append(dst, req.Messages[0].Parts[0].Text...), nil, nil
	}
	var err error
	if m, err = Open(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL, KeyCommand: command}, texts, nil); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, text := range []string{"first", "second"} {
		if _, err := m.Ask(t.Context(), &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User(text)}}); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"first", "first", "second", "second"}; !slices.Equal(bodies, want) {
		t.Errorf("sent %q, want %q", bodies, want)
	}
	if n := written.Load(); n != 6 {
		t.Errorf("bodies were written %d times, want once for each request that was sent", n)
	}
}
