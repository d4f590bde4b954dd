package cli

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// TestGrow checks that check, run, show and report say how a run grows, and that nothing else changes.
func TestGrow(t *testing.T) {
	t.Parallel()
	plan := write(t, "plan.yaml", duelPlan)
	file := strings.TrimSuffix(plan, ".yaml") + ".parley"
	parley(t, State{}, "run", plan, "--quiet", "--set", "plan.matrix.repeat=2").want(t, exit.OK)
	larger := []string{plan, "--set", "plan.matrix.repeat=3"}
	parley(t, State{}, append([]string{"check"}, larger...)...).want(t, exit.OK).wantOut(t, file+" has grown: 4 episodes recorded, 2 new")
	parley(t, State{}, append([]string{"check", "--json"}, larger...)...).want(t, exit.OK).wantOut(t, `"grown":{"recorded":4,"new":2}`)
	parley(t, State{}, append([]string{"run"}, larger...)...).want(t, exit.OK).wantErr(t, "parley: grown: 4 episodes recorded, 2 new\n")
	if again := parley(t, State{}, append([]string{"run"}, larger...)...).want(t, exit.OK); strings.Contains(again.stderr, "grown") || !strings.Contains(again.stderr, "nothing is left to play") {
		t.Error(again.stderr)
	}
	parley(t, State{}, "show", file).want(t, exit.OK).wantOut(t, "grown", ", from 4 episodes")
	parley(t, State{}, "report", file).want(t, exit.OK).wantOut(t, "The plan of this run was enlarged: it had 4 episodes until ", "and has 6 now.")
	parley(t, State{}, "check", plan, "--set", "seed=9").want(t, exit.OK).wantOut(t, "run would refuse the plan: "+file+" was recorded with another plan: seed was 5, and is 9 in the plan; plan.matrix.repeat was 3, and is 20 in the plan. A run can grow")
	parley(t, State{}, "run", plan, "--set", "plan.matrix.repeat=1").want(t, exit.Misuse).wantErr(t, "plan.matrix.repeat was 3, and is 1 in the plan", "--out")
	if sum, _ := summed(t, exit.OK, "resume", file, "--set", "plan.matrix.repeat=5"); sum.Episodes.Complete != 10 || sum.Grown == nil || *sum.Grown.New != 4 {
		t.Errorf("%+v", sum)
	}
}

// TestNothingPlayed checks that a run file in which a run began and nothing was played is told apart from one whose plan cannot change.
func TestNothingPlayed(t *testing.T) {
	t.Parallel()
	sequential(t)
	url, _ := refusing(t, 401, `{"error":{"message":"bad key"}}`)
	plan := labPlan(t, url+"/v1")
	file := strings.TrimSuffix(plan, ".yaml") + ".parley"
	trust := "--trust=PATH=" + url
	parley(t, State{}, "run", plan, trust).want(t, exit.Failed)
	const model = "--set=agents.x=lab/small"
	want := file + ` was recorded with another plan: agents.x.model was "lab/tiny", and is "lab/small" in the plan. Nothing is recorded in ` + file + " yet: delete it, or name another file with --out\n"
	if got := parley(t, State{}, "run", plan, trust, model).want(t, exit.Misuse).stderr; got != "parley: "+want {
		t.Errorf("%q, want %q", got, want)
	}
	parley(t, State{}, "check", plan, model).want(t, exit.OK).wantOut(t, "run would refuse the plan: "+want, "next:  delete "+file+", then parley run ")
	parley(t, State{}, "resume", file, trust, model).want(t, exit.Misuse).wantErr(t, "Nothing is recorded in "+file+" yet: delete it, or play the plan into another file\n")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	parley(t, State{}, "run", plan, trust, model).want(t, exit.Failed).wantOut(t, "bad key")
}

