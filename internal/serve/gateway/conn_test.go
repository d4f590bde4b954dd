package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// streamServer answers over a takenStream wherever it can.
type streamServer struct {
	streams takenConns
	srv     *http.Server
	addr    string
	wg      sync.WaitGroup
	gone    chan struct{} // a client went away
	// answer answers a request. over reports whether w is a takenStream.
	answer func(h *streamServer, w http.ResponseWriter, over bool)
}

func openStreams(t *testing.T, answer func(h *streamServer, w http.ResponseWriter, over bool)) *streamServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &streamServer{addr: ln.Addr().String(), gone: make(chan struct{}, 1), answer: answer}
	h.srv = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		l, ok := h.streams.Take(w, r)
		if !ok {
			h.answer(h, w, false)
			return
		}
		h.wg.Go(func() {
			l.Watch(func() { h.gone <- struct{}{} })
			h.answer(h, l, true)
			l.Release(h.srv)
		})
	})}
	h.wg.Go(func() { _ = h.srv.Serve(watchedListener(ln)) })
	t.Cleanup(func() { h.shut(t) })
	return h
}

// shut checks that everything ends without force.
func (h *streamServer) shut(t *testing.T) {
	t.Helper()
	h.streams.Close(false)
	if err := h.srv.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	h.wg.Wait()
	h.streams.End()
	if len(h.streams.open) > 0 {
		t.Errorf("%d connections are not accounted for", len(h.streams.open))
	}
}

func pieces(_ *streamServer, w http.ResponseWriter, _ bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	for _, p := range []string{"", "one ", "", "two"} {
		_, _ = io.WriteString(w, p)
		_ = rc.Flush()
	}
}

// rawRequest is a request as it goes over the wire.
func rawRequest(proto, more string) string {
	return "POST / " + proto + "\r\nHost: x\r\nContent-Length: 2\r\n" + more + "\r\nhi"
}

// readConn reads an answer and compares its body.
func readConn(t *testing.T, in *bufio.Reader, want string) (header http.Header) {
	t.Helper()
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || string(b) != want || res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v: %q %v", err, b, res)
	}
	return res.Header
}

func dial(t *testing.T, h *streamServer) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, bufio.NewReader(c)
}

// TestAgain checks that one connection carries several answers: one after the other, early, and all at once.
func TestAgain(t *testing.T) {
	t.Parallel()
	h := openStreams(t, pieces)
	c, in := dial(t, h)
	for range 3 {
		fmt.Fprint(c, rawRequest("HTTP/1.1", ""))
		readConn(t, in, "one two")
	}
	fmt.Fprint(c, strings.Repeat(rawRequest("HTTP/1.1", ""), 5))
	for range 5 {
		readConn(t, in, "one two")
	}
}

// TestWhole sends an answer with a length.
func TestWhole(t *testing.T) {
	t.Parallel()
	h := openStreams(t, func(_ *streamServer, w http.ResponseWriter, _ bool) {
		w.Header()["Content-Length"] = []string{"5"}
		w.Header()["Content-Type"] = []string{"text/event-stream"}
		w.Header()["X-Odd"] = []string{"a\r\nb: c"}
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "whole")
	})
	c, in := dial(t, h)
	for range 2 {
		fmt.Fprint(c, rawRequest("HTTP/1.1", ""))
		if h := readConn(t, in, "whole"); h.Get("Content-Length") != "5" || h.Get("B") != "" || h.Get("Date") == "" {
			t.Errorf("%v", h)
		}
	}
}

// TestLeaves checks that other versions of HTTP and closing clients stay with the server.
func TestLeaves(t *testing.T) {
	t.Parallel()
	h := openStreams(t, func(h *streamServer, w http.ResponseWriter, over bool) {
		if over {
			t.Error("it was taken over")
		}
		pieces(h, w, over)
	})
	for _, r := range []string{rawRequest("HTTP/1.0", ""), rawRequest("HTTP/1.1", "Connection: close\r\n")} {
		c, in := dial(t, h)
		fmt.Fprint(c, r)
		readConn(t, in, "one two")
		if _, err := in.ReadByte(); err != io.EOF {
			t.Error(err)
		}
	}
}

