package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"parley/internal/ask/provider"
	"parley/internal/kit/sse"
	"parley/llm"
)

type netConn = net.Conn

// piped returns a Client whose connections are pipes to serve, so that a test can use fake time.
func piped(t *testing.T, p provider.Provider, serve func(net.Conn, *http.Request)) *Client {
	t.Helper()
	p.Name, p.Dialect, p.BaseURL = "lab", "openai", "http://lab.test/v1"
	c, err := New(p, Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.pool.smallUnusable = false
	c.pool.small.dialServer = func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			req, err := http.ReadRequest(bufio.NewReader(theirs))
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			serve(theirs, req)
			io.Copy(io.Discard, theirs) // until the client is gone
		}()
		return ours, nil
	}
	return c
}

// TestSilence uses servers that become silent at different points, and checks when the call ends.
func TestSilence(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	for _, c := range []struct {
		name    string
		timeout time.Duration
		serve   func(net.Conn, *http.Request)
		want    time.Duration
	}{
		{"at once, by default", 0, func(net.Conn, *http.Request) {}, 10 * time.Minute},
		{"at once", time.Minute, func(net.Conn, *http.Request) {}, time.Minute},
		{"after the header", time.Minute, func(c net.Conn, _ *http.Request) { io.WriteString(c, head) }, time.Minute},
		{"after signs of life", time.Minute, func(c net.Conn, _ *http.Request) {
			io.WriteString(c, head)
			for range 5 {
				time.Sleep(50 * time.Second)
				io.WriteString(c, ": still here\n\n")
			}
		}, 5*50*time.Second + time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cl := piped(t, provider.Provider{Timeout: c.timeout}, c.serve)
				start := time.Now()
				a, err := cl.Do(t.Context(), Request{Path: "/x", Body: []byte("{}")})
				if err == nil {
					err = a.Events(t.Context(), func(sse.Event) (bool, error) { return false, nil })
					a.Close()
				}
				if e := llm.AsError(err); e == nil || e.Kind != llm.KindTimeout || !e.Uncertain {
					t.Errorf("got %v", err)
				}
				if d := time.Since(start); d != c.want {
					t.Errorf("ended after %v, want %v", d, c.want)
				}
				cl.Close()
			})
		})
	}
}

// trickle sends text repeatedly, one byte per second.
func trickle(c net.Conn, head, text string) {
	if _, err := io.WriteString(c, head); err != nil {
		return
	}
	for i := 0; ; i++ {
		time.Sleep(time.Second)
		if _, err := c.Write([]byte{text[i%len(text)]}); err != nil {
			return
		}
	}
}

// TestTrickle uses servers that send one byte per second, and checks when each way to read ends.
func TestTrickle(t *testing.T) {
	t.Parallel()
	const plain, stream = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	whole := func(ctx context.Context, a *Answer) error { _, err := a.Bytes(ctx); return err }
	events := func(ctx context.Context, a *Answer) error {
		return a.Events(ctx, func(sse.Event) (bool, error) { return false, nil })
	}
	lines := func(ctx context.Context, a *Answer) error { return a.Lines(ctx, func([]byte) error { return nil }) }
	raw := func(ctx context.Context, a *Answer) (err error) {
		for b := make([]byte, 8); err == nil; {
			_, err = a.Read(ctx, b)
		}
		return err
	}
	live := func(ctx context.Context, a *Answer) (err error) {
		for b := make([]byte, 8); err == nil; {
			_, err = a.Read(ctx, b)
			a.Alive()
		}
		return err
	}
	for _, c := range []struct {
		name, head, text string
		timeout          time.Duration
		read             func(context.Context, *Answer) error
		want             time.Duration
	}{
		{"a whole answer", plain, " ", time.Minute, whole, time.Minute},
		{"an event that does not end", stream, "x", time.Minute, events, time.Minute},
		{"a line that does not end", plain, "x", time.Minute, lines, time.Minute},
		{"a body that is handed on", plain, "x", time.Minute, raw, time.Minute},
		{"a stream of comments", stream, ":\n", time.Minute, events, time.Hour},
		{"lines without end", plain, "x\n", time.Minute, lines, time.Hour},
		{"a stream that is handed on", stream, "x", time.Minute, live, time.Hour},
		{"a stream for which more than an hour is allowed", stream, ":\n", 2 * time.Hour, events, 2 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cl := piped(t, provider.Provider{Timeout: c.timeout}, func(conn net.Conn, _ *http.Request) { trickle(conn, c.head, c.text) })
				start := time.Now()
				a, _, err := cl.Raw(t.Context(), Request{Path: "/x", Body: []byte("{}")})
				if err != nil {
					t.Fatal(err)
				}
				err = c.read(t.Context(), a)
				a.Close()
				if e := llm.AsError(err); e == nil || e.Kind != llm.KindTimeout || !e.Uncertain {
					t.Errorf("got %v", err)
				}
				if d := time.Since(start); d != c.want {
					t.Errorf("ended after %v, want %v: %v", d, c.want, err)
				}
				cl.Close()
				time.Sleep(2 * time.Second) // the server notices
			})
		})
	}
}

