package transport

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/kit/sse"
	"parley/llm"
)

type netConn = net.Conn

// piped returns a Client whose connections are pipes to serve, so that a test can use fake time.
func piped(t *testing.T, p provider.Provider, serve func(net.Conn, *http.Request)) *Client {
	t.Helper()
	p.Name, p.Dialect, p.BaseURL = "lab", "openai", "http://lab.test/v1"
	c, err := New(p, Config{})
	if err != nil {
		t.Fatal(err)
	}
	c.pool.Other = false
	c.pool.Small.Dial = func(context.Context) (net.Conn, error) {
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
