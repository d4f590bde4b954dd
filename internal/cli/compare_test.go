package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/run/planfile"
	"parley/worlds"
)

// TestCompareBranches forks an episode several times and compares the branches with each other and with the
// original run.
func TestCompareBranches(t *testing.T) {
	t.Parallel()
	sequential(t)
	from, dir := conversation(t), t.TempDir()
	as, other := filepath.Join(dir, "as-it-was.parley"), filepath.Join(dir, "other.parley")
	for _, c := range [][]string{{"--out", as}, {"--out", other, "--set", "agents.large.model=sim/tiny"}} {
		parley(t, State{}, append([]string{"fork", from, "--episode", "2", "--turn", "1", "--repeat", "12", "--quiet"}, c...)...).want(t, exit.OK)
	}
	got := parley(t, State{}, "compare", as, other).want(t, exit.OK).stdout
	for _, want := range []string{"No comparison is paired. Each repeat counts once.", "unpaired", "REPEATS", "one and the same episode"} {
		if !strings.Contains(strings.ToUpper(got), strings.ToUpper(want)) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	got = parley(t, State{}, "compare", from, as, "--json").want(t, exit.OK).stdout
	if !strings.Contains(got, `"n": 1`) && !strings.Contains(got, `"n":1`) || !strings.Contains(got, "repeats") {
		t.Errorf("the episode among its branches:\n%s", got)
	}
}

func TestCompareMistyped(t *testing.T) {
	t.Parallel()
	sequential(t)
	run := conversation(t)
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--by", "agnet"}, []string{`--by: unknown factor "agnet"`, "file, agent, model, seat, lineup, cell, variation", `did you mean agent?`}},
		{[]string{"--by", "day of the week"}, []string{"file, agent, model, seat, lineup, cell, variation, and any other param"}},
		{[]string{"--by", "agent,seat,agent"}, []string{`"agent" is named twice`}},
		{[]string{"--by", "agent,seat", "--by", "model,cell,file"}, []string{"5 factors are named: at most 4 at once"}},
		{[]string{"--score", "pionts"}, []string{`"pionts"`, `did you mean points?`, "There are: "}},
		{[]string{"--against", "samll"}, []string{`"samll"`, `did you mean small?`}},
	} {
		parley(t, State{}, append([]string{"compare", run}, c.args...)...).want(t, exit.Misuse).wantErr(t, c.says...)
	}
	if got := parley(t, State{}, "compare", run).want(t, exit.OK).stdout; !strings.Contains(got, "paired") {
		t.Errorf("it does not say whether it is paired:\n%s", got)
	}
}

// TestCompareWithoutScores checks that the file is named that has no scores, not the one that has some.
func TestCompareWithoutScores(t *testing.T) {
	t.Parallel()
	sequential(t)
	url, _ := refusing(t, 401, `{"error":{"message":"bad key"}}`)
	plan := labPlan(t, url+"/v1")
	parley(t, State{}, "run", plan, "--trust", "PATH="+url).want(t, exit.Failed)
	run, empty := conversation(t), strings.TrimSuffix(plan, ".yaml")+".parley"
	got := parley(t, State{}, "compare", run, empty).want(t, exit.Misuse)
	if want := filepath.Base(empty) + " has no scores yet"; !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "only one") {
		t.Errorf("%q lacks %q", got.stderr, want)
	}
	parley(t, State{}, "compare", run, empty, "--score", "points").want(t, exit.Misuse).wantErr(t, " has no score points yet")
}

// TestCompareProblems checks that evolutions are compared by the test problems they share, whatever their seeds,
// and not by number if they share none.
func TestCompareProblems(t *testing.T) {
	t.Parallel()
	sequential(t)
	evolved := func(seed, problems int) string {
		plan := fmt.Sprintf("kind: evolve\nseed: %d\nagents: {model: sim/solver}\nparams: {preset: quick, population_size: 4, max_generations: 0, problems: {train: 4, validation: 0, test: 8, seed: %d}, baselines: {seeds: 0, texts: [Guess.]}}\n", seed, problems)
		p, err := planfile.Parse("plan.yaml", []byte(plan), worlds.Standard(), nil)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), fmt.Sprintf("s%d-p%d.parley", seed, problems))
		if _, err := (app.Play{Plan: p, File: file, Tool: "test"}).Run(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		return file
	}
	first := evolved(1, 1)
	for file, want := range map[string]string{evolved(2, 1): "All comparisons are paired", evolved(1, 2): "No comparison is paired"} {
		if got := parley(t, State{}, "compare", first, file, "--score", "accuracy_test").want(t, exit.OK).stdout; !strings.Contains(got, want) {
			t.Errorf("%s: it does not say %q:\n%s", filepath.Base(file), want, got)
		}
	}
}

// TestCompareByPreset checks that --by knows a param that the plan varies and that episodes do not have.
func TestCompareByPreset(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := write(t, "plan.yaml", "kind: evolve\nagents: {model: sim/solver}\nparams: {population_size: 4, max_generations: 1, problems: {train: 4, validation: 0, test: 8}, baselines: {seeds: 0}}\nplan: {matrix: {params: {preset: [quick, random_search]}, repeat: 2}}\n")
	file := filepath.Join(t.TempDir(), "run.parley")
	parley(t, State{}, "run", plan, "--out", file, "--quiet").want(t, exit.OK)
	parley(t, State{}, "compare", file, "--by", "preset").want(t, exit.OK).wantOut(t, "quick and random_search")
}
