package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// TestAllowFiles checks that check refuses a file outside the plan's folder until it is allowed, and then names
// it. A run file that is a link to another folder is not written. A recorded cache in another folder is not
// opened on resume.
func TestAllowFiles(t *testing.T) {
	t.Parallel()
	sequential(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own, other := filepath.Join(root, "own"), filepath.Join(root, "other")
	for _, dir := range []string{own, other} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	plan := filepath.Join(own, "plan.yaml")
	text := "kind: secrets\nepisodes: 2\nagents: {a: sim/small}\nlineup: {first: a, second: a}\ncache: ../other/cache\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(other, "cache")
	for _, verb := range []string{"check", "run", "bench"} {
		got := parley(t, State{}, verb, plan)
		if got.code != exit.Misuse || !strings.Contains(got.stderr, "plan.yaml:5:8: cache: ") || !strings.Contains(got.stderr, cache) {
			t.Errorf("%s: %d %s", verb, got.code, got.stderr)
		}
	}
	if got := parley(t, State{}, "check", plan, "--allow-files", other); got.code != exit.OK || !strings.Contains(got.stdout, cache+" is outside") {
		t.Errorf("%d %s%s", got.code, got.stdout, got.stderr)
	}
	file := filepath.Join(own, "plan.parley")
	if got := parley(t, State{}, "run", plan, "--allow-files", other, "--quiet"); got.code != exit.OK {
		t.Fatalf("%d %s", got.code, got.stderr)
	}
	for _, args := range [][]string{{"resume", file, "--set", "limits.concurrency=3"}, {"fork", file, "--episode", "0", "--turn", "0"}} {
		if got := parley(t, State{}, args...); got.code != exit.Misuse || !strings.Contains(got.stderr, "--allow-files "+other) {
			t.Errorf("%v: %d %s", args, got.code, got.stderr)
		}
		if got := parley(t, State{}, append(args, "--allow-files", other)...); got.code != exit.OK {
			t.Errorf("%v: allowed: %d %s", args, got.code, got.stderr)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(other, "new"), file); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if got := parley(t, State{}, "run", plan, "--set", "cache=off"); got.code != exit.Misuse || !strings.Contains(got.stderr, "outside the folder") {
		t.Errorf("%d %s", got.code, got.stderr)
	}
}
