package transport

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"parley/internal/ask/provider"
	"parley/llm"
)

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
	c, err := New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL + "/v1", KeyEnv: "WIRE_RAW_KEY", Timeout: 2 * time.Second}, Config{})
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
	c, err := New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL + "/v1", HTTP2: true}, Config{})
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
