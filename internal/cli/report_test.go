package cli

import (
	"encoding/csv"
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/world/exhibit"
)

// duelPlan has two simulated models play against each other, in both seats.
const duelPlan = `kind: secrets
seed: 5
agents: {small: sim/small, large: sim/large}
plan: {matrix: {agents: [small, large], repeat: 20}}
`

// duel plays duelPlan into a file and returns its path.
func duel(t *testing.T, name string, sets ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	args := []string{"run", write(t, "plan.yaml", duelPlan), "--out", file, "--quiet"}
	for _, s := range sets {
		args = append(args, "--set", s)
	}
	parley(t, State{}, args...).want(t, exit.OK)
	return file
}

// TestReport has one of everything; what is missing is left out.
func TestReport(t *testing.T) {
	t.Parallel()
	file := runfiletest.File(t, cliSample()...)
	got := parley(t, State{}, "report", file).want(t, exit.OK)
	golden(t, "report", got.stdout)
	narrow := stripped(parley(t, State{Terminal: func(any) int { return 40 }}, "report", file).want(t, exit.OK).stdout)
	for line := range strings.Lines(narrow) {
		if len([]rune(line)) > 41 {
			t.Errorf("%d characters in a terminal of 40: %s", len([]rune(line))-1, line)
		}
	}
	if !strings.Contains(narrow, "(left out: ") {
		t.Errorf("it does not say what is left out: %s", narrow)
	}
}

// stripped removes the colors of a page.
func stripped(text string) string {
	for _, code := range []terminal.Ink{terminal.InkHead, terminal.InkFaint, terminal.InkBad, terminal.InkGood, terminal.InkName} {
		text = strings.ReplaceAll(text, "\x1b["+string(code)+"m", "")
	}
	return strings.ReplaceAll(text, "\x1b[0m", "")
}

// TestReportHostile checks that text from models does not reach a terminal or a page raw.
func TestReportHostile(t *testing.T) {
	t.Parallel()
	sequential(t)
	entries := cliSample()
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Replied:
			if e.Response != nil {
				e.Response.Text = hostileText + "<script>alert(1)</script>"
			}
			if e.Error != nil {
				e.Error.Message = hostileText
			}
		case *journal.Ended:
			if e.Outcome.Failed != "" {
				e.Outcome.Failed = hostileText
			}
		}
	}
	page := filepath.Join(t.TempDir(), "x.html")
	got := parley(t, State{Terminal: func(any) int { return 200 }}, "report", runfiletest.File(t, entries...), "--html", page).want(t, exit.OK)
	if text := stripped(got.stdout); exhibit.Visible(text) != text {
		t.Errorf("%q", text)
	}
	if text := read(t, page); strings.Contains(text, "<script>alert") || strings.ContainsAny(text, "\x1b\x07\x7f\u009b\u202e\u2066") || !strings.Contains(text, "&lt;script&gt;alert") {
		t.Error("the page has the hostile text unescaped, or not at all")
	}
}