// TestSlowTaker checks that the time of the caller does not count as the server's.
func TestSlowTaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cl := piped(t, provider.Provider{Timeout: time.Minute}, func(c net.Conn, _ *http.Request) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\na\nb\nc\n")
		})
		a, err := cl.Do(t.Context(), Request{Method: http.MethodGet, Path: "/files"})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		err = a.Lines(t.Context(), func([]byte) error { n++; time.Sleep(time.Hour); return nil })
		a.Close()
		cl.Close()
		if err != nil || n != 3 {
			t.Errorf("%d lines, %v", n, err)
		}
	})
}

// TestSlowUpload checks that a longer timeout of a call applies only until its answer begins.
func TestSlowUpload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cl := piped(t, provider.Provider{Timeout: time.Minute}, func(c net.Conn, _ *http.Request) {
			time.Sleep(10 * time.Minute)
			trickle(c, "HTTP/1.1 200 OK\r\n\r\n", " ")
		})
		start := time.Now()
		a, err := cl.Do(t.Context(), Request{Path: "/files", Body: []byte("{}"), Timeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Bytes(t.Context())
		a.Close()
		cl.Close()
		if d := time.Since(start); llm.KindOf(err) != llm.KindTimeout || d != 11*time.Minute {
			t.Errorf("after %v: %v", d, err)
		}
		time.Sleep(2 * time.Second) // the server notices
	})
}

// TestLingering uses a server that keeps the connection open after the last event of a stream. The
// answer waits only briefly.
func TestLingering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cl := piped(t, provider.Provider{}, func(c net.Conn, _ *http.Request) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: last\n\n")
		})
		start := time.Now()
		a, err := cl.Do(t.Context(), Request{Path: "/x", Body: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		err = a.Events(t.Context(), func(e sse.Event) (bool, error) { return string(e.Data) == "last", nil })
		a.Close()
		if err != nil || time.Since(start) > time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		cl.Close()
	})
}

func TestLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cl := piped(t, provider.Provider{}, func(c net.Conn, r *http.Request) {
			body := `{"a":1}` + "\n\nbad\n" + `{"b":2}`
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"+body)
		})
		a, err := cl.Do(t.Context(), Request{Method: http.MethodGet, Path: "/files?x=1"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = a.Lines(t.Context(), func(b []byte) error { got = append(got, string(b)); return nil })
		a.Close()
		cl.Close()
		if err != nil || len(got) != 3 || got[1] != "bad" || got[2] != `{"b":2}` {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// TestRaw reads answers of any status, and distinguishes silence from an end.
func TestRaw(t *testing.T) {
	t.Setenv("WIRE_RAW_KEY", "sk-raw-secret")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/refused":
			w.WriteHeader(http.StatusTeapot)
			io.WriteString(w, "key "+r.Header.Get("Authorization"))
		case "/v1/stalls":
			io.WriteString(w, "so")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	defer srv.Close()
	c, err := New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL + "/v1", KeyEnv: "WIRE_RAW_KEY", Timeout: 2 * time.Second}, Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, status, err := c.Raw(t.Context(), Request{Path: "/refused", Body: []byte("{}")})
	if err != nil || status != http.StatusTeapot {
		t.Fatal(status, err)
	}
	b := make([]byte, 100)
	n, err := a.Read(t.Context(), b)
	if got := string(a.Hide().Bytes(b[:n])); got != "key [key]" || err != nil && err != io.EOF {
		t.Errorf("%q, %v", got, err)
	}
	a.Close()

	if a, _, err = c.Raw(t.Context(), Request{Path: "/stalls", Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if n, err = io.ReadFull(reader(func(p []byte) (int, error) { return a.Read(t.Context(), p) }), b[:2]); err != nil || string(b[:n]) != "so" {
		t.Fatalf("%q, %v", b[:n], err)
	}
	if _, err = a.Read(t.Context(), b); llm.KindOf(err) != llm.KindTimeout || !strings.Contains(err.Error(), "stalled") {
		t.Errorf("%v", err)
	}
}

// TestForgetsRequest checks that an answer that takes long does not keep what was sent, over HTTP/2.
func TestForgetsRequest(t *testing.T) {
	t.Parallel()
	wrote := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-wrote
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	defer srv.Close()
	c, err := New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL + "/v1", HTTP2: true}, Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(wrote) }})
	body := bytes.Repeat([]byte(" "), 1000)
	sent := weak.Make(&body[0])
	a, _, err := c.Raw(ctx, Request{Path: "/chat/completions", Body: body})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	runtime.GC()
	if sent.Value() != nil {
		t.Error("the request is kept")
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// TestOneWrite checks that a small request is sent in one piece: its header and its body.
func TestOneWrite(t *testing.T) {
	t.Parallel()
	c := piped(t, provider.Provider{}, nil)
	c.pool.small.dialServer = func(context.Context) (net.Conn, error) {
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

// TestSentAgain: a request that is sent again with a new key has the same body, although
// its memory was given back when it was first sent. One whose connection breaks is not sent again, and its error says what is known.
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
		_, err := m.Ask(t.Context(), &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User(text)}})
		if e := llm.AsError(err); (e != nil) != (text == "second") || e != nil && (!e.Stale || !e.Uncertain || e.Unreachable) {
			t.Errorf("%s: %+v", text, e)
		}
	}
	if want := []string{"first", "first", "second"}; !slices.Equal(bodies, want) {
		t.Errorf("sent %q, want %q", bodies, want)
	}
	if n := written.Load(); n != 5 {
		t.Errorf("bodies were written %d times, want once for each request that was sent", n)
	}
}

// relayed reads an answer as the gateway does.
func relayed(ctx context.Context, a *Answer) (err error) {
	all, p := 0, make([]byte, 32<<10)
	for err == nil {
		var n int
		n, err = a.Read(ctx, p)
		if all += n; err == nil {
			err = a.Keep(ctx, all)
		}
	}
	return err
}

// TestEndlessAnswers: of a server whose answers have no end, few are read far at the same time, and every call ends.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(context.Context, *Answer) error{
		"relayed": relayed,
		"whole":   func(ctx context.Context, a *Answer) error { _, err := a.Bytes(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { endless(t, read) })
		})
	}
}

