//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// evolved runs an evolution of texts of the plan inner.yaml and returns the winner's plan file with its texts.
func evolved(t *testing.T, dir, params string, trust ...string) (best string, texts map[string]string) {
	t.Helper()
	outer, out := filepath.Join(dir, "outer.yaml"), filepath.Join(dir, "best")
	if err := os.WriteFile(outer, []byte("kind: evolve\nparams:\n  preset: quick\n  play: inner.yaml\n"+params), 0o600); err != nil {
		t.Fatal(err)
	}
	parley(t, State{}, append([]string{"run", outer, "--quiet"}, trust...)...).want(t, exit.OK)
	parley(t, State{}, "export", filepath.Join(dir, "outer.parley"), "--format", "folder", "--out", out).want(t, exit.OK)
	files, err := filepath.Glob(filepath.Join(out, "*", "best.*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var data struct{ Texts map[string]string }
	b, err := os.ReadFile(filepath.Join(filepath.Dir(files[0]), "best.json"))
	if err != nil || json.Unmarshal(b, &data) != nil {
		t.Fatal(err)
	}
	best = filepath.Join(filepath.Dir(files[0]), "best.yaml")
	if _, err := os.Stat(best); err != nil {
		t.Fatal(files, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(best), "best.txt")); (err == nil) != (len(data.Texts) == 1) {
		t.Errorf("best.txt of %d texts: %v", len(data.Texts), err)
	}
	return best, data.Texts
}

// TestWinningPlan: the winner of an evolution of several texts is a plan, which is checked and played like any other.
func TestWinningPlan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inner := "kind: secrets\nseed: 18446744073709551615\nagents:\n  quiet: {model: sim/medium, system: Be open with your partner.}\n  other: {model: sim/small}\nlineup: {first: quiet, second: other}\nparams: {messages: 2, persona: {first: You are a sailor.}}\n"
	if err := os.WriteFile(filepath.Join(dir, "inner.yaml"), []byte(inner), 0o600); err != nil {
		t.Fatal(err)
	}
	best, texts := evolved(t, dir, `  change: [agents.quiet.system, params.persona.first]
  maximize: points
  split: {train: 6, validation: 2, test: 4}
  population_size: 4
  max_generations: 2
  mutation_rate: 1
  phrases: ["Keep <your> \"secret\": 100%! 🦊\u0085\u2028\u007f# - {}", Wait.]
`)
	if len(texts) != 2 {
		t.Fatal(texts)
	}
	parley(t, State{}, "check", best).want(t, exit.OK)
	file := filepath.Join(dir, "played.parley")
	parley(t, State{}, "run", best, "--out", file, "--quiet", "--set", "episodes=2").want(t, exit.OK)
	call := parley(t, State{}, "show", file, "--episode", "0", "--call", "0:0", "--json").want(t, exit.OK).stdout
	var asked any
	if err := json.Unmarshal([]byte(call), &asked); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(textsIn(asked), "\n")
	for path, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("%s is not what was played: %q is not in\n%q", path, text, all)
		}
	}
	if plan, err := os.ReadFile(best); err != nil || !strings.Contains(string(plan), `"seed": 18446744073709551615`) {
		t.Errorf("%v\n%s", err, plan)
	}
}

// textsIn lists the texts in JSON.
func textsIn(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			all = append(all, textsIn(one)...)
		}
	case map[string]any:
		for _, one := range v {
			all = append(all, textsIn(one)...)
		}
	}
	return all
}

// TestFilesOfTasksEvolve: a file of all tasks evolves, for a program that reads it. The winning plan has the tasks with the file in it, needs the
// same permission for itself, and passes more of them.
func TestFilesOfTasksEvolve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var rows strings.Builder
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		rows.WriteString(`{"id": "` + id + `", "prompt": "Do it.", "files": {"AGENTS.md": "Work.", "other.txt": "` + id + `"}, "check": "grep -q ` + "'Check the result.'" + ` said.txt && grep -q ` + id + ` said.txt"}` + "\n")
	}
	inner := "kind: task\nagents:\n  worker: {program: {command: [sh, -c, cat AGENTS.md other.txt > said.txt]}}\nlineup: {solver: worker}\nparams: {tasks: tasks.jsonl}\n"
	for name, text := range map[string]string{"inner.yaml": inner, "tasks.jsonl": rows.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const command = `program=sh -c "cat AGENTS.md other.txt > said.txt"`
	best, texts := evolved(t, dir, `  change: ["params.loaded[*].files[AGENTS.md]"]
  maximize: passed
  seat: solver
  split: {train: 4, validation: 1, test: 3}
  population_size: 4
  max_generations: 3
  mutation_rate: 1
  phrases: [Check the result., Wait.]
`, "--trust", "code="+filepath.Join(dir, "tasks.jsonl"), "--trust", command)
	if len(texts) != 1 || !strings.Contains(texts["params.loaded[*].files[AGENTS.md]"], "Check the result.") {
		t.Fatal(texts)
	}
	if err := os.Remove(filepath.Join(dir, "tasks.jsonl")); err != nil { // the plan has them
		t.Fatal(err)
	}
	file := filepath.Join(dir, "played.parley")
	parley(t, State{}, "run", best, "--out", file, "--trust", command, "--trust", "code="+filepath.Join(dir, "best", "tasks.jsonl")).want(t, exit.Misuse).wantErr(t, "would run the code of")
	var played struct {
		Scores []struct {
			Score string
			Mean  float64
		}
	}
	out := parley(t, State{}, "run", best, "--out", file, "--json", "--trust", command, "--trust", "code="+best).want(t, exit.OK).stdout
	if err := json.Unmarshal([]byte(out), &played); err != nil || len(played.Scores) == 0 {
		t.Fatal(err, out)
	}
	for _, s := range played.Scores {
		if s.Mean != 1 {
			t.Errorf("%+v", played.Scores)
		}
	}
}
