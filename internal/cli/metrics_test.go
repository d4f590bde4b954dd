package cli

import (
	"path/filepath"
	"testing"

	"parley/internal/cli/exit"
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
