package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/run/planfile"
	"parley/worlds"
)

// conversation plays a small run and returns its file.
func conversation(t *testing.T) string {
	t.Helper()
	const plan = "kind: secrets\nepisodes: 3\nagents: {small: sim/small, large: sim/large}\nlineup: {first: small, second: large}\nparams: {messages: 2}\n"
	return playedPlan(t, plan)
}

func TestFork(t *testing.T) {
	t.Parallel()
	from := conversation(t)
	got := parley(t, State{}, "fork", from, "--episode", "2", "--turn", "3", "--set", "agents.large.model=sim/other", "--repeat", "4", "--json", "--quiet").want(t, exit.OK)
	var sum app.Summary
	if err := json.Unmarshal([]byte(got.stdout), &sum); err != nil {
		t.Fatalf("%v: %s", err, got.stdout)
	}
	file := strings.TrimSuffix(from, ".parley") + "-e2-t3.parley"
	if sum.File != file || sum.Episodes.Complete != 4 || sum.Calls.Asked != 4 || sum.Calls.Total != 16 {
		t.Errorf("%+v", sum)
	}
	shown := parley(t, State{}, "show", file, "--episode", "3").want(t, exit.OK).stdout
	was := parley(t, State{}, "show", from, "--episode", "2").want(t, exit.OK).stdout
	_, before, _ := strings.Cut(was, "turn 0")
	before, _, _ = strings.Cut(before, "turn 3")
	_, kept, _ := strings.Cut(strings.ReplaceAll(shown, " copied", ""), "turn 0")
	if kept, _, _ = strings.Cut(kept, "turn 3"); kept != before {
		t.Errorf("the beginning is now\n%s\nand was\n%s", kept, before)
	}
	if n := strings.Count(shown, " copied\n"); n != 3 {
		t.Errorf("%d calls are marked as copied:\n%s", n, shown)
	}
	if list := parley(t, State{}, "show", file).stdout; !strings.Contains(list, "forked    from "+from+", episode 2, turn 3") {
		t.Error(list)
	}
	parley(t, State{}, "run", file, "--quiet").want(t, exit.OK)

	parley(t, State{}, "fork", from, "--episode", "2", "--turn", "3").want(t, exit.Misuse).wantErr(t, file+" exists already")
	out := filepath.Join(t.TempDir(), "again.parley")
	again := parley(t, State{}, "fork", file, "--episode", "0", "--turn", "1", "--out", out).want(t, exit.OK)
	if !strings.Contains(again.stdout, "run file: "+out) {
		t.Error(again.stdout)
	}
	again.wantErr(t, "continuing from turn 1 of episode 0 of "+file)
}

func TestForkBadInput(t *testing.T) {
	t.Parallel()
	sequential(t)
	from := conversation(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{from}, "--episode"},
		{[]string{from, "--episode", "0"}, "--turn"},
		{[]string{from, "--episode", "3", "--turn", "0"}, "has no episode 3: it has 0 to 2"},
		{[]string{from, "--episode", "0", "--turn", "4"}, "there is no turn 4: it has 0 to 3"},
		{[]string{from, "--episode", "0", "--turn", "1", "--repeat", "0"}, "0 repeats"},
		{[]string{from, "--episode", "0", "--turn", "1", "--set", "kind=other"}, "a fork plays the same kind"},
		{[]string{from, "--episode", "0", "--turn", "1", "--set", "agents.large.modle=x"}, "did you mean model"},
		{[]string{from, "--episode", "0", "--turn", "3", "--set", "params.messages=1"}, "does not fit the changed plan"},
		{[]string{"nowhere.parley", "--episode", "0", "--turn", "1"}, "there is no such run file"},
		{[]string{write(t, "notes.txt", "not a run, only some words"), "--episode", "0", "--turn", "1"}, "not a run file"},
	} {
		out := filepath.Join(t.TempDir(), "fork.parley")
		parley(t, State{}, append([]string{"fork", "--out", out}, c.args...)...).want(t, exit.Misuse).wantErr(t, c.want)
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%v: left a file behind", c.args)
		}
	}
}

// TestForkPhase forks episodes at phases, by the names that their worlds give them.
func TestForkPhase(t *testing.T) {
	t.Parallel()
	sequential(t)
	secrets := playedPlan(t, "kind: secrets\nepisodes: 1\nagents: {small: sim/small}\nparams: {players: 4, rounds: 3, messages: 1}\n")
	diplomacy := playedPlan(t, "kind: diplomacy\nepisodes: 1\nagents: {small: sim/small}\nparams: {rounds: 0, diary: false, end_phase: S1902M}\n")
	scenario := filepath.Join(t.TempDir(), "scenario.parley")
	parley(t, State{}, "run", "../../examples/scenario/plan.yaml", "--out", scenario, "--set", "episodes=1", "--quiet").want(t, exit.OK)
	for _, c := range []struct{ file, phase, turn, suffix string }{
		{secrets, "round 1", "turn 0", "-e0-round-1"},
		{secrets, "Round-3", "turn 2", "-e0-Round-3"},
		{secrets, "2", "turn 1", "-e0-2"},
		{diplomacy, "S1901M", "turn 0", "-e0-S1901M"},
		{diplomacy, "f1901m", "turn 1", "-e0-f1901m"},
		{scenario, "turn 2", "turn 2", "-e0-turn-2"},
	} {
		parley(t, State{}, "fork", c.file, "--episode", "0", "--phase", c.phase, "--quiet").want(t, exit.OK)
		file := strings.TrimSuffix(c.file, ".parley") + c.suffix + ".parley"
		if got := parley(t, State{}, "show", file).want(t, exit.OK).stdout; !strings.Contains(got, "episode 0, "+c.turn+"\n") {
			t.Errorf("%s of %s:\n%s", c.phase, c.file, got)
		}
	}
	simple := conversation(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{secrets, "--phase", "round 4"}, "--phase round 4: there is no such phase; did you mean round 1? want one of round 1, round 2, round 3"},
		{[]string{diplomacy, "--phase", "F1901N"}, "did you mean F1901M?"},
		{[]string{secrets, "--phase", "round 1", "--turn", "1"}, "use --turn K, or --phase NAME"},
		{[]string{secrets}, "use --turn K, or --phase NAME"},
		{[]string{simple, "--phase", "round 2"}, "want one of round 1"},
		// With two messages the third turn is of round 2: the recorded turns say nothing of where a changed plan has its phases.
		{[]string{secrets, "--phase", "round 3", "--set", "params.messages=2"}, "--phase round 3: there is no such phase"},
	} {
		parley(t, State{}, append([]string{"fork", "--episode", "0"}, c.args...)...).want(t, exit.Misuse).wantErr(t, c.want)
	}
}

// playedPlan plays a plan and returns the run file.
func playedPlan(t *testing.T, plan string) string {
	t.Helper()
	p, err := planfile.Parse("plan.yaml", []byte(plan), worlds.Standard(), nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.parley")
	if _, err := (app.Play{Plan: p, File: file, Tool: "test"}).Run(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	return file
}
