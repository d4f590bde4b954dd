//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"parley/internal/cli/exit"
)

// TestPipesAreNotWaitedFor checks that a pipe without a writer is refused wherever a file is named.
func TestPipesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := func(name string) string {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const rest = "agents: {a: sim/small}\nlineup: {agent: a}\n"
	pipe("rows.jsonl")
	pipe("problems.jsonl")
	pipe("talks/scenario.yaml")
	pipe("prompts/orders.txt")
	file("environments.yaml", "environments: [{env_name: arithmetic, dataset: rows.jsonl}]\n")
	for _, args := range [][]string{
		{"run", pipe("plan.yaml")},
		{"check", pipe("check.yaml")},
		{"ask", pipe("requests.jsonl"), "--model", "sim/small"},
		{"ask", "hello", "--model", "sim/small", "--schema", pipe("schema.json")},
		{"ask", "hello", "--model", "sim/small", "--prices", pipe("prices.json")},
		{"models", "--prices", pipe("prices2.json")},
		{"check", file("rollout.yaml", "kind: rollout\nparams: {environments: environments.yaml}\n"+rest)},
		{"check", file("evolve.yaml", "kind: evolve\nparams: {problems: {source: file, file: problems.jsonl}}\n")},
		{"check", file("scenario.yaml", "kind: scenario\nparams: {folder: talks}\n")},
		{"check", file("diplomacy.yaml", "kind: diplomacy\nparams: {templates: {ALL: prompts}}\nagents: {a: sim/small}\n")},
		{"check", file("start.yaml", "kind: diplomacy\nparams: {start: problems.jsonl}\nagents: {a: sim/small}\n")},
		{"show", pipe("run.parley")},
	} {
		got := parley(t, State{}, args...).want(t, exit.Misuse)
		if !strings.Contains(got.stderr, "not a regular file") {
			t.Errorf("%v: %s", args, got.stderr)
		}
	}
}
