package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/internal/cli/exit"
	"parley/worlds"
)

// collecting starts an OpenTelemetry collector. sent returns what it got since the last time.
func collecting(t *testing.T) (url string, sent func() string) {
	t.Helper()
	var mu sync.Mutex
	var got strings.Builder
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		b, _ := io.ReadAll(r.Body) // a part is enough
		got.WriteString(r.URL.Path)
		got.Write(b)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		defer got.Reset()
		return got.String()
	}
}

// TestTelemetryOfCommands: run and ask send spans and metrics of what they do to the collector that the environment names,
// and none without one.
func TestTelemetryOfCommands(t *testing.T) {
	t.Parallel()
	collector, sent := collecting(t)
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 2\nagents:\n  a: {model: sim/small, system: unspoken}\n")
	questions := write(t, "q.jsonl", `{"prompt":"unspoken"}`+"\n")
	for _, c := range []struct {
		endpoint string
		args     []string
		want     []string
	}{
		{collector, []string{"run", plan, "--out", filepath.Join(t.TempDir(), "r.parley"), "--quiet"}, []string{"/v1/traces", "run", "episode", "chat small", "gen_ai.usage.output_tokens", "parley.seat", "/v1/metrics", "gen_ai.client.operation.duration", "parley_episodes"}},
		{collector, []string{"ask", questions, "--quiet"}, []string{"/v1/traces", "ask", "chat small", "/v1/metrics", "gen_ai.client.token.usage", "parley_calls_total"}},
		{collector, []string{"ask", "unspoken"}, []string{"/v1/traces", "ask", "chat small", "/v1/metrics", "gen_ai.client.token.usage"}},
		{"", []string{"ask", questions, "--quiet"}, nil},
	} {
		s := State{Kinds: worlds.Standard(), Env: func(name string) (string, bool) {
			v, ok := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.endpoint}[name]
			return v, ok
		}}
		parley(t, s, c.args...).want(t, exit.OK)
		text := sent()
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%v: no %q", c.args, want)
			}
		}
		if strings.Contains(text, "unspoken") || c.want == nil && text != "" {
			t.Errorf("%v: a text is sent: %q", c.args, text)
		}
	}
}
