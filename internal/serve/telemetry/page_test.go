package telemetry

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/provider"
	"parley/journal"
	"parley/llm"
)

// TestPage compares a page with what Prometheus' own library writes.
func TestPage(t *testing.T) {
	t.Parallel()
	h := NewHistogram(.5, 1)
	for _, v := range []float64{.25, .5, .75, 1, 1.5} {
		h.Observe(v)
	}
	var p Page
	p.Add(Counter, "a_total", "Some.", 3, "x", "\"\\\n\xff", "y", "")
	p.Add(Counter, "a_total", "Some.", 1e21, "x", "", "y", "z")
	p.Add(Gauge, "b", "Other.", math.Inf(1))
	p.AddHistogram("c", "Times.", h, "x", "1")
	const want = `# HELP a_total Some.
# TYPE a_total counter
a_total{x="\"\\\n` + "\uFFFD" + `",y=""} 3
a_total{x="",y="z"} 1e+21
# HELP b Other.
# TYPE b gauge
b +Inf
# HELP c Times.
# TYPE c histogram
c_bucket{x="1",le="0.5"} 2
c_bucket{x="1",le="1"} 4
c_bucket{x="1",le="+Inf"} 5
c_sum{x="1"} 4
c_count{x="1"} 5
`
	if got := string(p.text()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestProcess checks that Go still has all the metrics that the page names, and reads those of Linux.
func TestProcess(t *testing.T) {
	t.Parallel()
	var p Page
	p.AddProcess(time.UnixMilli(1500))
	for _, m := range runtimeMetrics() {
		if !strings.Contains(string(p.text()), "\n"+m.name+" ") {
			t.Errorf("no %s in\n%s", m.name, p.text())
		}
	}
	if !strings.Contains(string(p.text()), "\nprocess_start_time_seconds 1.5\n") {
		t.Errorf("%s", p.text())
	}
	dir := t.TempDir()
	stat := "7 (a) (b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 8 0 900 4096000 3 18446744073709551615"
	if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o600); err != nil {
		t.Fatal(err)
	}
	var proc, short Page
	proc.addProc(dir)
	for _, want := range []string{"process_cpu_seconds_total 3\n", "process_virtual_memory_bytes 4.096e+06\n", "process_resident_memory_bytes "} {
		if !strings.Contains(string(proc.text()), "\n"+want) {
			t.Errorf("no %s in\n%s", want, proc.text())
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "stat"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	short.addProc(dir) // a damaged file is no reason to panic
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is a dispatcher with one of everything.
type sample struct{}

func (sample) Budget() *budget.Budget {
	b := budget.New(5*llm.Dollar, llm.Dollar)
	b.Lost(llm.Dollar / 4)
	return b
}
func (sample) Waits(time.Time) []dispatch.Wait {
	return []dispatch.Wait{{Says: "an outage"}, {Money: &budget.Shortage{Calls: 2}}, {Money: &budget.Shortage{Calls: 3}}}
}

func (sample) Providers() []provider.Provider { return nil }

func (sample) Limits() []dispatch.Limit {
	return []dispatch.Limit{{Provider: "lab", Server: "http://127.0.0.1:1/v1", Bounds: limiter.Bounds{InFlight: 3, Concurrency: 16, Requests: 600}}}
}

func (sample) Stats() dispatch.Snapshot {
	m := dispatch.ModelStats{Calls: 4, Failed: 1, Attempts: 5, Retried: 1, RateLimited: 1, Cost: llm.Dollar, Uncertain: llm.Dollar / 2, Errors: map[llm.Kind]int64{llm.KindServer: 2}, LastError: map[llm.Kind]string{llm.KindServer: "a secret text"}}
	for _, d := range []time.Duration{time.Millisecond, time.Second, 3 * time.Second} {
		m.Latency.Add(d)
	}
	return dispatch.Snapshot{InFlight: 3, Waiting: 2, Models: map[string]dispatch.ModelStats{"lab/small": m}}
}

func page() *Page {
	run := func() RunState { return RunState{Episodes: journal.EpisodeCounts{Ended: 7}, Paused: true} }
	return RunPage(sample{}, run, time.Now())
}

func monitorTextOf(p *Page) string {
	w := httptest.NewRecorder()
	p.Serve(w)
	return w.Body.String()
}

// TestMonitorPage checks some values, and that no text of a provider is on the page.
func TestMonitorPage(t *testing.T) {
	t.Parallel()
	text := monitorTextOf(page())
	for _, want := range []string{
		`parley_episodes{state="ended"} 7`, `parley_paused 1`, `parley_draining 0`, `parley_in_flight 3`, `parley_budget_dollars 5`, `parley_spent_dollars 0.75`, `parley_cost_dollars_total{model="lab/small"} 1.5`,
		`parley_at_risk_dollars 0.25`, `parley_set_aside_dollars 0`, `parley_left_dollars 4`, `parley_waiting_for_budget 5`,
		`parley_errors_total{model="lab/small",kind="server"} 2`, `parley_latency_seconds_count{model="lab/small"} 3`, `parley_latency_seconds_bucket{model="lab/small",le="2.5"} 2`,
		`parley_server_concurrency{provider="lab",server="http://127.0.0.1:1/v1",models=""} 16`, `unit="requests"} 600`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret") {
		t.Error("the page has the text of a provider")
	}
	if alone := monitorTextOf(RunPage(sample{}, nil, time.Now())); strings.Contains(alone, "episodes") {
		t.Error("questions have episodes")
	}
}

// TestDashboard checks that the page has every metric of the dashboard for Grafana, with its labels.
func TestDashboard(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(b, &dashboard); err != nil {
		t.Fatal(err)
	}
	text, metrics := monitorTextOf(page()), regexp.MustCompile(`\b(?:parley|process|go)_[a-z_]+\b`)
	label := regexp.MustCompile(`{{(\w+)}}`)
	seen := 0
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			for _, name := range metrics.FindAllString(target.Expr, -1) {
				seen++
				if !strings.Contains(text, "\n"+name+"{") && !strings.Contains(text, "\n"+name+" ") && !strings.HasPrefix(name, "process_") {
					t.Errorf("%s: there is no %s", p.Title, name)
				}
				for _, l := range label.FindAllStringSubmatch(target.LegendFormat, -1) {
					if !regexp.MustCompile(`(?m)^` + name + `{[^}]*\b` + l[1] + `="`).MatchString(text) {
						t.Errorf("%s: %s has no label %s", p.Title, name, l[1])
					}
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d metrics", seen)
	}
}

// TestWhoMayRead attacks the server as a rebinding page, a page of another site and a reader without a key.
func TestWhoMayRead(t *testing.T) {
	t.Parallel()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	end := Serve(context.Background(), ln, []string{"the-key"}, page)
	defer end()
	defer http.DefaultClient.CloseIdleConnections()
	for _, c := range []struct {
		host, name, value string
		want              int
	}{
		{"", "Authorization", "Bearer the-key", http.StatusOK},
		{"", "Authorization", "Bearer other", http.StatusUnauthorized},
		{"", "X-None", "", http.StatusUnauthorized},
		{"evil.example", "Authorization", "Bearer the-key", http.StatusForbidden},
		{"", "Origin", "https://evil.example", http.StatusForbidden},
		{"", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+ln.Addr().String()+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if c.host != "" {
			req.Host = c.host
		}
		req.Header.Set(c.name, c.value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.want || (c.want == http.StatusOK) != strings.Contains(string(body), "parley_in_flight") {
			t.Errorf("%+v: %d %.100s %v", c, resp.StatusCode, body, err)
		}
	}
}