func endless(t *testing.T, read func(context.Context, *Answer) error) {
	t.Helper()
	line := strings.Repeat("x", 64<<10)
	var far atomic.Int64
	gate := make(chan struct{})
	cl := piped(t, provider.Provider{}, func(c net.Conn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
		for range 2 * LargeSize / len(line) {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
		far.Add(1)
		<-gate
		c.Close()
	})
	defer cl.Close()
	var wg sync.WaitGroup
	for range 3 * cap(cl.places) {
		wg.Go(func() {
			a, _, err := cl.Raw(t.Context(), Request{Path: "/x", Body: []byte("{}")})
			if err != nil {
				t.Error(err)
				return
			}
			defer a.Close()
			if err := read(t.Context(), a); err == nil {
				t.Error("no error")
			}
		})
	}
	synctest.Wait()
	if n := far.Load(); n != int64(cap(cl.places)) {
		t.Errorf("%d answers are far at once, want %d", n, cap(cl.places))
	}
	close(gate)
	wg.Wait()
	if len(cl.places) > 0 {
		t.Errorf("%d places are taken", len(cl.places))
	}
}

// TestWaitForRoomIsNotSilence: an answer that waits for other large ones longer than the timeout arrives all the same. Small
// answers, and those that are read line by line, do not wait. A call that is given up stops waiting.
func TestWaitForRoomIsNotSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cl := piped(t, provider.Provider{Timeout: time.Minute}, func(c net.Conn, r *http.Request) {
			size := 2 * LargeSize
			if strings.HasSuffix(r.URL.Path, "small") {
				size = LargeSize / 2
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n["+strings.Repeat("1,", size/2)+"1]")
			c.Close()
		})
		defer cl.Close()
		ask := func(ctx context.Context, path string) *Answer {
			a, err := cl.Do(ctx, Request{Path: path, Body: []byte("{}")})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		bytes := func(ctx context.Context, path string) (int, error) {
			a := ask(ctx, path)
			defer a.Close()
			b, err := a.Bytes(ctx)
			return len(b), err
		}
		var held []*Answer
		for range cap(cl.places) {
			a := ask(t.Context(), "/large")
			if err := a.Keep(t.Context(), LargeSize); err != nil {
				t.Fatal(err)
			}
			held = append(held, a)
		}
		if n, err := bytes(t.Context(), "/small"); err != nil || n < LargeSize/2 {
			t.Errorf("a small answer: %d bytes, %v", n, err)
		}
		lines := ask(t.Context(), "/large")
		if err := lines.Lines(t.Context(), func([]byte) error { return nil }); err != nil {
			t.Errorf("lines: %v", err)
		}
		lines.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		if _, err := bytes(ctx, "/large"); llm.AsError(err).Kind != llm.KindTimeout || time.Until(deadline(ctx)) > 0 {
			t.Errorf("a call that ends: %v", err)
		}
		time.AfterFunc(5*time.Minute, func() {
			for _, a := range held {
				a.Close()
			}
		})
		if n, err := bytes(t.Context(), "/large"); err != nil || n < 2*LargeSize {
			t.Errorf("a large answer: %d bytes, %v", n, err)
		}
	})
}

func deadline(ctx context.Context) time.Time {
	at, _ := ctx.Deadline()
	return at
}

// TestCallContext: a callContext is a context that ends once, with its parent or by itself, and so do the contexts and functions that depend
// on it.
func TestCallContext(t *testing.T) {
	t.Parallel()
	own, outer := errors.New("its own"), errors.New("of the call")
	for name, c := range map[string]struct {
		end  func(e *callContext, cancel context.CancelCauseFunc)
		want error
	}{
		"by itself":      {func(e *callContext, _ context.CancelCauseFunc) { e.end(own) }, own},
		"twice":          {func(e *callContext, _ context.CancelCauseFunc) { e.end(own); e.end(outer) }, own},
		"with its call":  {func(_ *callContext, cancel context.CancelCauseFunc) { cancel(outer) }, outer},
		"before it":      {func(e *callContext, cancel context.CancelCauseFunc) { e.end(own); cancel(outer) }, own},
		"with its child": {nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			e := &callContext{}
			e.begin(ctx)
			defer e.end(context.Canceled)
			child, stop := context.WithCancel(e)
			defer stop()
			called := 0
			e.AfterFunc(func() { called++ })
			if !e.AfterFunc(func() { t.Errorf("%s: a stopped function was called", name) })() || e.Err() != nil || child.Err() != nil {
				t.Errorf("%s: it has ended already: %v", name, e.Err())
			}
			if c.end == nil {
				stop()
				synctest.Wait()
				if e.reason() != nil {
					t.Errorf("%s: it ended too", name)
				}
				return
			}
			c.end(e, cancel)
			synctest.Wait()
			<-e.Done()
			<-child.Done()
			if e.reason() != c.want || e.Err() != context.Canceled || called != 1 {
				t.Errorf("%s: ended for %v with %v after %d calls", name, e.reason(), e.Err(), called)
			}
			late := make(chan struct{})
			if e.AfterFunc(func() { close(late) })() {
				t.Errorf("%s: what is called at once was stopped", name)
			}
			<-late
		})
	}
}