// tablesOf returns the named tables of a report, with their rows sorted.
func tablesOf(t *testing.T, names []string, args ...string) map[string][][]string {
	t.Helper()
	dir := t.TempDir()
	parley(t, State{}, append(append([]string{"report"}, args...), "--csv", dir)...).want(t, exit.OK)
	tables := map[string][][]string{}
	for _, name := range names {
		rows, err := csv.NewReader(strings.NewReader(read(t, filepath.Join(dir, name+".csv")))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(rows, slices.Compare)
		tables[name] = rows
	}
	return tables
}

// TestMergedReport checks that a report of overlapping parts equals the report of the whole run.
func TestMergedReport(t *testing.T) {
	t.Parallel()
	sequential(t)
	whole := duel(t, "whole.parley", "plan.matrix.repeat=4", "plan.matrix.params={messages: [1, 2, 3]}")
	a := duel(t, "a.parley", "plan.matrix.repeat=4", "plan.matrix.params={messages: [1, 2]}")
	b := duel(t, "b.parley", "plan.matrix.repeat=4", "plan.matrix.params={messages: [3, 2]}")
	c := filepath.Join(t.TempDir(), "copy.parley")
	if err := os.WriteFile(c, []byte(read(t, a)), 0o600); err != nil {
		t.Fatal(err)
	}
	names := []string{"scores", "scores-by-cell", "secrets-rates", "secrets-pairs"}
	want, got := tablesOf(t, names, whole), tablesOf(t, names, a, b, c)
	for _, name := range names {
		if len(want[name]) != len(got[name]) || len(want[name]) < 2 {
			t.Fatalf("%s has %d rows, want %d", name, len(got[name]), len(want[name]))
		}
		for i, row := range want[name] {
			for j, text := range row {
				x, errX := strconv.ParseFloat(text, 64)
				y, errY := strconv.ParseFloat(got[name][i][j], 64)
				if text != got[name][i][j] && (errX != nil || errY != nil || math.Abs(x-y) > 1e-9) {
					t.Errorf("%s: %v, want %v", name, got[name][i], row)
				}
			}
		}
	}
	parley(t, State{}, "report", a, b, c).want(t, exit.OK).wantOut(t,
		"3 runs are merged: episodes 0 to 15 are from a.parley, episodes 16 to 23 are from b.parley, all episodes of copy.parley are in another run.",
		"8 episodes are in both a.parley and b.parley; they count once.", "16 episodes are in both a.parley and copy.parley; they count once.")
	if apart := parley(t, State{}, "report", a, b, "--separate").want(t, exit.OK).stdout; strings.Contains(apart, "read as one") || !strings.Contains(apart, "RUN") {
		t.Error(apart)
	}
	parley(t, State{}, "compare", "--by", "agent", a, b).want(t, exit.OK).wantErr(t, "8 episodes are in both a.parley and b.parley; they count once")
	parley(t, State{}, "compare", a, c).want(t, exit.OK).wantErr(t, "16 episodes are in both a.parley and copy.parley, and counted in both")
	rows := parley(t, State{}, "export", a, b, c, "--table", "episodes").want(t, exit.OK).wantErr(t, "8 episodes are in both a.parley and b.parley")
	if n := strings.Count(rows.stdout, "\n"); n != 24 {
		t.Errorf("%d rows, want 24", n)
	}
	if n := strings.Count(parley(t, State{}, "export", a, b, "--table", "calls").want(t, exit.OK).stdout, "\n"); n != strings.Count(parley(t, State{}, "export", whole).want(t, exit.OK).stdout, "\n") {
		t.Errorf("%d calls", n)
	}
	parley(t, State{}, "export", a, b, "--format", "inspect").want(t, exit.Misuse).wantErr(t, "name one file")
}

// TestMergeConflicts checks that runs of different experiments are shown side by side, with their differences.
// Runs with other seeds are parts of one experiment, with their own deals.
func TestMergeConflicts(t *testing.T) {
	t.Parallel()
	sequential(t)
	a := duel(t, "a.parley", "plan.matrix.repeat=2")
	for set, want := range map[string]string{
		"agents.small.model=sim/tiny": `agents.small.model is "sim/small" in a.parley, and "sim/tiny" in b.parley`,
		"params.messages=1":           `cell "first=large, second=small": params.messages is 3 in a.parley, and 1 in b.parley`,
		"seed=6":                      "",
	} {
		b := duel(t, "b.parley", "plan.matrix.repeat=2", set)
		got := parley(t, State{}, "report", a, b).want(t, exit.OK)
		if want == "" {
			got.wantOut(t, "2 runs are merged: episodes 0 to 3 are from a.parley, episodes 4 to 7 are from b.parley.")
			continue
		}
		got.wantErr(t, "parley: the runs are shown side by side: "+want)
	}
	fork := filepath.Join(t.TempDir(), "fork.parley")
	parley(t, State{}, "fork", a, "--episode", "0", "--turn", "1", "--out", fork, "--quiet").want(t, exit.OK)
	parley(t, State{}, "report", a, fork).want(t, exit.OK).wantErr(t, "fork.parley is a fork")
}

var growingCommand = regexp.MustCompile("(?m)^    (parley .*)$")

// TestGrowingIsDocumented runs the commands of the page in order and compares the output with the page.
func TestGrowingIsDocumented(t *testing.T) {
	sequential(t)
	page := read(t, "../../docs/how-to/growing.md")
	t.Chdir(t.TempDir())
	_, rest, _ := strings.Cut(page, "```yaml\n")
	plan, rest, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("the page has no plan")
	}
	if err := os.WriteFile("plan.yaml", []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, m := range growingCommand.FindAllStringSubmatch(page, -1) {
		line := strings.ReplaceAll(m[1], "'", `"`)
		got := parley(t, State{}, split(line)[1:]...)
		if refused := strings.Contains(line, "# refused"); (got.code == exit.Misuse) != refused || got.code != exit.OK && !refused {
			t.Errorf("%s: code %d\n%s%s", m[1], got.code, got.stdout, got.stderr)
		}
		said += got.stdout + got.stderr
	}
	blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(rest, -1)
	if len(blocks) == 0 {
		t.Fatal("the page shows nothing")
	}
	for _, b := range blocks {
		for line := range strings.Lines(b[1]) {
			if !strings.Contains(said, strings.TrimSpace(line)) {
				t.Errorf("no command prints %q", line)
			}
		}
	}
}
