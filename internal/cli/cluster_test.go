package cli

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/run/cluster/hub"
)

// TestClusterRefused: what cannot work, or is not safe, is refused before a process, a hub or a run file exists.
func TestClusterRefused(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 2\nagents: {a: sim/small}\n")
	out := filepath.Join(t.TempDir(), "run.parley")
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	token := State{Env: func(name string) (string, bool) { return "a token that is long", name == tokenEnv }}
	for _, c := range []struct {
		args string
		want string
	}{
		{"run PLAN --workers 2000000000", "--workers 2000000000: want 0 to 256"},
		{"run PLAN --workers=-1", "--workers -1: want 0 to 256"},
		{"run PLAN --workers 257 --detach", "--workers 257: want 0 to 256"},
		{"run OUT --workers 257", "--workers 257: want 0 to 256"},
		{"fork OUT --episode 0 --turn 1 --workers 257", "--workers 257: want 0 to 256"},
		{"score OUT --with a.py:A --workers 257", "--workers 257: want 0 to 256"},
		{"run PLAN --workers 1 --lease 1ms", "--lease 1ms: want 100ms to 24h"},
		{"run PLAN --workers 1 --lease=-1s", "--lease -1s: want 100ms to 24h"},
		{"run PLAN --workers 1 --lease 9999h", "--lease 9999h0m0s: want 100ms to 24h"},
		{"run PLAN --listen 127.0.0.1:0 --cluster nats://127.0.0.1:1", "exclude each other"},
		{"run PLAN --workers 2 --retain", "--retain needs --cluster"},
		{"run OUT --rebuild a1", "--rebuild needs --cluster"},
		{"run PLAN --rebuild a1 --cluster nats://127.0.0.1:1", "exists: resume it without --rebuild"},
		{"run PLAN --listen 0.0.0.0:0", "a certificate and a token are required"},
		{"run PLAN --listen :0", "a certificate and a token are required"},
		{"run PLAN --listen 127.0.0.1:99999", "want 0 to 65535"},
		{"hub --listen 0.0.0.0:0", "a certificate and a token are required"},
		{"hub --listen 127.0.0.1:0 --join 127.0.0.1:1,127.0.0.1:2 --route 127.0.0.1:1", "want 3, or none"},
		{"hub --listen 127.0.0.1:0 --join 127.0.0.1:1,127.0.0.1:2,127.0.0.1:1 --route 127.0.0.1:1", "want three different addresses"},
		{"hub --listen 127.0.0.1:0 --join 10.0.0.1:1,10.0.0.2:1,10.0.0.3:1 --route 10.0.0.1:1 --folder OUT", "a certificate is required"},
		{"hub --listen 127.0.0.1:0 --join 127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "--join needs --route"},
		{"hub --listen 127.0.0.1:0 --folder OUT", "--route and --folder need --join"},
		{"hub --listen USED", "address already in use"},
		{"run PLAN --listen USED", "address already in use"},
		{"run PLAN --lease 1s", "--lease needs workers"},
		{"run PLAN --tls-ca /nowhere", "--token-file and --tls-ca need workers"},
		{"run PLAN --workers 1 --tls-cert a.pem --tls-key b.pem", "--tls-cert and --tls-key need --listen"},
		{"run PLAN --cluster nats://192.0.2.2:4222", "address 1 of 1 is not on this machine"},
		{"worker --cluster nats://192.0.2.2:4222", "address 1 of 1 is not on this machine"},
		{"cluster --cluster ws://127.0.0.1:4222", "want nats://HOST:PORT or tls://HOST:PORT"},
		{"cluster --cluster nats://127.0.0.1:1 --worker-token a.b>", "has only letters and digits"},
		{"cluster drain --cluster nats://127.0.0.1:1", "drain: which worker?"},
		{"worker --cluster nats://127.0.0.1:1 --concurrency 2000000000", "--concurrency 2000000000: want 1 to 1000000"},
		{"worker --cluster nats://127.0.0.1:1 --concurrency 0", "--concurrency 0: want 1 to 1000000"},
	} {
		args := strings.Fields(strings.NewReplacer("PLAN", plan, "OUT", out, "USED", used.Addr().String()).Replace(c.args))
		if strings.HasPrefix(c.args, "run PLAN") && !strings.Contains(c.args, "--rebuild") {
			args = append(args, "--out", out)
		}
		got := parley(t, token, args...)
		if got.code != exit.Misuse || !strings.Contains(got.stderr, c.want) {
			t.Errorf("parley %s: code %d, want %d and %q:\n%s", c.args, got.code, exit.Misuse, c.want, got.stderr)
		}
	}
	if files, err := filepath.Glob(out + "*"); err != nil || len(files) > 0 {
		t.Errorf("%v %v, want no files", files, err)
	}
	ofRun := State{Env: func(name string) (string, bool) { return hub.WorkerToken("a secret for tests", "a1"), name == tokenEnv }}
	parley(t, ofRun, "cluster", "drain", "W", "--cluster", "nats://127.0.0.1:1").want(t, exit.Misuse).wantErr(t, "drain: the token of the hub is needed, and not that of a run")
	got := parley(t, State{}, "hub", "--listen", "127.0.0.1:0")
	got.want(t, exit.Misuse).wantErr(t, "a hub needs a token", "openssl rand -hex 32")
}

// TestShortToken: whoever begins a hub with a token that can be guessed is told how to make a better one, without the token.
func TestShortToken(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 2\nagents: {a: sim/small}\n")
	file := write(t, "token", "fifteen letters\n")
	env := State{Env: func(name string) (string, bool) { return "quince", name == tokenEnv }}
	for _, args := range [][]string{
		{"hub", "--listen", "127.0.0.1:0"}, {"hub", "--listen", "127.0.0.1:0", "--token-file", file},
		{"run", plan, "--listen", "127.0.0.1:0"}, {"run", plan, "--workers", "2", "--token-file", file},
		{"cluster", "--cluster", "nats://127.0.0.1:1", "--worker-token", "a1"},
	} {
		got := parley(t, env, args...).want(t, exit.Misuse).wantErr(t, "the token of the hub (PARLEY_CLUSTER_TOKEN, --token-file) has ", " characters", "want 16 or more", "openssl rand -hex 32")
		if strings.Contains(got.stderr, "quince") || strings.Contains(got.stderr, "fifteen letters") {
			t.Errorf("%v prints the token: %s", args, got.stderr)
		}
	}
}
