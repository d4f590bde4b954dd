package dialect_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/llm/llmtest"
)

// TestConformance runs the suite over every dialect, streamed and not, against a well-behaved server.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		for _, stream := range []string{"never", "always", "auto"} {
			t.Run(f.name+" "+stream, func(t *testing.T) {
				t.Parallel()
				llmtest.Exercise(t, llmtest.Harness{
					Model:  f.open(t, f.serve, func(p *provider.Provider) { p.Stream = stream }),
					Stall:  f.open(t, stall),
					Name:   "lab/fake-1",
					NoStop: f.name == "responses",

					NoDocumentLinks: f.name == "openai",
					NoAudio:         f.name == "responses" || f.name == "anthropic",
				})
			})
		}
	}
}

// TestConformanceHTTP2 runs the suite over HTTP/2 without TLS.
func TestConformanceHTTP2(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			llmtest.Exercise(t, llmtest.Harness{
				Model: f.openHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
					if r.ProtoMajor != 2 {
						http.Error(w, "not HTTP/2", http.StatusTeapot)
						return
					}
					f.serve(w, r)
				}),
				Stall:  f.openHTTP2(t, stall),
				Name:   "lab/fake-1",
				NoStop: f.name == "responses",

				NoDocumentLinks: f.name == "openai",
				NoAudio:         f.name == "responses" || f.name == "anthropic",
			})
		})
	}
}

// stall never answers. It returns when the caller leaves, which a server notices only after it has
// read the request.
func stall(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    provider.Provider
		want []string
	}{
		{provider.Provider{Name: "lab", Dialect: "opnai", BaseURL: "http://x/v1"}, []string{"lab", "dialect", "openai"}},
		{provider.Provider{Name: "lab", Dialect: "sim"}, []string{"lab", "sim", "app"}},
		{provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "localhost:8000"}, []string{"base_url", "http://"}},
		{provider.Provider{Name: "lab", Dialect: "anthropic"}, []string{"base_url", "missing"}},
		{provider.Provider{Name: "lab", Dialect: "responses", BaseURL: "http://x/v1", KeyEnv: "PARLEY_TEST_NOT_SET"}, []string{"provider lab: the environment variable ", "PARLEY_TEST_NOT_SET", "not set"}},
	} {
		m, err := dialect.Open(c.p)
		if err == nil || m != nil {
			t.Errorf("Open(%+v) = %v, %v: want an error and no model", c.p, m, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("Open(%+v): %q does not say %q", c.p, err, w)
			}
		}
	}
}
