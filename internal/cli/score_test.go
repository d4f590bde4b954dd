package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const trustRubric = `kind: rubric
params:
  rules:
    questions: {count: '\?'}
    messages: {expr: 'len(calls)', per: episode}
  questions:
    friendly: {ask: 'How friendly is {seat}?', scale: [1, 5]}
    tone: {ask: 'Which word describes {seat} best?', choices: [warm, neutral, cold]}
  judges: [strict, mild]
agents:
  strict: {model: sim/small, max_tokens: 300}
  mild: {model: sim/large, max_tokens: 300}
lineup: {strict: strict, mild: mild}
`

// sameResult fails the test unless two runs have the same digest and cost: what was paid before a stop was not paid again.
func sameResult(t *testing.T, got, want outcome) {
	t.Helper()
	for _, key := range []string{`"digest":"`, `"cost_usd":`} {
		_, a, ok := strings.Cut(want.stdout, key)
		_, b, _ := strings.Cut(got.stdout, key)
		if a, _, _ = strings.Cut(a, ","); !ok || !strings.HasPrefix(b, a+",") {
			t.Errorf("%s: %s, want that of %s", key, got.stdout, want.stdout)
		}
	}
}

// TestRubric: rules and judges of a plan file score a run. What is cut short is resumed and pays for nothing twice, and the
// scores are the same as without a stop.
func TestRubric(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	file, with := filepath.Join(dir, "run.parley"), filepath.Join(dir, "trust.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(with, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(trustRubric)
	parley(t, State{}, "run", "../../examples/secrets.yaml", "--set", "plan=", "--set", "lineup={first: small, second: large}", "--set", "episodes=6", "--out", file).want(t, 0)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	score := func(more ...string) outcome {
		t.Helper()
		return parley(t, State{}, append([]string{"score", file, "--with", with}, more...)...)
	}
	score("--estimate").want(t, 0).wantOut(t, "rubric, 6 episodes", "next:  parley score ")
	if _, err := os.Stat(filepath.Join(dir, "run.scores")); err == nil {
		t.Error("an estimate scores")
	}
	whole := score("--json").want(t, 0).wantOut(t, `"complete":6`, `"asked":24`)
	score("--name", "cut", "--budget", "0.0008").want(t, 3)
	cut := filepath.Join(dir, "run.scores", "cut.parley")
	sameResult(t, parley(t, State{}, "resume", cut, "--budget", "1", "--json").want(t, 0), whole)
	rows := parley(t, State{}, "export", file, "--table", "scores").want(t, 0).stdout
	for name, n := range map[string]int{`"trust.questions"`: 12, `"trust.messages","value":6`: 6, `"trust.friendly"`: 12, `"trust.tone: warm"`: 12} {
		if strings.Count(rows, `"name":`+name) != n {
			t.Errorf("%s: %d rows, want %d\n%s", name, strings.Count(rows, name), n, rows)
		}
	}
	parley(t, State{}, "report", file).want(t, 0).wantOut(t, "trust.tone: cold")
	parley(t, State{}, "report", filepath.Join(dir, "run.scores", "trust.parley")).want(t, 0).wantOut(t, "Agreement of judges", "Do judges prefer long texts?", "Do judges prefer the first choice?")
	write(trustRubric + "# edited\n")
	score().want(t, 0).wantErr(t, "its scores are named trust-2")
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the run file has changed, or %v", err)
	}
	for text, want := range map[string]string{
		strings.Replace(trustRubric, `'\?'`, `'('`, 1):                   "trust.yaml:4:5: params.rules.questions: error parsing regexp",
		strings.ReplaceAll(trustRubric, "strict", "first"):               "params.judges[0]: first is a seat of ",
		strings.Replace(trustRubric, "kind: rubric", "kind: secrets", 1): "want a plan file with kind: rubric",
		trustRubric + "plan: {matrix: {}}\n":                             "trust.yaml:14:1: plan: cannot be combined with episodes",
	} {
		write(text)
		score().want(t, 2).wantErr(t, want)
	}
	write("kind: rubric\nparams: {rules: {questions: {count: '\\?'}}}\n") // no judges, so no agents
	score("--name", "rules").want(t, 0).wantOut(t, "6 of 6 episodes; 0 calls")
	write("kind: rubric\nparams: {questions: {kind: {ask: 'Is {seat} kind?'}}}\n")
	score("--name", "asks").want(t, 2).wantErr(t, "judge")
	write(trustRubric)
	parley(t, State{}, "run", with).want(t, 2).wantErr(t, "it scores a run; use parley score RUN --with")
	parley(t, State{}, "score", file, "--with", filepath.Join(dir, "nothing.yaml")).want(t, 2).wantErr(t, "there is no such file")
}

