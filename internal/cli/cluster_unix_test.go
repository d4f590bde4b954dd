//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"parley/internal/ask/trust"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/run/cluster/hub"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/envhttp"
)

// lines is a Writer that passes on its first line.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
	line chan string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	if line, _, ok := strings.Cut(l.text.String(), "\n"); ok {
		l.once.Do(func() { l.line <- line })
	}
	return len(b), nil
}

// inBackground runs a command until the test ends, when a signal drains it. It returns its output.
func inBackground(t *testing.T, s State, args ...string) *lines {
	t.Helper()
	out, _ := serving(t, s, args...)
	return out
}

// serving does the same, and also returns what it prints on standard error.
func serving(t *testing.T, s State, args ...string) (out, problems *lines) {
	t.Helper()
	out, problems = &lines{line: make(chan string, 1)}, &lines{line: make(chan string, 1)}
	signals := make(chan os.Signal, 1)
	s.Args, s.Stdout, s.Stderr, s.Signals = args, out, problems, signals
	done := make(chan int, 1)
	go func() { done <- mainWith(context.WithoutCancel(t.Context()), s) }()
	t.Cleanup(func() {
		signals <- os.Interrupt
		if code := <-done; code != exit.OK {
			t.Errorf("%v: code %d: %s", args, code, problems.text.String())
		}
	})
	return out, problems
}

// clusterOf starts a hub and workers in this process, and returns the address of the hub.
func clusterOf(t *testing.T, s State, workers int, flags ...string) string {
	t.Helper()
	node := inBackground(t, s, "hub", "--listen", "127.0.0.1:0")
	url := strings.TrimPrefix(<-node.line, "listening on ")
	for range workers {
		inBackground(t, s, append([]string{"worker", "--cluster", url}, flags...)...)
	}
	return url
}

// withToken adds the token of a hub to the environment.
func withToken(s State) State { return ofToken(s, "a secret for tests") }

// ofToken adds a token to the environment.
func ofToken(s State, token string) State {
	env := s.Env
	s.Env = func(name string) (string, bool) {
		if name == tokenEnv {
			return token, true
		}
		return env(name)
	}
	return s
}

// playedTwice runs a command alone and with workers, and wants the same outcomes.
func playedTwice(t *testing.T, s State, url string, args ...string) {
	t.Helper()
	var alone, together app.Summary
	for got, more := range map[*app.Summary][]string{&alone: nil, &together: {"--cluster", url, "--lease", "10m"}} {
		all := append(append([]string{}, args...), "--out", filepath.Join(t.TempDir(), "run.parley"), "--json", "--quiet")
		out := parley(t, s, append(all, more...)...)
		if err := json.Unmarshal([]byte(out.stdout), got); err != nil {
			t.Fatalf("%v %d: %s", more, out.code, out.stderr)
		}
	}
	if alone.Digest != together.Digest || alone.State != "complete" || together.State != "complete" || together.Episodes != alone.Episodes || alone.Episodes.Total == 0 {
		t.Errorf("alone:\n%+v\nwith workers:\n%+v", alone, together)
	}
	if (alone.Attempts == 0) != (together.Attempts == 0) || (alone.Tokens.Output == 0) != (together.Tokens.Output == 0) {
		t.Errorf("alone %d attempts and %+v, with workers %d and %+v", alone.Attempts, alone.Tokens, together.Attempts, together.Tokens)
	}
}

// TestTokenWithDots: a hub's token may have dots. One that looks like a run's is refused.
func TestTokenWithDots(t *testing.T) {
	t.Parallel()
	s := ofToken(self(t), "my.secret.token.has.dots")
	url := clusterOf(t, s, 1)
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 1\nagents: {small: sim/small}\nlineup: {first: small, second: small}\n")
	parley(t, s, "run", plan, "--cluster", url, "--quiet").want(t, exit.OK)
	like := ofToken(s, hub.WorkerToken("a secret for tests", "a1"))
	for _, args := range [][]string{{"hub", "--listen", "127.0.0.1:0"}, {"run", plan, "--listen", "127.0.0.1:0", "--out", plan + ".parley"}} {
		parley(t, like, args...).want(t, exit.Misuse).wantErr(t, "has the form of one for the workers of a run")
	}
}

