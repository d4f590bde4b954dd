package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/run/label"
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
	sameResult(t, parley(t, State{}, "run", cut, "--budget", "1", "--json").want(t, 0), whole)
	rows := parley(t, State{}, "export", file, "--table", "scores").want(t, 0).stdout
	for name, n := range map[string]int{`"trust.questions"`: 12, `"trust.messages","value":6`: 6, `"trust.friendly"`: 12, `"trust.tone: warm"`: 12} {
		if strings.Count(rows, `"name":`+name) != n {
			t.Errorf("%s: %d rows, want %d\n%s", name, strings.Count(rows, name), n, rows)
		}
	}
	parley(t, State{}, "report", file).want(t, 0).wantOut(t, "trust.tone: cold")
	parley(t, State{}, "report", filepath.Join(dir, "run.scores", "trust.parley")).want(t, 0).wantOut(t, "Agreement of judges", "Do judges prefer long texts?", "Do judges prefer the first choice?")
	write(strings.Replace(trustRubric, `'\?'`, `'[?]'`, 1))
	score().want(t, 0).wantErr(t, "its scores are named trust-2")
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the run file has changed, or %v", err)
	}
	for text, want := range map[string]string{
		strings.Replace(trustRubric, `'\?'`, `'('`, 1):                               "trust.yaml:4:5: params.rules.questions: error parsing regexp",
		strings.ReplaceAll(trustRubric, "strict", "first"):                           "params.judges[0]: first is a seat of ",
		strings.Replace(trustRubric, `{count: '\?'}`, `{field: bid, take: frst}`, 1): `params.rules.questions.take: wants one of first, last, mean, sum, min, max, found the text "frst"; did you mean first?`,
		strings.Replace(trustRubric, "kind: rubric", "kind: secrets", 1):             "want a plan file with kind: rubric",
		trustRubric + "plan: {matrix: {}}\n":                                         "trust.yaml:14:1: plan: cannot be combined with episodes",
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

// TestRubricEdited: what does not decide scores can change in a plan file. Judges are asked again only if something else does.
func TestRubricEdited(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	file, with := filepath.Join(dir, "run.parley"), filepath.Join(dir, "trust.yaml")
	score := func(text string, more ...string) outcome {
		t.Helper()
		if err := os.WriteFile(with, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return parley(t, State{}, append([]string{"score", file, "--with", with, "--json"}, more...)...)
	}
	parley(t, State{}, "run", "../../examples/secrets.yaml", "--set", "plan.matrix.repeat=3", "--out", file).want(t, 0)
	whole := score(trustRubric, "--name", "whole").want(t, 0)
	score(trustRubric+"budget: 0.0004\n").want(t, 3)
	agents := "agents:\n  strict: {model: sim/small, max_tokens: 300}\n  mild: {model: sim/large, max_tokens: 300}\n"
	other := strings.Replace("# A comment.\n"+trustRubric, agents, "providers: {sim: {limits: {concurrency: 3}}}\nagents: {mild: {max_tokens: 300, model: 'sim/large'}, strict: {model: sim/small, max_tokens: 300}}\n", 1)
	sameResult(t, score(other+"budget: 1\nlimits: {concurrency: 2}\n").want(t, 0).wantOut(t, "trust.parley"), whole)
	friendly, tone, _ := strings.Cut(trustRubric[strings.Index(trustRubric, "    friendly"):strings.Index(trustRubric, "  judges")], "\n")
	for i, changed := range []string{
		strings.Replace(trustRubric, "max_tokens: 300", "max_tokens: 301", 1),
		strings.Replace(trustRubric, "How friendly", "How kind", 1),
		strings.Replace(trustRubric, friendly+"\n"+tone, tone+friendly+"\n", 1), // judges read the questions in another order
		trustRubric + "seed: 2\n",
	} {
		score(changed).want(t, 0).wantErr(t, fmt.Sprintf("has changed since the scores trust: its scores are named trust-%d", i+2))
	}
	score(trustRubric, "--judge", "strict=sim/large").want(t, 2).wantErr(t, "agents.strict.model was", "use --name")
}

// TestScoreGrown: the scores of a run grow with it. Nothing is paid for twice, and the result is that of scoring all at once.
func TestScoreGrown(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	file, with := filepath.Join(dir, "run.parley"), filepath.Join(dir, "trust.yaml")
	if err := os.WriteFile(with, []byte(trustRubric), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(repeat string) {
		t.Helper()
		parley(t, State{}, "run", "../../examples/secrets.yaml", "--set", "plan.matrix.repeat="+repeat, "--out", file).want(t, 0)
	}
	score := func(with string, more ...string) outcome {
		t.Helper()
		return parley(t, State{}, append([]string{"score", file, "--with", with, "--json"}, more...)...)
	}
	why, words := "../../examples/scores/why.yaml", filepath.Join(dir, "words.yaml")
	if err := os.WriteFile(words, []byte("kind: rubric\nparams: {questions: {story: {ask: 'What happens?', per: episode, text: true}}}\nagents: {critic: {model: sim/small, max_tokens: 300}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("2")
	score(words).want(t, 0)
	score(with).want(t, 0).wantOut(t, `"complete":4`, `"asked":16`)
	score(why).want(t, 0)
	run("3")
	grown := score(with).want(t, 0).wantOut(t, `"complete":6`, `"earlier":16`, `"asked":8`).wantErr(t, "4 episodes recorded, 2 new")
	sameResult(t, score(with, "--name", "whole").want(t, 0), grown)
	score(words).want(t, 0).wantOut(t, `"asked":2`)
	for _, episode := range []string{"3", "4"} {
		parley(t, State{}, "show", file, "--episode", episode).want(t, 0).wantOut(t, "asked afterwards: words, story")
	}
	score(why).want(t, 0).wantOut(t, `"asked":0`).wantErr(t, "They have no scores: 4-5. Categories are made for all episodes together: to score these too, use another --name")
}

// TestJudgesAndPeople: the report of a run compares each judge with the verdicts of people, also if several runs are read as one.
func TestJudgesAndPeople(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	file, with := filepath.Join(dir, "run.parley"), filepath.Join(dir, "trust.yaml")
	if err := os.WriteFile(with, []byte(trustRubric), 0o600); err != nil {
		t.Fatal(err)
	}
	parley(t, State{}, "run", "../../examples/secrets.yaml", "--set", "plan.matrix.repeat=4", "--out", file).want(t, 0)
	other := filepath.Join(dir, "other.parley")
	parley(t, State{}, "run", "../../examples/secrets.yaml", "--set", "plan.matrix.repeat=4", "--set", "seed=2", "--out", other).want(t, 0)
	parley(t, State{}, "score", file, "--with", with).want(t, 0)
	about, err := outlineOf(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if err := label.Add(file, label.Label{Run: about.Begun.Run, Episode: i, Verdict: label.Verdicts()[i%2], Tag: "warm"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, files := range [][]string{{file}, {other, file}} {
		out := strings.Join(strings.Fields(parley(t, State{}, append([]string{"report"}, files...)...).want(t, 0).stdout), " ")
		if strings.Contains(out, "2 runs are merged") != (len(files) > 1) {
			t.Errorf("%v are not read as one: %s", files, out)
		}
		for _, row := range []string{"trust.tone: warm strict first 6 ", "trust.tone: cold mild second 6 ", "trust.friendly first 6 ", "trust.friendly strict first 6 ", "trust.friendly mild second 6 "} {
			if !strings.Contains(out, row) {
				t.Errorf("%v: there is no row %q: %s", files, row, out)
			}
		}
	}
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
	sameResult(t, parley(t, State{}, "run", cut, "--budget", "1", "--json").want(t, 0), whole)
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
		sameResult(t, parley(t, State{}, "run", filepath.Join(dir, "run.scores", name+".parley"), "--budget", "1", "--json").want(t, 0), whole)
	}
	parley(t, State{}, "report", filepath.Join(dir, "run.scores", "why.parley")).want(t, 0).wantOut(t, "Categories of reasons", "Agreement with the first choice")
	parley(t, State{}, "report", file).want(t, 0).wantOut(t, "why.why: other")
}

// TestCategoriesLink checks that the examples of categories lead to the episodes of the scored run.
func TestCategoriesLink(t *testing.T) {
	t.Parallel()
	sequential(t)
	file, site := conversation(t), filepath.Join(t.TempDir(), "site")
	parley(t, State{}, "score", file, "--with", "../../examples/scores/why.yaml", "--quiet").want(t, exit.OK)
	parley(t, State{}, "view", filepath.Dir(file), "--export", site).want(t, exit.OK)
	page, err := os.ReadFile(filepath.Join(site, "run", "run.scores", "why.parley.html"))
	if err != nil {
		t.Fatal(err)
	}
	_, categories, ok := strings.Cut(string(page), "Categories of reasons")
	links := regexp.MustCompile(`<a href="\.\./\.\./(run/run\.parley/episodes/[0-9]+\.html)">[0-9]+</a>`).FindAllStringSubmatch(categories, -1)
	if !ok || len(links) < 3 {
		t.Fatalf("%v:\n%s", links, page)
	}
	for _, l := range links {
		if _, err := os.Stat(filepath.Join(site, filepath.FromSlash(l[1]))); err != nil {
			t.Error(err)
		}
	}
}

// TestScoreIndependent: the report of the scores has the cells, means, intervals and independent units of the run that is scored.
func TestScoreIndependent(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "run.parley")
	parley(t, State{}, "run", "../../examples/secrets.yaml", "--set", "plan.matrix.repeat=3", "--out", file).want(t, 0)
	with := write(t, "rules.yaml", "kind: rubric\nparams: {rules: {length: {expr: 'len(answers[0])'}}}\n")
	parley(t, State{}, "score", file, "--with", with).want(t, 0)
	means := func(file, name string) (all []string) {
		var report tables
		report.read(t, parley(t, State{}, "report", file, "--json").want(t, 0).stdout)
		for _, table := range report.Tables {
			for _, row := range table.Rows {
				if table.Name == "scores-by-cell" && word(row["score"]) == name {
					all = append(all, fmt.Sprintf("%s %s %s", row["cell"], row["seat"], row["mean"]))
				}
			}
		}
		return all
	}
	got, want := means(filepath.Join(dir, "run.scores", "rules.parley"), "length"), means(file, "rules.length")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("the scores have\n%s\nand the run\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
