package dialect_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim/simhttp"
	"parley/llm"
)

// TestVertexTier checks that the tier of a request to Vertex AI is in the header, and that the answer names the one that was used.
func TestVertexTier(t *testing.T) {
	t.Parallel()
	s, err := simhttp.New(simhttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	defer srv.Close()
	for _, stream := range []string{"always", "never"} {
		p := provider.Provider{Name: "lab", Dialect: "gemini", BaseURL: srv.URL + "/v1/projects/p/locations/global/publishers/google", Stream: stream, Session: provider.SessionHeader}
		m, err := dialect.Open(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		for asked, want := range map[string]string{"": "standard", "standard": "standard", "flex": "flex", "priority": "priority"} {
			req := hello()
			req.Model, req.Tier, req.Session = "lab/m", asked, "s-1"
			if r, err := m.Ask(t.Context(), req); err != nil || r.Tier != want {
				t.Errorf("%q, stream %s: %+v, %v", asked, stream, r, err)
			}
		}
		m.(io.Closer).Close()
	}
}

// TestCloudPaths checks the addresses and bodies of Azure and Vertex AI, whose format is another vendor's.
func TestCloudPaths(t *testing.T) {
	t.Setenv("PARLEY_CLOUD_TEST_KEY", "hunter2")
	for _, c := range []struct {
		preset, path, version string
		stream                bool
		wantURL, header, key  string
		has, hasNot           string
	}{
		{"azure", "/openai/v1", "", false, "/openai/v1/chat/completions", "Api-Key", "hunter2", `"model":"m a"`, "anthropic"},
		{"azure", "/openai", "2024-10-21", true, "/openai/deployments/m%20a/chat/completions?api-version=2024-10-21", "Api-Key", "hunter2", `"stream":true`, "anthropic"},
		{"azure-responses", "/openai", "2025-04-01-preview", false, "/openai/responses?api-version=2025-04-01-preview", "Api-Key", "hunter2", `"model":"m a"`, "anthropic"},
		{"vertex", "/v1/publishers/google", "", true, "/v1/publishers/google/models/m%20a:streamGenerateContent?alt=sse", "Authorization", "Bearer hunter2", `"contents"`, `"model":"`},
		{"vertex-anthropic", "/v1/publishers/anthropic", provider.VertexVersion, false, "/v1/publishers/anthropic/models/m%20a:rawPredict", "Authorization", "Bearer hunter2", `{"anthropic_version":"vertex-2023-10-16","max_tokens":100`, `"model"`},
		{"vertex-anthropic", "/v1/publishers/anthropic", provider.VertexVersion, true, "/v1/publishers/anthropic/models/m%20a:streamRawPredict", "Authorization", "Bearer hunter2", `"stream":true`, `"model"`},
	} {
		p, ok := provider.Lookup(c.preset)
		if !ok {
			t.Fatal(c.preset)
		}
		var url, key, body, version string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			url, key, body, version = r.URL.String(), r.Header.Get(c.header), string(b), r.Header.Get("Anthropic-Version")
			w.WriteHeader(http.StatusTeapot)
		}))
		p.DropKey()
		p.BaseURL, p.APIVersion, p.KeyEnv, p.Stream = srv.URL+c.path, c.version, "PARLEY_CLOUD_TEST_KEY", "never"
		if c.stream {
			p.Stream = "always"
		}
		m, err := dialect.Open(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		req := hello()
		req.Model = "lab/m a"
		_, _ = m.Ask(t.Context(), req) // the server refuses it
		m.(io.Closer).Close()
		srv.Close()
		if url != c.wantURL || key != c.key || !strings.Contains(body, c.has) || strings.Contains(body, c.hasNot) || version != "" {
			t.Errorf("%s: %s, %s %s, version %q: %s", c.preset, url, c.header, key, version, body)
		}
	}
}

// TestGoogleCredentials: a token from Google's credentials is sent with the project of the file, renewed when it is refused, and
// shown nowhere.
func TestGoogleCredentials(t *testing.T) {
	var given atomic.Int32
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"hunter2-token-%d","expires_in":3600,"token_type":"Bearer"}`, given.Add(1))
	}))
	defer tokens.Close()
	file := filepath.Join(t.TempDir(), "credentials.json")
	text := `{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r","quota_project_id":"my-project","token_uri":"` + tokens.URL + `"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	t.Setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "")
	good := "Bearer hunter2-token-1"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != good || r.Header.Get("X-Goog-User-Project") != "my-project" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"code":401,"status":"UNAUTHENTICATED","message":"%s is not valid"}}`, r.Header.Get("Authorization"))
			return
		}
		fmt.Fprintf(w, `{"candidates":[{"content":{"parts":[{"text":"%s"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}`, r.Header.Get("Authorization"))
	}))
	defer srv.Close()
	p, _ := provider.Lookup("vertex")
	p.BaseURL = srv.URL + "/v1/projects/p/locations/global/publishers/google"
	m, err := dialect.Open(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.(io.Closer).Close()
	req := hello()
	req.Model = "vertex/m"
	for n := range int32(3) {
		if n == 2 {
			good = "Bearer hunter2-token-2"
		}
		r, err := m.Ask(t.Context(), req)
		if err != nil || r.Text != "Bearer [key]" || given.Load() != max(1, n) {
			t.Fatalf("call %d, token %d: %+v, %v", n, given.Load(), r, err)
		}
	}
	good = "another"
	if _, err := m.Ask(t.Context(), req); llm.KindOf(err) != llm.KindAuth || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}
