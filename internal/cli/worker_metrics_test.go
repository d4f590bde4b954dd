//go:build unix

package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// TestWorkerMetrics: workers and hubs have pages for Prometheus, and send the same to an OpenTelemetry collector.
func TestWorkerMetrics(t *testing.T) {
	t.Parallel()
	collector, sent := collecting(t)
	plain := withToken(self(t))
	watched := plain
	watched.Env = func(name string) (string, bool) {
		if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
			return collector, true
		}
		return plain.Env(name)
	}
	t.Run("pages", func(t *testing.T) { // what it starts has ended when it has
		hub, at := serving(t, watched, "hub", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
		url := strings.TrimPrefix(<-hub.line, "listening on ")
		_, worker := serving(t, watched, "worker", "--cluster", url, "--quiet", "--metrics", "127.0.0.1:0")
		wantPage(t, <-at.line, "parley_hub_max_bytes{in=\"memory\"} ", "parley_hub_messages ", "parley_hub_clients ")
		parley(t, plain, "run", "../../examples/secrets.yaml", "--out", filepath.Join(t.TempDir(), "r.parley"), "--cluster", url, "--quiet").want(t, exit.OK)
		wantPage(t, <-worker.line, "parley_calls_total{model=\"sim/small\"} ", "parley_worker_runs ", "parley_in_flight 0")
	})
	got := sent()
	for _, want := range []string{"/v1/metrics", "parley_hub_messages", "parley_worker_runs", "parley_calls"} {
		if !strings.Contains(got, want) {
			t.Errorf("the collector did not get %s", want)
		}
	}
}

// wantPage wants lines that begin so on the page that a line of standard error names.
func wantPage(t *testing.T, said string, lines ...string) {
	t.Helper()
	_, address, _ := strings.Cut(said, "metrics at ")
	page := fetch(t, http.MethodGet, address, "")
	for _, line := range lines {
		if !strings.Contains("\n"+page, "\n"+line) {
			t.Errorf("no %s in\n%s", line, page)
		}
	}
}
