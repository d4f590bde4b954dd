package transport

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/internal/provider"
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
	c, err := New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL + "/v1", KeyEnv: "WIRE_RAW_KEY", Timeout: 100 * time.Millisecond}, Config{})
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

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }
