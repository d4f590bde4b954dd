package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// TestKindWords checks that every invalid command line gets a short answer that says what was meant or how to
// write it, with the right exit code.
func TestKindWords(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plan := put("plan.yaml", "kind: secrets\nagents: {a: sim/small}\n")
	run := filepath.Join(dir, "played.parley")
	parley(t, State{}, "run", plan, "--out", run, "--quiet").want(t, exit.OK)
	nowhere := filepath.Join(dir, "nowhere")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"no such command":       {[]string{"bogus"}, []string{"unknown command bogus\n", "the commands: run, ctl, ", "parley --help"}},
		"a misspelled command":  {[]string{"repotr", run}, []string{"unknown command repotr; did you mean report?"}},
		"a plan and no verb":    {[]string{plan}, []string{"to run a plan: parley run " + plan}},
		"a run and no verb":     {[]string{run}, []string{"parley show " + run, "parley run " + run}},
		"no plan":               {[]string{"run"}, []string{"run: <plan> is missing", "usage: parley run <plan> [flags]", "parley run --help"}},
		"a flag with a slip":    {[]string{"run", plan, "--bugdet", "5"}, []string{"--bugdet", "did you mean", "--budget"}},
		"a flag and no verb":    {[]string{"--budget", "5"}, []string{"--budget", "parley --help"}},
		"a flag before a verb":  {[]string{"--budget", "3", "run", "x.yaml"}, []string{"unknown flag --budget: flags follow the command: parley run x.yaml --budget 3\n"}},
		"a key as a flag":       {[]string{"check", plan, "--budget", "3"}, []string{"check: unknown flag --budget; to change a key of the plan: --set budget=3\n"}},
		"a key and its value":   {[]string{"check", plan, "--lineup=x"}, []string{"--set lineup=VALUE\n"}},
		"no key as a flag":      {[]string{"check", plan, "--budgets", "3"}, []string{"check: unknown flag --budgets"}},
		"a number of episode":   {[]string{"show", run, "3"}, []string{"show: unexpected argument 3; to name an episode: --episode 3\n"}},
		"a run without its end": {[]string{"show", strings.TrimSuffix(run, ".parley")}, []string{"there is no such run file; did you mean " + run + "?\n"}},
		"an upstream's address": {[]string{"gateway", "--out", nowhere, "--upstream", "http://127.0.0.1:1/v1"}, []string{"--upstream: write NAME=URL, with a name of your choice: --upstream lab=http://127.0.0.1:1/v1\n"}},
		"a host alone":          {[]string{"run", plan, "--trust", "http://h"}, []string{"parley: --trust: write VARIABLE=HOST"}},
		"no host":               {[]string{"run", plan, "--trust", "LAB_KEY=ftp://h"}, []string{"parley: --trust: LAB_KEY: the host: is not an http or https address"}},
		"flags that are needed": {[]string{"fork", run}, []string{"fork: missing flags: --episode=N", "usage: parley fork --episode=N <file> [flags]"}},
		"no number":             {[]string{"show", run, "--episode", "x"}, []string{"show: --episode"}},
		"a seed for a run":      {[]string{"run", run, "--seed", "3"}, []string{run + " is a run file: --out and --seed are for plans"}},
		"no run is checked":     {[]string{"check", put("diary.parley", "dear diary")}, []string{"diary.parley is not a run file"}},
		"a plan is shown":       {[]string{"show", plan}, []string{plan + " is a plan, not a run file: parley run " + plan}},
		"a plan is forked":      {[]string{"fork", plan, "--episode", "0", "--turn", "0"}, []string{plan + " is a plan, not a run file"}},
		"no such run":           {[]string{"show", nowhere}, []string{nowhere + ": there is no such run file\n"}},
		"a run with a slip":     {[]string{"run", filepath.Join(dir, "playd.parley")}, []string{"there is no such run file; did you mean " + run + "?"}},
		"a plan with a slip":    {[]string{"run", filepath.Join(dir, "plan.yml")}, []string{"there is no such file; did you mean " + plan + "?"}},
		"a folder as a plan":    {[]string{"run", dir}, []string{dir + ": is a directory: name the plan file in it"}},
		"a folder as a run":     {[]string{"show", dir}, []string{dir + " is a folder, not a run file: name a file in it"}},
		"nothing in it":         {[]string{"run", put("empty.yaml", "")}, []string{"empty.yaml: is empty", "parley init KIND"}},
		"no text":               {[]string{"run", put("b.yaml", strings.Repeat("\x7fELF\x02\x01\x00", 40))}, []string{"b.yaml: is not text"}},
		"tabs":                  {[]string{"run", put("tabs.yaml", "kind: secrets\nagents:\n\ta: sim/small\n")}, []string{"tabs.yaml:3:1: a tab cannot indent: use spaces"}},
		"no folder for the run": {[]string{"run", plan, "--out", filepath.Join(nowhere, "x.parley")}, []string{"the folder " + nowhere + " does not exist"}},
		"nor for the fork":      {[]string{"fork", run, "--episode", "0", "--turn", "0", "--out", filepath.Join(nowhere, "x.parley")}, []string{"the folder " + nowhere + " does not exist"}},
		"it exists":             {[]string{"fork", run, "--episode", "0", "--turn", "0", "--out", run}, []string{run + " exists already: resume it, or name another file\n"}},
		"no file of prices":     {[]string{"run", plan, "--set", "prices=" + nowhere, "--out", filepath.Join(dir, "plan.parley")}, []string{nowhere + ": there is no such file\n"}},
		"no file of requests":   {[]string{"ask", nowhere + ".jsonl"}, []string{"parley: " + nowhere + ".jsonl: there is no such file\n"}},
		"requests with a slip":  {[]string{"ask", filepath.Join(dir, "qestions.jsonl")}, []string{"there is no such file; did you mean " + put("questions.jsonl", "") + "?"}},
		"no schema":             {[]string{"ask", "hi", "--schema", nowhere}, []string{"--schema: " + nowhere + ": there is no such file\n"}},
		"a flag and no value":   {[]string{"ask", "hi", "--model"}, []string{"ask: --model needs a value: write --model PROVIDER/MODEL\n"}},
		"a flag for a value":    {[]string{"ask", "hi", "--budget", "--quiet"}, []string{"ask: --budget needs a value: write --budget USD\n"}},
		"a negative number":     {[]string{"view", "--export", "site", "--export-episodes", "-1"}, []string{"--export-episodes -1: that reads as a flag; if --export-episodes may be negative, write --export-episodes=-1\n"}},
		"a list and no value":   {[]string{"report", run, "--by"}, []string{"report: --by needs a value: write --by FACTOR"}},
		"a decimal comma":       {[]string{"ask", "hi", "--budget", "1,50"}, []string{`ask: --budget: want a number, found "1,50": write 1.50, with a point`}},
		"a budget of nothing":   {[]string{"ask", "hi", "--budget", "0"}, []string{"--budget 0: want an amount in US dollars, 0.0001 to 1000000000; without --budget there is no limit\n"}},
		"a budget of no number": {[]string{"ask", "hi", "--budget", "NaN"}, []string{"--budget NaN: want an amount in US dollars"}},
		"a comma, any meaning":  {[]string{"ask", "hi", "--temperature", "1,000"}, []string{`found "1,000": write 1000, or 1.000, without a comma`}},
		"a comma in a plan":     {[]string{"check", plan, "--set", "budget=1,50"}, []string{`budget: wants an amount in US dollars, 0.0001 to 1000000000, found the text "1,50": write 1.50, with a point`}},
		"a number too large":    {[]string{"ask", "hi", "--samples", "99999999999999999999"}, []string{`ask: --samples: want a whole number, found "99999999999999999999"`}},
		"a time without a unit": {[]string{"ask", "hi", "--deadline", "3"}, []string{`ask: --deadline: want a time with its unit, as 90s or 10m, found "3"`}},
		"a table with a slip":   {[]string{"export", run, "--table", "score"}, []string{`--table: unknown table "score"; did you mean scores? want one of calls, episodes, messages, scores, labels, reveals, all`}},
		"no such table":         {[]string{"export", run, "--table", "nothing"}, []string{`--table: unknown table "nothing"; want one of calls, episodes`}},
		"an agent with a slip":  {[]string{"run", plan, "--set", "agents.aa.model=sim/x"}, []string{"--set agents.aa.model=sim/x: agents.aa: sits in no seat"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := parley(t, State{}, c.args...).want(t, exit.Misuse).wantErr(t, c.want...)
			if got.stdout != "" || strings.Contains(got.stderr, "sqlite") || strings.Contains(got.stderr, "file does not exist") || strings.Count(got.stderr, "\n") > 4 {
				t.Errorf("stdout %q, stderr %s", got.stdout, got.stderr)
			}
		})
	}
}

// TestHelpAsAVerb asks for help in several ways.
func TestHelpAsAVerb(t *testing.T) {
	t.Parallel()
	if got, want := parley(t, State{}, "help").want(t, exit.OK).stdout, parley(t, State{}, "--help").stdout; got != want || want == "" {
		t.Errorf("got %s", got)
	}
	if got, want := parley(t, State{}, "help", "run").want(t, exit.OK).stdout, parley(t, State{}, "run", "--help").stdout; got != want || want == "" {
		t.Errorf("got %s", got)
	}
}

// TestOtherFormats checks that a file of another format version or another program is refused, and that the
// error says what to do.
func TestOtherFormats(t *testing.T) {
	t.Parallel()
	const userVersion, application = 60, 68 // where SQLite keeps them, four bytes each
	for at, want := range map[int]string{userVersion: "another format version (99; this program reads version", application: "database of another program"} {
		file := conversation(t)
		b := []byte(read(t, file))
		copy(b[at:], []byte{0, 0, 0, 99})
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"show", "run"} {
			parley(t, State{}, verb, file).want(t, exit.Misuse).wantErr(t, "parley: "+file, want)
		}
		if read(t, file) != string(b) {
			t.Error("it was changed")
		}
	}
}