// TestGone checks that a client that goes away is noticed, before anything is sent and after.
func TestGone(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		h := openStreams(t, func(h *streamServer, w http.ResponseWriter, _ bool) {
			if first {
				pieces(h, w, true)
			}
			<-h.gone
		})
		c, in := dial(t, h)
		fmt.Fprint(c, rawRequest("HTTP/1.1", ""))
		if first {
			if _, err := in.ReadString('\n'); err != nil {
				t.Error(err)
			}
		}
		c.Close()
	}
}

// TestGoneAfterMore checks that a client that sends a part of its next request and then goes away is noticed:
// over a takenStream and, with watchConn, at the server.
func TestGoneAfterMore(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"P", "POST / HTTP/1.1\r\n", strings.Repeat("x", maxAhead+100)} {
		h := openStreams(t, func(h *streamServer, _ http.ResponseWriter, over bool) {
			if !over {
				t.Error("it was not taken over")
			}
			<-h.gone
		})
		c, _ := dial(t, h)
		fmt.Fprint(c, rawRequest("HTTP/1.1", "")+more[:1])
		fmt.Fprint(c, more[1:])
		c.Close()
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, gone := make(chan struct{}), make(chan struct{})
	srv := &http.Server{ReadHeaderTimeout: time.Minute, ConnContext: connContext, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		left := make(chan struct{})
		defer watchConn(r.Context(), func() { close(left) })()
		asked <- struct{}{}
		if r.Header.Get("Stay") == "" {
			<-left
			gone <- struct{}{}
			return
		}
		<-asked
		pieces(nil, w, false)
	})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(watchedListener(ln)) })
	defer wg.Wait()
	defer srv.Close()
	c, in := dial(t, &streamServer{addr: ln.Addr().String()})
	// A client that stays is answered, and so is its next request, which it sent meanwhile in pieces.
	next := rawRequest("HTTP/1.1", "Stay: 1\r\n")
	fmt.Fprint(c, next)
	<-asked
	for i := range 4 {
		fmt.Fprint(c, next[i:i+1])
	}
	asked <- struct{}{}
	readConn(t, in, "one two")
	fmt.Fprint(c, next[4:])
	<-asked
	asked <- struct{}{}
	readConn(t, in, "one two")
	fmt.Fprint(c, rawRequest("HTTP/1.1", ""))
	<-asked
	fmt.Fprint(c, "P")
	c.Close()
	<-gone
}

// TestDrop checks that a dropped answer cannot be taken for a whole one.
func TestDrop(t *testing.T) {
	t.Parallel()
	h := openStreams(t, func(h *streamServer, w http.ResponseWriter, _ bool) {
		pieces(h, w, true)
		w.(*takenStream).Drop()
	})
	c, in := dial(t, h)
	fmt.Fprint(c, rawRequest("HTTP/1.1", ""))
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != io.ErrUnexpectedEOF {
		t.Errorf("%q, %v", b, err)
	}
}

// TestConnClose checks that Close closes idle connections, and those in use only if asked to.
func TestConnClose(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	h := openStreams(t, func(h *streamServer, w http.ResponseWriter, _ bool) {
		pieces(h, w, true)
		begun <- struct{}{}
		<-h.gone
	})
	c, in := dial(t, h)
	fmt.Fprint(c, rawRequest("HTTP/1.1", ""))
	<-begun
	h.streams.Close(false)
	if _, err := in.ReadString('\n'); err != nil {
		t.Error("it was in use")
	}
	h.streams.Close(true)
	if _, err := io.ReadAll(in); err != nil {
		t.Error(err)
	}
}
