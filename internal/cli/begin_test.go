package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/worlds"
)

// TestNext: what the program says without arguments fits 80 columns, and each command that it names works in that folder.
func TestNext(t *testing.T) {
	t.Chdir(t.TempDir())
	state := func() State { return State{Kinds: worlds.Standard()} }
	next := func() (commands []string) {
		for line := range strings.Lines(parley(t, state()).want(t, exit.OK).stdout) {
			if len(line) > 81 {
				t.Errorf("%d columns: %s", len(line)-1, line)
			}
			if command, _, ok := strings.Cut(strings.TrimPrefix(line, "  parley "), "   "); ok {
				commands = append(commands, strings.TrimSpace(command))
			}
		}
		return commands
	}
	play := func(want ...string) {
		t.Helper()
		commands := next()
		if !slices.Equal(commands, want) {
			t.Fatalf("it says %q, want %q", commands, want)
		}
		for _, command := range commands {
			args := strings.Fields(command)
			switch args[0] {
			case "view":
				continue // it would serve until it is stopped
			case "ask":
				args = []string{"ask", "--model", "sim/small", "Say hello"}
			}
			parley(t, state(), args...).want(t, exit.OK)
		}
	}
	play("init secrets", "run secrets.yaml", `ask --model sim/small "Say hello"`)
	play("report secrets.parley", "show secrets.parley", "view")
	if err := os.Remove("secrets.parley"); err != nil {
		t.Fatal(err)
	}
	play("check secrets.yaml", "run secrets.yaml", "view")
}
