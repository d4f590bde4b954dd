package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/run/planfile"
	"parley/worlds"
)

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