const seatRubric = `kind: rubric
params:
  rules: {odd: {expr: 'seat == "first" ? 1 : scores'}}
  questions:
    trusted: {by: seat, ask: 'How far did you trust the other player?', scale: [1, 5]}
    regret: {by: seat, ask: 'What do you regret?', text: true}
    fair: {ask: 'Was it fair?', per: episode}
agents: {critic: {model: sim/small, max_tokens: 300}}
`

// TestInterview: the models of a run answer questions after its end. What is cut short is resumed with the same digest, and pays
// for nothing twice. A rule that fails for a seat leaves out only its own score.
func TestInterview(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	file, with := filepath.Join(dir, "run.parley"), filepath.Join(dir, "asked.yaml")
	if err := os.WriteFile(with, []byte(seatRubric), 0o600); err != nil {
		t.Fatal(err)
	}
	parley(t, State{}, "run", "../../examples/secrets.yaml", "--set", "plan.matrix.repeat=3", "--out", file).want(t, 0)
	whole := parley(t, State{}, "score", file, "--with", with, "--json").want(t, 0).wantOut(t, `"complete":6`, `"asked":18`)
	parley(t, State{}, "score", file, "--with", with, "--name", "cut", "--budget", "0.0008").want(t, 3)
	cut := filepath.Join(dir, "run.scores", "cut.parley")
	sameResult(t, parley(t, State{}, "resume", cut, "--budget", "1", "--json").want(t, 0), whole)
	rows := parley(t, State{}, "export", file, "--table", "scores").want(t, 0).stdout
	for name, n := range map[string]int{"asked.trusted": 12, "asked.fair": 6, "asked.odd": 6, "asked.regret": 0} {
		if got := strings.Count(rows, `"name":"`+name+`"`); got != n {
			t.Errorf("%s: %d rows, want %d\n%s", name, got, n, rows)
		}
	}
	parley(t, State{}, "report", filepath.Join(dir, "run.scores", "asked.parley")).want(t, 0).wantOut(t, "Rules that failed", "Answers in words", "interview large")
	parley(t, State{}, "show", cut, "--episode", "0", "--seat", "interview small").want(t, 0).wantOut(t, "regret")
	if err := os.WriteFile(with, []byte(strings.ReplaceAll(seatRubric, "critic", "small")), 0o600); err != nil {
		t.Fatal(err)
	}
	parley(t, State{}, "score", file, "--with", with).want(t, 2).wantErr(t, "agents.small: ", "rename the one of the judges")
}

// TestCategories: a judge makes categories and chooses them. What is cut short, in any stage, is resumed with the same digest and cost.
func TestCategories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, with := filepath.Join(dir, "run.parley"), "../../examples/scores/why.yaml"
	parley(t, State{}, "run", "../../examples/secrets.yaml", "--set", "plan.matrix.repeat=3", "--out", file).want(t, 0)
	parley(t, State{}, "score", file, "--with", with, "--estimate").want(t, 0).wantOut(t, "13 episodes")
	whole := parley(t, State{}, "score", file, "--with", with, "--json").want(t, 0).wantOut(t, `"complete":13`, `"asked":37`)
	for name, budget := range map[string]string{"one": "0.0006", "two": "0.0016"} {
		parley(t, State{}, "score", file, "--with", with, "--name", name, "--budget", budget).want(t, 3)
		sameResult(t, parley(t, State{}, "resume", filepath.Join(dir, "run.scores", name+".parley"), "--budget", "1", "--json").want(t, 0), whole)
	}
	parley(t, State{}, "report", filepath.Join(dir, "run.scores", "why.parley")).want(t, 0).wantOut(t, "Categories of reasons", "Agreement with the first choice")
	parley(t, State{}, "report", file).want(t, 0).wantOut(t, "why.why: other")
}
