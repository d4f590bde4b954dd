package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/run/planfile"
	"parley/worlds"
)

// TestInit writes a plan of every kind, which must pass check.
func TestInit(t *testing.T) {
	t.Parallel()
	sequential(t)
	for _, k := range worlds.Standard() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plan := filepath.Join(dir, "mine.yaml")
			got := parley(t, State{}, "init", k.Name, "--out", plan).want(t, exit.OK)
			if !strings.Contains(got.stdout, "parley check "+plan) || !strings.Contains(got.stdout, "parley run "+plan) {
				t.Errorf("it does not say what is next:\n%s", got.stdout)
			}
			if text := read(t, plan); !strings.HasPrefix(text, "# yaml-language-server: $schema="+planfile.SchemaName+"\n") {
				t.Errorf("the plan does not name its schema:\n%s", text)
			}
			if schema := read(t, filepath.Join(dir, planfile.SchemaName)); !strings.Contains(schema, `"const": "`+k.Name+`"`) {
				t.Errorf("the schema does not know %s", k.Name)
			}
			if e := checked(t, State{}, plan, "--episodes", "8"); e.Kind != k.Name || e.Episodes.Failed > 0 {
				t.Errorf("%+v", e)
			}
			parley(t, State{}, "init", k.Name, "--out", filepath.Join(dir, "second.yaml")).want(t, exit.OK)
			for name, text := range k.ExampleFiles {
				info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
				if err != nil {
					t.Fatal(err)
				}
				if script := strings.HasPrefix(text, "#!"); runtime.GOOS != "windows" && script != (info.Mode()&0o100 != 0) {
					t.Errorf("%s has the mode %v", name, info.Mode())
				}
			}
		})
	}
}

// TestInitFrom converts a folder of the earlier Scenario Lab, which plays on the simulated provider.
func TestInitFrom(t *testing.T) {
	t.Parallel()
	sequential(t)
	old := filepath.Join(t.TempDir(), "towns")
	for name, text := range map[string]string{
		"scenario.yaml":    "name: Towns\ninitial_world_state: Two towns share one bridge.\nparameters: {max_turns: 2, turn_duration: 1 month}\nactors: [east.yaml]\nmood: grim\n",
		"actors/east.yaml": "name: East\nllm_model: openai/gpt-4o-mini\n",
	} {
		path := filepath.Join(old, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	plan := filepath.Join(dir, "Two Towns.yaml")
	got := parley(t, State{}, "init", "scenario", "--from", old, "--out", plan).want(t, exit.OK)
	if !strings.Contains(got.stdout, filepath.Join(old, "scenario.yaml")+":5:1: mood: has no counterpart and is left out\n") {
		t.Errorf("it does not say what is lost:\n%s", got.stdout)
	}
	if text := read(t, filepath.Join(dir, "two-towns", "scenario.yaml")); !strings.Contains(text, "turns: 2\n") || !strings.Contains(text, "turn_duration: 1 month\n") || strings.Contains(got.stdout, "parameters") {
		t.Errorf("%s\n%s", text, got.stdout)
	}
	parley(t, State{}, "run", plan, "--set", "agents={all: sim/large}", "--out", filepath.Join(dir, "a.parley")).want(t, exit.OK)
	parley(t, State{}, "init", "scenario", "--from", old, "--out", filepath.Join(old, "..", "towns.yaml")).want(t, exit.Misuse).wantErr(t, "would be written into the folder that is read")
	if err := os.WriteFile(filepath.Join(old, "scenario.yaml"), []byte("name: Towns\nturn_duration: 1 month\nactors: [east.yaml]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := parley(t, State{}, "init", "scenario", "--from", old, "--out", filepath.Join(dir, "broken.yaml")).want(t, exit.Failed)
	broken.wantErr(t, "were written, but cannot be played", "initial_world_state")
	parley(t, State{}, "init", "secrets", "--from", old).want(t, exit.Misuse).wantErr(t, "--from", "secrets does not convert")
	parley(t, State{}, "init", "scenario", "--from", dir, "--out", plan).want(t, exit.Misuse).wantErr(t, "there is no scenario.yaml in it")
}

// TestInitHere writes KIND.yaml into the current folder.
func TestInitHere(t *testing.T) {
	t.Chdir(t.TempDir())
	parley(t, State{}, "init", "secrets").want(t, exit.OK)
	if !strings.Contains(read(t, "secrets.yaml"), "kind: secrets") {
		t.Error("no plan")
	}
	parley(t, State{}, "check", "secrets.yaml").want(t, exit.OK)
	for _, c := range []struct{ lost, want string }{
		{"none", "secrets.yaml is already there, unchanged\n\nnext:"},
		{planfile.SchemaName, "secrets.yaml is already there, unchanged; wrote\n      " + planfile.SchemaName + "\n\nnext:"},
		{"secrets.yaml", "wrote secrets.yaml, and " + planfile.SchemaName},
	} {
		_ = os.Remove(c.lost)
		if got := parley(t, State{}, "init", "secrets").want(t, exit.OK).stdout; !strings.HasPrefix(got, c.want) {
			t.Errorf("without %s: %s", c.lost, got)
		}
	}
	parley(t, State{}, "init", "secrets", "--out", filepath.Join("plans", "new", "a.yaml")).want(t, exit.OK)
	parley(t, State{}, "check", filepath.Join("plans", "new", "a.yaml")).want(t, exit.OK)
}

// TestInitKeeps checks that init overwrites nothing without --force.
func TestInitKeeps(t *testing.T) {
	t.Parallel()
	plan := write(t, "plan.yaml", "mine")
	parley(t, State{}, "init", "secrets", "--out", plan).want(t, exit.Misuse).wantErr(t, plan, "--force")
	beside := filepath.Join(filepath.Dir(plan), planfile.SchemaName)
	if _, err := os.Stat(beside); read(t, plan) != "mine" || err == nil {
		t.Error("something was written")
	}
	parley(t, State{}, "init", "secrets", "--out", plan, "--force").want(t, exit.OK).wantErr(t, plan+" was not as init writes it; the old file is kept as "+plan+".bak")
	if read(t, plan) == "mine" || read(t, beside) == "" {
		t.Error("--force wrote nothing")
	}
	if err := os.WriteFile(beside, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(filepath.Dir(plan), "other.yaml")
	parley(t, State{}, "init", "secrets", "--out", other).want(t, exit.Misuse).wantErr(t, planfile.SchemaName, "--force")
	if _, err := os.Stat(other); err == nil || read(t, beside) != "{}" {
		t.Error("half of it was written")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(plan), ".parley*")); len(left) > 0 {
		t.Error("left behind:", left)
	}
}

// TestInitForce checks that changed files are backed up, each time under a new name, and that unchanged ones are
// left alone. A scenario with copies beside its files must still load.
func TestInitForce(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	plan, actor := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "drought", "actors", "hydro.yaml")
	parley(t, State{}, "init", "scenario", "--out", plan).want(t, exit.OK)
	original := read(t, actor)
	for i, name := range []string{".bak", ".bak2", ".bak3"} {
		edited := fmt.Sprintf("%s# mine, %d\n", original, i)
		if err := os.WriteFile(actor, []byte(edited), 0o644); err != nil {
			t.Fatal(err)
		}
		got := parley(t, State{}, "init", "scenario", "--out", plan, "--force").want(t, exit.OK).wantErr(t, actor+name)
		if n := strings.Count(got.stderr, "the old file is kept as"); n != 1 {
			t.Errorf("%d files were kept:\n%s", n, got.stderr)
		}
		if read(t, actor) != original || read(t, actor+name) != edited {
			t.Errorf("%s is not as it should be", actor+name)
		}
	}
	parley(t, State{}, "check", plan).want(t, exit.OK)
	for _, f := range []string{actor, plan} {
		if err := os.WriteFile(f, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	parley(t, State{}, "init", "scenario", "--out", plan).want(t, exit.Misuse).wantErr(t, plan, actor, "--force")
}

func TestInitRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"secret"}, []string{`"secret"`, "did you mean secrets?"}},
		{[]string{"chess"}, []string{`"chess"`, "the kinds are", "secrets"}},
		{nil, []string{"the kind is missing; the kinds are diplomacy, "}},
		{[]string{"secrets", "--out", filepath.Join(write(t, "file", ""), "a.yaml")}, []string{"exists and is not a folder"}},
		{[]string{"secrets", "--out", t.TempDir(), "--force"}, []string{"not a regular file"}},
		{[]string{"secrets", "--out", filepath.Join(t.TempDir(), planfile.SchemaName)}, []string{"--out", planfile.SchemaName}},
	} {
		parley(t, State{}, append([]string{"init"}, c.args...)...).want(t, exit.Misuse).wantErr(t, c.says...)
	}
}

// TestInitFromPrompts converts a folder of prompts of the earlier Diplomacy program, which plays on the simulated provider.
func TestInitFromPrompts(t *testing.T) {
	t.Parallel()
	sequential(t)
	old, dir := filepath.Join(t.TempDir(), "bold"), t.TempDir()
	if err := os.Mkdir(old, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(old, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("context_prompt.txt", "You are {power_name}.\n\nHome: {home_centers}\n\nUnits:\n{all_unit_locations}\n\nOrders:\n{possible_orders}\n")
	write("italy_system_prompt.txt", "Take Vienna.\n")
	plan := filepath.Join(dir, "bold.yaml")
	got := parley(t, State{}, "init", "diplomacy", "--from", old, "--out", plan).want(t, exit.OK)
	if !strings.Contains(got.stdout, "bold/context_prompt.txt:3: {home_centers} has no counterpart; the line is left out\n") {
		t.Errorf("it does not say what is lost:\n%s", got.stdout)
	}
	if text := read(t, plan); !strings.Contains(text, `templates: {ALL: "bold", ITALY: "bold/italy"}`) {
		t.Errorf("the plan does not name the prompts:\n%s", text)
	}
	parley(t, State{}, "check", plan).want(t, exit.OK)
	parley(t, State{}, "run", plan, "--set", "episodes=1", "--set", "params.max_year=1901", "--out", filepath.Join(dir, "a.parley")).want(t, exit.OK)

	write("context_prompt.txt", "You are {{power_name}{.\n")
	broken := parley(t, State{}, "init", "diplomacy", "--from", old, "--out", filepath.Join(dir, "broken.yaml")).want(t, exit.Failed)
	broken.wantErr(t, "were written, but cannot be played", "broken/self.txt: line 1")
	parley(t, State{}, "init", "diplomacy", "--from", dir, "--out", filepath.Join(dir, "none.yaml")).want(t, exit.Misuse).wantErr(t, "there is no prompt in it")
}
