package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/cli/exit"
	"parley/internal/run/cluster"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/lease"
	"parley/internal/serve/telemetry"
	"parley/llm"
	"parley/worlds"
)

// TestMetricsAddress: other machines are served only with a key, and a wrong address is refused before anything is
// played.
func TestMetricsAddress(t *testing.T) {
	t.Parallel()
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 1\nagents:\n  a: {model: sim/small}\n")
	questions := write(t, "q.jsonl", `{"prompt":"hello"}`+"\n")
	s := State{Kinds: worlds.Standard(), Env: func(name string) (string, bool) {
		v, ok := map[string]string{"KEY": "secret"}[name]
		return v, ok
	}}
	for _, command := range [][]string{{"run", plan, "--out", filepath.Join(t.TempDir(), "r.parley")}, {"ask", questions}, {"ask", "hello"}} {
		with := func(more ...string) outcome { return parley(t, s, append(append([]string{}, command...), more...)...) }
		with("--metrics", "0.0.0.0:0").want(t, exit.Misuse).wantErr(t, "would serve other machines without a key", "--metrics-key-env")
		with("--metrics", "nowhere").want(t, exit.Misuse).wantErr(t, "--metrics")
		with("--metrics", "127.0.0.1:0", "--metrics-key-env", "NONE").want(t, exit.Misuse).wantErr(t, "--metrics-key-env")
		with("--metrics", "127.0.0.1:0").want(t, exit.OK).wantErr(t, "metrics at http://127.0.0.1:")
		with("--metrics", "0.0.0.0:0", "--metrics-key-env", "KEY").want(t, exit.OK)
	}
}

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

// TestDivided: how a run is divided among workers is on the page for Prometheus, and parley cluster prints it.
func TestDivided(t *testing.T) {
	t.Parallel()
	st := cluster.Status{
		Run: "r", State: "playing", Ended: 3, Lots: cluster.Lots{Waiting: 5, Leased: 2, Done: 7}, Lag: 9,
		Workers:  []hub.Working{{Worker: "W1", Session: "s1", Process: 11, Host: "here", Lots: 1}, {Worker: "W2", Session: "s2"}, {Worker: "W3", Session: "s3", Refused: "another build"}},
		Accounts: map[string]lease.Account{"lab http://x *": {Rates: limiter.Units{Requests: 60, Output: 1000}, Shares: map[string]float64{"s1": 0.25, "s2": 0.75}, Waiting: 4}},
		Money:    &lease.Sums{Limit: 5 * llm.Dollar, Spent: llm.Dollar, Allotted: map[string]llm.Money{"s1": llm.Dollar, "s2": llm.Dollar}, AtRisk: llm.Dollar / 2},
	}
	page := &telemetry.Page{}
	addDivision(page, (&cluster.Coordinator{}).Status()) // nothing is divided yet
	if len(page.Families()) != 0 {
		t.Errorf("%v", page.Families())
	}
	addDivision(page, &st)
	w := httptest.NewRecorder()
	page.Serve(w)
	for _, want := range []string{
		`parley_lots{state="waiting"} 5`, `parley_lots{state="leased"} 2`, `parley_lots{state="done"} 7`, "parley_workers 2", "parley_log_lag_messages 9",
		`parley_share{account="lab http://x *",worker="s1"} 0.25`, "parley_workers_set_aside_dollars 2", "parley_workers_at_risk_dollars 0.5",
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
	var out bytes.Buffer
	printStatus(&out, st)
	want := `run r  playing  3 episodes ended here  lots: 5 waiting, 2 played, 7 done  2 workers  the run file is 9 messages behind
run r  budget: $1.00 spent, $0.50 at risk, $2.00 set aside, $1.50 left of $5.00
run r  account lab http://x *: 4 calls wait, 60 requests a minute, 1000 output tokens a minute, worker W1 has 25%, worker W2 has 75%
run r  worker W1  process 11 on here  1 lot
run r  worker W2  process 0 on   0 lots
run r  worker W3  process 0 on   0 lots; another build
`
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}