// TestClusterOfOneRun: with the token of a run, parley cluster shows that run and complains about nothing.
func TestClusterOfOneRun(t *testing.T) {
	t.Parallel()
	s := withToken(self(t))
	url := clusterOf(t, s, 0)
	nc, err := nats.Connect(url, nats.Token("a secret for tests"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, run := range []string{"a1", "b2"} {
		_, err := nc.Subscribe(hub.StatusSubject(run), func(m *nats.Msg) {
			_ = m.Respond([]byte(`{"run":"` + run + `","state":"playing","workers":[{"worker":"W\u001b[2J","session":"s","lots":3,"waits":["lab is unreachable\u001b[2J"]}],
				"lots":{"waiting":1,"leased":2,"open":[{"first":0,"last":31,"worker":"W","session":"s","age_s":61,"deaths":2},{"first":32,"last":40,"session":"t"},{"first":41,"last":41}]}}`))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	got := parley(t, ofToken(s, hub.WorkerToken("a secret for tests", "a1")), "cluster", "--cluster", url).want(t, exit.OK)
	for _, want := range []string{
		"run a1  playing  0 episodes ended here  lots: 1 waiting, 2 played, 0 done  1 worker", "3 lots; lab is unreachable",
		"lot 0–31  worker W  1m1s  2 workers died at it\n", "lot 32–40  a worker that says nothing", "lot 41–41  waits",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("want %q", want)
		}
	}
	if strings.Contains(got.stdout, "\x1b") || strings.Contains(got.stdout, "b2") || got.stderr != "" || t.Failed() {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
}

// TestSameWithWorkers: runs of every kind have the same outcomes with workers as in one process.
func TestSameWithWorkers(t *testing.T) {
	t.Parallel()
	sequential(t)
	servers := httptest.NewServer(envhttp.NewEnvServer(envhttp.EnvServerConfig{Kinds: env.Standard()}))
	defer servers.Close()
	code := codePlan(t, "game.py:Game")
	s := withToken(self(t))
	grant := "code=" + filepath.Join(filepath.Dir(code), "game.py")
	url := clusterOf(t, s, 2, "--allow-files", filepath.Dir(code), "--trust", grant)
	examples := "../../examples/"
	base := filepath.Join(t.TempDir(), "base.parley")
	parley(t, s, "run", examples+"secrets.yaml", "--out", base, "--set", "plan.matrix.repeat=1", "--quiet").want(t, exit.OK)
	remote := write(t, "remote.yaml", "kind: rollout\nepisodes: 4\nagents: {policy: sim/small}\nlineup: {agent: policy}\nparams: {env: word, servers: [\""+servers.URL+"\"], group: 3, max_steps: 3, pool: {per_server: 3}}\n")
	until := write(t, "until.yaml", "kind: secrets\nagents: {a: sim/small, b: sim/large}\nlineup: {first: a, second: b}\nplan: {until: {score: points, seat: first, width: 0.5, min: 5, max: 30, step: 5}}\n")
	t.Run("kinds", func(t *testing.T) {
		for name, args := range map[string][]string{
			"diplomacy":      {"run", examples + "diplomacy.yaml", "--set", "episodes=2", "--set", "params.max_year=1901"},
			"scenario":       {"run", examples + "scenario/plan.yaml", "--set", "episodes=2"},
			"matrix":         {"run", examples + "secrets-modes.yaml", "--set", "plan.matrix.repeat=2"},
			"judge":          {"run", examples + "secrets-judge.yaml", "--set", "plan.matrix.repeat=2"},
			"until":          {"run", until},
			"stages":         {"run", examples + "evolve-file.yaml"},
			"rollouts here":  {"run", examples + "rollout.yaml", "--set", "episodes=5"},
			"rollouts there": {"run", remote},
			"code":           {"run", code, "--trust", grant},
			"fork":           {"fork", base, "--episode", "1", "--turn", "1", "--repeat", "3"},
			"episode budget": {"run", examples + "secrets.yaml", "--set", "episode_budget=0.001", "--set", "plan.matrix.repeat=2",
				"--set", "agents.small.max_tokens=200", "--set", "agents.large.max_tokens=200"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				playedTwice(t, s, url, args...)
			})
		}
	})
}

// TestNotWithWorkers: what only one process can play is refused, and why.
func TestNotWithWorkers(t *testing.T) {
	t.Parallel()
	s := withToken(self(t))
	examples := "../../examples/"
	for _, c := range []struct {
		want string
		args []string
	}{
		{"pace: wave", []string{"run", examples + "secrets.yaml", "--pace", "wave"}},
		{"people in its seats", []string{"run", examples + "diplomacy-person.yaml"}},
	} {
		parley(t, s, append(c.args, "--out", filepath.Join(t.TempDir(), "run.parley"), "--quiet", "--listen", "127.0.0.1:0")...).want(t, exit.Misuse).wantErr(t, c.want)
	}
}

// TestWorkersHere: workers on this machine find the code of a plan in another folder. If they may not run it, the run ends.
func TestWorkersHere(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PARLEY_PYTHON", program)
	plan := codePlan(t, "game.py:Game")
	file := filepath.Join(filepath.Dir(plan), "game.py")
	out := filepath.Join(t.TempDir(), "run.parley")
	parley(t, self(t), "run", plan, "--trust", "code="+file, "--workers", "2", "--out", out).want(t, exit.OK)

	known := self(t)
	known.ConfigDir = t.TempDir() // workers have another one
	if err := trust.NewStore(filepath.Join(known.ConfigDir, "parley", trustedName)).Add(trust.Grant{What: trust.Code, Name: file}); err != nil {
		t.Fatal(err)
	}
	parley(t, known, "run", plan, "--workers", "2", "--out", out+"2").want(t, exit.Broken).wantErr(t, "would run the code of "+file)
}

// TestHubRefuses: a run and a worker say for each node of a hub why they cannot use it.
func TestHubRefuses(t *testing.T) {
	t.Parallel()
	s := withToken(self(t))
	url := clusterOf(t, s, 0)
	both := url + ",nats://127.0.0.1:1"
	other := ofToken(s, "hunter2")
	want := "no node of the hub can be used: " + strings.TrimPrefix(url, "nats://") + ": it refuses the token; 127.0.0.1:1: connect: connection refused. Start one with parley hub"
	_, problems := serving(t, other, "worker", "--cluster", both)
	if got := <-problems.line; !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
		t.Errorf("%s, want %s", got, want)
	}
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 1\nagents: {small: sim/small}\nlineup: {first: small, second: small}\n")
	parley(t, other, "run", plan, "--cluster", url).want(t, exit.Misuse).wantErr(t, strings.Replace(want, "; 127.0.0.1:1: connect: connection refused", "", 1))
}

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
func wantPage(t *testing.T, line string, lines ...string) {
	t.Helper()
	_, address, _ := strings.Cut(line, "metrics at ")
	page := fetch(t, http.MethodGet, address, "")
	for _, line := range lines {
		if !strings.Contains("\n"+page, "\n"+line) {
			t.Errorf("no %s in\n%s", line, page)
		}
	}
}
