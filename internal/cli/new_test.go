package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
)

// TestNew writes a module. A test in cmd/parley builds and runs one.
func TestNew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "My-game")
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	got := parley(t, State{}, "init", dir, "--go", "--module", "github.com/you/my-game").want(t, exit.OK)
	for _, says := range []string{"kind mygame", checkout, "cd " + terminal.ShellWord(dir), "run mygame.yaml"} {
		if !strings.Contains(got.stdout, says) {
			t.Errorf("%q is not in\n%s", says, got.stdout)
		}
	}
	for name, has := range map[string]string{
		"go.mod": "module github.com/you/my-game\n", "go.sum": "h1:", "mygame.go": "package mygame\n", "mygame_test.go": "worldtest.Exercise",
		"mygame.yaml": "kind: mygame\n", "README.md": "mygame.yaml", "cmd/parley/main.go": "mygame \"github.com/you/my-game\"\n",
	} {
		if text := read(t, filepath.Join(dir, name)); !strings.Contains(text, has) {
			t.Errorf("%s has no %q:\n%s", name, has, text)
		}
	}
}

// TestNewRefuses checks that invalid arguments write nothing.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	sequential(t)
	parent := t.TempDir()
	in := func(name string) string { return filepath.Join(parent, name) }
	for _, c := range []struct{ args, says []string }{
		{[]string{in("my game")}, []string{`"my game"`, "such as my-game"}},
		{[]string{in("type")}, []string{"a word of Go", "type-game"}},
		{[]string{in("secrets")}, []string{"there is a kind secrets already"}},
		{[]string{in("no/game")}, []string{"the folder " + in("no") + " does not exist"}},
		{[]string{parent + "/."}, []string{"cannot be the name of a world"}},
		{[]string{""}, []string{"the folder to create is missing"}},
		{[]string{in("game"), "--module", "no path"}, []string{`"no path"`, "github.com/you/my-game"}},
		{[]string{in("game"), "--parley", parent}, []string{parent + " is not the top folder of a checkout of Parley"}},
	} {
		parley(t, State{}, append([]string{"init", "--go"}, c.args...)...).want(t, exit.Misuse).wantErr(t, c.says...)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