func TestReportForms(t *testing.T) {
	t.Parallel()
	sequential(t)
	a, b := duel(t, "a.parley"), duel(t, "b.parley", "agents.small.model=sim/tiny")
	dir := filepath.Join(t.TempDir(), "new", "tables")
	got := parley(t, State{}, "report", a, b, "--json", "--csv", dir).want(t, exit.OK)
	var doc struct {
		Tables []struct {
			Name    string
			Columns []string
			Rows    []map[string]any
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Tables) < 8 {
		t.Fatalf("%d tables", len(doc.Tables))
	}
	seen := map[string]bool{}
	for _, table := range doc.Tables {
		if table.Columns[0] != "run" && table.Columns[1] != "run" {
			t.Errorf("%s does not say which run a row is of", table.Name)
		}
		if seen[table.Name] {
			continue
		}
		seen[table.Name] = true
		rows, err := csv.NewReader(strings.NewReader(read(t, filepath.Join(dir, table.Name+".csv")))).ReadAll()
		if err != nil || len(rows) != len(table.Rows)+1 {
			t.Errorf("%s.csv: %d rows, want %d: %v", table.Name, len(rows), len(table.Rows)+1, err)
		}
	}
}

func TestReportRefuses(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := runfiletest.File(t, cliSample()...)
	other := runfiletest.File(t, cliSample()...)
	before := read(t, file)
	for _, out := range []string{file, other} {
		parley(t, State{}, "report", file, "--html", out).want(t, exit.Misuse).wantErr(t, "is part of a run file: name another")
	}
	if read(t, file) != before {
		t.Error("the run file was changed")
	}
	parley(t, State{}, "report", file, "--html", t.TempDir()).want(t, exit.Misuse).wantErr(t, "is a folder")
	parley(t, State{}, "report", file, "--episodes", "-1").want(t, exit.Misuse)
	if got := parley(t, State{}, "report", file, "--html", filepath.Join(t.TempDir(), "no", "x.html")).want(t, exit.Misuse); !strings.Contains(got.stderr, "does not exist: make it first") {
		t.Error(got.stderr)
	}
	parley(t, State{}, "report").want(t, exit.Misuse)
	parley(t, State{}, "report", "no-such.parley").want(t, exit.Misuse).wantErr(t, "no-such.parley")
	parley(t, State{}, "report", write(t, "plan.yaml", duelPlan)).want(t, exit.Misuse).wantErr(t, "is a plan")
	parley(t, State{}, "report", runfiletest.File(t)).want(t, exit.Misuse).wantErr(t, "holds no run yet")
	parley(t, State{}, "compare", file, "--by", "day").want(t, exit.Misuse)
	parley(t, State{}, "compare", file).want(t, exit.Misuse).wantErr(t, "nothing to compare", "--by file")
}

// TestCompare checks that the simulated models differ, and that a run does not differ from itself.
func TestCompare(t *testing.T) {
	t.Parallel()
	sequential(t)
	a := duel(t, "a.parley")
	again := filepath.Join(t.TempDir(), "again.parley")
	if err := os.WriteFile(again, []byte(read(t, a)), 0o644); err != nil {
		t.Fatal(err)
	}
	got := parley(t, State{}, "compare", a).want(t, exit.OK)
	if !strings.HasPrefix(got.stdout, "Findings\n") || !strings.Contains(got.stdout, "points: ") || !strings.Contains(got.stdout, "\nComparisons\n") {
		t.Error(got.stdout)
	}
	same := parley(t, State{}, "compare", a, again).want(t, exit.OK)
	if strings.Contains(same.stdout, "Differs") || strings.Contains(same.stdout, "Cannot be shown") || !strings.Contains(same.stdout, "exactly the same in all of 20 deals") {
		t.Error(same.stdout)
	}
}

// TestReportDocs runs the commands of docs/how-to/results.md on real files.
func TestReportDocs(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	for name, from := range map[string]string{
		"run.parley": duel(t, "run.parley"), "before.parley": duel(t, "before.parley"), "after.parley": duel(t, "after.parley", "agents.small.model=sim/tiny"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(read(t, from)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ran := 0
	for line := range strings.Lines(read(t, "../../docs/how-to/results.md")) {
		words := split(line)
		if !strings.HasPrefix(line, "    parley ") {
			continue
		}
		for i, w := range words {
			if strings.HasPrefix(w, "examples/") {
				words[i] = "../../" + w
			}
			if strings.HasSuffix(w, ".parley") || strings.HasSuffix(w, ".html") || w == "tables" {
				words[i] = filepath.Join(dir, w)
			}
		}
		parley(t, State{}, words[1:]...).want(t, exit.OK)
		ran++
	}
	if ran < 20 {
		t.Errorf("only %d commands found", ran)
	}
	if text := read(t, filepath.Join(dir, "both.html")); !strings.Contains(text, "before.parley, after.parley") {
		t.Error("the page of two runs does not name them")
	}
}

// TestFactors plays the example with tags and variations, and checks the tables by tag.
func TestFactors(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := filepath.Join(t.TempDir(), "f.parley")
	plan := "../../examples/secrets-factors.yaml"
	got := parley(t, State{}, "run", plan, "--set", "plan.matrix.repeat=4", "--out", file, "--quiet", "--json").want(t, exit.OK).stdout
	if !strings.Contains(got, `"tags":{"length":"long","prompt":"plain","size":"large"}`) {
		t.Errorf("the scores of run have no tags:\n%s", got)
	}
	untagged := parley(t, State{}, "run", plan, "--set", "plan.matrix.repeat=4", "--set", "agents.small-plain.tags=", "--set", "plan.matrix.variations.long.tags=",
		"--out", filepath.Join(t.TempDir(), "g.parley"), "--quiet", "--json").want(t, exit.OK).stdout
	if a, b := digestIn(t, got), digestIn(t, untagged); a != b {
		t.Errorf("tags change what is played: digests %s and %s", a, b)
	}
	got = parley(t, State{}, "report", file, "--by", "prompt,size", "--by", "length").want(t, exit.OK).stdout
	for _, want := range []string{"By prompt, size, length", "plain − wary", "(plain − wary) with large − with small", "●", "CR2"} {
		if !strings.Contains(got, want) {
			t.Errorf("the report does not say %q:\n%s", want, got)
		}
	}
	got = parley(t, State{}, "compare", file, "--by", "prompt,messages", "--score", "points", "--json").want(t, exit.OK).stdout
	for _, want := range []string{`"name":"comparisons"`, `"name":"effects"`, "prompt × messages", "plain, 2"} {
		if !strings.Contains(strings.ReplaceAll(got, `": "`, `":"`), want) {
			t.Errorf("the comparison has no %s:\n%s", want, got)
		}
	}
	if got := parley(t, State{}, "export", file, "--table", "episodes").want(t, exit.OK).stdout; !strings.Contains(got, `"tags":"{\"length\":\"short\"}"`) {
		t.Error("the episodes have no tags")
	}
	parley(t, State{}, "report", file, "--by", "prmpt").want(t, exit.Misuse).wantErr(t, `unknown factor "prmpt"; did you mean prompt?`)
}

// TestCheckBalance checks that check says in which ways the lineups are balanced.
func TestCheckBalance(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := write(t, "plan.yaml", "kind: secrets\nagents: {a: sim/a, b: sim/b, c: sim/c}\nplan: {matrix: {agents: [a, b, c]}}\n")
	for rotate, want := range map[string]string{
		"latin":    "balance   not equal in 3 lineups: a follows c 1 times, and a follows b 0 times",
		"williams": "balance   of 6 lineups: every agent sits in every seat, and every two agents meet, and every agent follows every other one equally often",
	} {
		got := parley(t, State{}, "check", plan, "--episodes", "2", "--set", "plan.matrix.rotate="+rotate).want(t, exit.OK).stdout
		if !strings.Contains(got, want) {
			t.Errorf("%s: it does not say %q:\n%s", rotate, want, got)
		}
	}
	fixed := write(t, "fixed.yaml", "kind: secrets\nagents: {a: sim/a, b: sim/b, c: sim/c}\nparams: {players: 3}\nplan: {matrix: {lineups: [{player1: a, player2: b, player3: c}, {player1: b, player2: a, player3: c}]}}\n")
	parley(t, State{}, "check", fixed, "--episodes", "2").want(t, exit.OK).wantOut(t, "c always sits in player3", "every agent that moves sits in every other seat")
	got := parley(t, State{}, "check", plan, "--episodes", "2", "--json").want(t, exit.OK).stdout
	if !strings.Contains(got, `"neighbours": true`) && !strings.Contains(got, `"neighbours":true`) {
		t.Error(got)
	}
}

// digestIn returns the digest from the closing JSON of a run.
func digestIn(t *testing.T, closing string) string {
	t.Helper()
	var sum app.Summary
	if err := json.Unmarshal([]byte(closing), &sum); err != nil || sum.Digest == "" {
		t.Fatalf("%v: %s", err, closing)
	}
	return sum.Digest
}

// TestReportOfParts checks that a report of several runs has the variations of all of them.
func TestReportOfParts(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	plan := write(t, "plan.yaml", duelPlan)
	var files []string
	for name, messages := range map[string]string{"short": "1", "long": "2"} {
		file := filepath.Join(dir, name+".parley")
		files = append(files, file)
		set := "plan.matrix={agents: [small, large], repeat: 3, variations: {" + name + ": {params: {messages: " + messages + "}, tags: {length: " + name + "}}}}"
		parley(t, State{}, "run", plan, "--out", file, "--quiet", "--set", set).want(t, exit.OK)
	}
	got := parley(t, State{}, "report", files[0], files[1], "--by", "length", "--json").want(t, exit.OK)
	var d tables
	d.read(t, got.stdout)
	levels := map[string]bool{}
	for _, table := range d.Tables {
		for _, row := range table.Rows {
			if table.Name == "scores-by-factor" {
				levels[word(row["length"])] = true
			}
		}
	}
	if len(levels) != 2 {
		t.Errorf("levels %v, want short and long", levels)
	}
}

var (
	tagRE   = regexp.MustCompile(`<[^>]*>`)
	blockRE = regexp.MustCompile(`<(figure|tr|h2|h3|li|figcaption|details|svg class="chart)[ >]`)
	talkRE  = regexp.MustCompile(`<div class="said [^"]*marked`)
)

// TestReportOfKinds compares the texts of a page for a small run of each kind: titles, legends, ticks, labels
// and cells.
func TestReportOfKinds(t *testing.T) {
	t.Parallel()
	sequential(t)
	for name, c := range map[string]struct {
		plan string
		set  []string
	}{
		"diplomacy": {"diplomacy.yaml", []string{"episodes=2", "params.max_year=1901", "params.rounds=1"}},
		"secrets":   {"secrets-tournament.yaml", []string{"episodes=2", "params.rounds=2"}},
		"scenario":  {"scenario/plan.yaml", []string{"episodes=3"}},
		"evolve":    {"evolve.yaml", []string{"params.max_generations=2", "params.population_size=4", "params.problems.test=10", "params.problems.train=8", "params.problems.validation=8"}},
		"rollout":   {"rollout-maze.yaml", []string{"episodes=4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, page := filepath.Join(dir, "run.parley"), filepath.Join(dir, "run.html")
			args := []string{"run", "../../examples/" + c.plan, "--out", file, "--quiet"}
			for _, set := range c.set {
				args = append(args, "--set", set)
			}
			parley(t, State{}, args...).want(t, exit.OK)
			parley(t, State{}, "report", file, "--html", page, "--transcripts", "1").want(t, exit.OK)
			b, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "report-"+name, words(section(string(b), "scores")+section(string(b), "kind")))
			if marked := talkRE.Match(b); marked != (name == "secrets") {
				t.Errorf("messages are marked: %v", marked)
			}
			if _, talk, _ := strings.Cut(string(b), `<details class="talk"`); !strings.Contains(talk, `<div class="replay"`) {
				t.Error("the first transcript has no story")
			}
			shown := parley(t, State{}, "show", file, "--episode", "0").want(t, exit.OK).stdout
			if marked := strings.Contains(shown, "  * gives its own secret away ("); marked != (name == "secrets") {
				t.Errorf("show marks messages: %v", marked)
			}
		})
	}
}

// section returns a part of a page.
func section(page, id string) string {
	_, rest, _ := strings.Cut(page, `<section id="`+id+`">`)
	part, _, _ := strings.Cut(rest, `<section id="`)
	return part
}

// words returns the texts of a page, one line for each row and block, except those about time.
func words(page string) string {
	blocks := strings.SplitAfter(page, "</figure>")
	page = strings.Join(slices.DeleteFunc(blocks, func(b string) bool { return strings.Contains(b, "seconds") }), "")
	page = blockRE.ReplaceAllString(page, "\n$0")
	page = html.UnescapeString(tagRE.ReplaceAllString(page, " "))
	var lines []string
	for line := range strings.Lines(page) {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
