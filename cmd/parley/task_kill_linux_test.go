package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	kit "parley/internal/kit/process"
	"parley/internal/run/runfile"
)

// TestKilledTasks kills the program with kill -9 while agents that are programs work, and continues until the run is complete: the
// outcomes are those of an undisturbed run, and no process and no folder of the run is left.
func TestKilledTasks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples", "tasks"))
	if err != nil {
		t.Fatal(err)
	}
	agent, plan := filepath.Join(dir, "agent.sh"), filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(agent, []byte("setsid sleep 600 &\nenv -i PATH=\"$PATH\" setsid sleep 600 &\nsort names.txt > sorted.txt\nsleep 0.05\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wanted := enough(t, 8, 3)
	text := fmt.Sprintf(`kind: task
agents:
  one: {program: {command: [sh, %s]}}
  two: {program: shell, model: sim/large}
plan: {matrix: {seats: [solver], agents: [one, two], repeat: %d}}
params: {tasks: %s, at_once: 4}
`, agent, max(6, wanted), examples)
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := func(out string) []string {
		return []string{
			"run", plan, "--out", out, "--json", "--quiet", "--allow-files", examples, "--trust", "code=" + examples, "--trust", "program=shell",
			"--trust", "program=sh " + agent,
		}
	}
	want, _ := program(t, 0, args(filepath.Join(dir, "whole.parley"))...)
	if want.State != "complete" {
		t.Fatalf("undisturbed: %+v", want)
	}
	kills, begins := 0, startTime(t)
	out := filepath.Join(dir, "run.parley")
	for tries := 0; ; tries++ {
		got, killed := program(t, killAfter(begins, 400, tries, kills >= wanted), args(out)...)
		if !killed {
			if got.Digest != want.Digest {
				t.Errorf("after %d kills: %+v, want %+v", kills, got, want)
			}
			break
		}
		kills++
	}
	store, err := runfile.OpenRead(out)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	head, err := store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := kit.Marked(head.Begun.Run); n > 0 {
		t.Errorf("%d processes are left", n)
	}
	if _, err := os.Lstat(filepath.Join(os.TempDir(), "parley-"+head.Begun.Run)); err == nil { //nolint:usetesting // where Parley puts it
		t.Error("a folder is left")
	}
	t.Logf("%d kills", kills)
}
