package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
)

// unpricedPlan has a model without a known price play against one with a price.
const unpricedPlan = `kind: secrets
episodes: 3
providers: {lab: {dialect: sim}}
agents: {a: lab/any, b: sim/small}
lineup: {first: a, second: b}
params: {messages: 2}
`

// summed runs a command with --json and returns its summary.
func summed(t *testing.T, code int, args ...string) (sum app.Summary, raw string) {
	t.Helper()
	got := parley(t, State{}, append(args, "--json", "--quiet")...).want(t, code)
	if strings.Count(got.stdout, "\n") != 1 {
		t.Fatalf("want one line: %q", got.stdout)
	}
	if err := json.Unmarshal([]byte(got.stdout), &sum); err != nil {
		t.Fatal(err)
	}
	return sum, got.stdout
}

// TestUnpricedIsSaid checks that an unknown cost is never shown as zero.
func TestUnpricedIsSaid(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	plan := write(t, "plan.yaml", unpricedPlan)
	some, _ := summed(t, exit.OK, "run", plan, "--out", filepath.Join(dir, "some.parley"))
	if some.Cost == nil || *some.Cost == 0 || strings.Join(some.Unpriced, " ") != "lab/any" {
		t.Errorf("%+v", some)
	}
	none, raw := summed(t, exit.OK, "run", plan, "--set", "lineup.second=a", "--out", filepath.Join(dir, "none.parley"))
	if none.Cost != nil || !strings.Contains(raw, `"cost_usd":null,"unpriced":["lab/any"]`) {
		t.Errorf("%s", raw)
	}
	got := parley(t, State{}, "run", plan, "--set", "lineup.second=a", "--out", filepath.Join(dir, "said.parley")).want(t, exit.OK)
	if !strings.Contains(got.stdout, "; unpriced; ") || !strings.Contains(got.stdout, "no price is known for lab/any") || strings.Contains(got.stdout, "$0") {
		t.Error(got.stdout)
	}
	shown := parley(t, State{}, "show", filepath.Join(dir, "said.parley")).want(t, exit.OK)
	if strings.Contains(shown.stdout, "$0") || !strings.Contains(shown.stdout, ", no cost recorded") {
		t.Error(shown.stdout)
	}
	checks := parley(t, State{}, "check", plan, "--set", "lineup.second=a").want(t, exit.OK)
	if strings.Contains(checks.stdout, "$0") || !strings.Contains(checks.stdout, "unpriced") || !strings.Contains(checks.stdout, "no price is known for lab/any") {
		t.Error(checks.stdout)
	}
	asked := parley(t, State{}, "check", plan, "--set", "lineup.second=a", "--json").want(t, exit.OK)
	if !strings.Contains(asked.stdout, `"cost_usd":null`) || !strings.Contains(asked.stdout, `"unpriced":["lab/any"]`) {
		t.Error(asked.stdout)
	}
}

// TestAskSummaryAsJSON checks that the summary goes to standard output, unless the records go there.
func TestAskSummaryAsJSON(t *testing.T) {
	t.Parallel()
	in := requests(t, 3)
	const want = `{"answered":3,"failed":0,"rejected":0,"kept":0,"cached":0,"usage":{"input":9,"output":6},"cost_usd":0.000003,"unpriced":[]}` + "\n"
	got := parley(t, echo().state(), "ask", in, "--json", "--quiet", "--out", filepath.Join(t.TempDir(), "out.jsonl")).want(t, exit.OK)
	if got.stdout != want || got.stderr != "" {
		t.Errorf("stdout %s, stderr %s", got.stdout, got.stderr)
	}
	got = parley(t, echo().state(), "ask", in, "--json", "--quiet").want(t, exit.OK)
	if got.stderr != want || len(records(t, got.stdout)) != 3 {
		t.Errorf("stdout %s, stderr %s", got.stdout, got.stderr)
	}
	lab := []string{"ask", in, "--model", "lab/any", "--dialect", "sim", "--base-url", "https://llm.example.com"}
	unpriced := parley(t, State{}, append(lab, "--json", "--quiet")...).want(t, exit.OK)
	if !strings.Contains(unpriced.stderr, `"cost_usd":null,"unpriced":["lab/any"]`) {
		t.Error(unpriced.stderr)
	}
	parley(t, State{}, lab...).want(t, exit.OK).wantErr(t, "; unpriced; ", "no price is known for lab/any")
}

// TestResumeOfNothing checks that resuming a complete run does not change the file.
func TestResumeOfNothing(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := conversation(t)
	before := read(t, file)
	shown := parley(t, State{}, "show", file).stdout
	got := parley(t, State{}, "resume", file).want(t, exit.OK).wantErr(t, "is complete: nothing is left to play")
	if !strings.Contains(got.stdout, "complete: 3 of 3 episodes; ") || !strings.Contains(got.stdout, " calls, 0 of them new; ") {
		t.Error(got.stdout)
	}
	if read(t, file) != before || parley(t, State{}, "show", file).stdout != shown {
		t.Error("the file has changed")
	}
	if there, err := os.ReadDir(filepath.Dir(file)); err != nil || len(there) != 1 {
		t.Errorf("%v are beside it, %v", there, err)
	}
}

// TestRaisedBudget checks that the budget of resume replaces that of the run.
func TestRaisedBudget(t *testing.T) {
	t.Parallel()
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 20\nagents: {a: {model: sim/small, max_tokens: 50}}\nbudget: 0.0005\n")
	file := filepath.Join(t.TempDir(), "run.parley")
	parley(t, State{}, "run", plan, "--out", file, "--quiet").want(t, exit.Budget)
	parley(t, State{}, "resume", file, "--quiet").want(t, exit.Budget)
	parley(t, State{}, "resume", file, "--budget", "9", "--quiet").want(t, exit.OK)
	fork := filepath.Join(t.TempDir(), "fork.parley")
	parley(t, State{}, "fork", file, "--episode", "0", "--turn", "1", "--repeat", "30", "--out", fork, "--quiet").want(t, exit.OK)
}
