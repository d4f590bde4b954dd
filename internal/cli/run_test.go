package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/llm"
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
	got := parley(t, State{}, "run", file).want(t, exit.OK).wantErr(t, "is complete: nothing is left to play")
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
	parley(t, State{}, "run", file, "--quiet").want(t, exit.Budget)
	parley(t, State{}, "run", file, "--budget", "9", "--quiet").want(t, exit.OK)
	fork := filepath.Join(t.TempDir(), "fork.parley")
	parley(t, State{}, "fork", file, "--episode", "0", "--turn", "1", "--repeat", "30", "--out", fork, "--quiet").want(t, exit.OK)
}

// refusing starts a server that answers every request with a status and a body, and counts the requests.
func refusing(t *testing.T, status int, body string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// labPlan writes a plan of three episodes for a provider at url. Its key is PATH, which every environment has.
func labPlan(t *testing.T, url string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "plan.yaml")
	text := "kind: secrets\nepisodes: 3\nproviders:\n  lab: {dialect: openai, base_url: \"" + url + "\", key_env: PATH}\nagents: {x: lab/tiny}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestStoppedRunsSayWhatToDo checks that the closing lines and the JSON of a stopped run have a remedy and a
// command to resume it that works, and offer nothing to show if nothing was said.
func TestStoppedRunsSayWhatToDo(t *testing.T) {
	t.Parallel()
	sequential(t)
	for _, c := range []struct {
		name, body, base, remedy, why string
		status                        int
		kind                          llm.Kind
	}{
		{"key", `{"error":{"message":"bad key"}}`, "/v1", "check the key (key_env of the provider", "bad key", 401, llm.KindAuth},
		{"cache", `{"error":{"message":"CachedContent not found"}}`, "/v1", "with a ttl that outlives the run", "CachedContent not found", 403, llm.KindAuth},
		{"quota", `{"error":{"message":"no credit","code":"insufficient_quota"}}`, "/v1", "out of credit", "no credit", 429, llm.KindQuota},
		{"address", `{"error":{"message":"no such page"}}`, "", "should end in /v1", "/chat/completions: no such page; does base_url lack the /v1", 404, llm.KindBadRequest},
		{"model", `{"error":{"message":"no such model"}}`, "/v1", "check the name of the model", "no such model", 404, llm.KindBadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, _ := refusing(t, c.status, c.body)
			plan := labPlan(t, url+c.base)
			file := strings.TrimSuffix(plan, ".yaml") + ".parley"
			trust := "PATH=" + url
			got := parley(t, State{}, "run", plan, "--trust", trust).want(t, exit.Failed).stdout
			for _, want := range []string{"stopped: 0 of 3 episodes", c.why, "what to do: ", c.remedy, "parley run " + terminal.ShellWord(file) + " --trust " + terminal.ShellWord(trust) + "\n"} {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in\n%s", want, got)
				}
			}
			if strings.Contains(got, "parley show") {
				t.Errorf("there is nothing to show:\n%s", got)
			}
			got = parley(t, State{}, "run", file, "--trust", trust, "--json").want(t, exit.Failed).stdout
			var sum app.Summary
			if err := json.Unmarshal([]byte(got), &sum); err != nil || sum.Cause == nil || sum.AttemptFailure != nil {
				t.Fatalf("%v: %s", err, got)
			}
			if f := sum.Cause; f.Kind != c.kind || f.Status != c.status || f.Model != "lab/tiny" || f.Calls != 1 || !strings.Contains(f.Remedy, c.remedy) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestStoppedWhileRefused checks that a run that is stopped while every attempt is refused ends at once and says
// what was refused and what to do, though no call is recorded.
func TestStoppedWhileRefused(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	var once atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"error":{"message":"no capacity"}}`))
		if once.CompareAndSwap(false, true) {
			signals <- os.Interrupt
		}
	}))
	defer s.Close()
	var stdout, stderr bytes.Buffer
	code := mainWith(t.Context(), State{
		Args:   []string{"run", labPlan(t, s.URL+"/v1"), "--trust", "PATH=" + s.URL, "--json"},
		Stdout: &stdout, Stderr: &stderr, Signals: signals,
	})
	var sum app.Summary
	if err := json.Unmarshal(stdout.Bytes(), &sum); err != nil || code != exit.Interrupted {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout.String(), stderr.String())
	}
	f := sum.AttemptFailure
	if f == nil || sum.Cause != nil || len(sum.Failures) != 0 {
		t.Fatalf("%s", stdout.String())
	}
	if f.Kind != llm.KindOverloaded || f.Calls < 1 || f.Example != "503 no capacity" || !strings.Contains(f.Remedy, "try again later") {
		t.Errorf("%+v", f)
	}
	var out strings.Builder
	p := terminal.NewPage(&out)
	printTrouble(p, &sum)
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "overloaded (lab/tiny): 503 no capacity\nwhat to do: the provider is short of capacity") {
		t.Error(got)
	}
}

// TestFailedRunsSayHowToPlayAgain checks that a complete run is not played again by the same command, and that the
// closing lines have a command that plays its failed episodes again.
func TestFailedRunsSayHowToPlayAgain(t *testing.T) {
	t.Parallel()
	url, asked := refusing(t, 400, `{"error":{"message":"not like this"}}`)
	plan := labPlan(t, url+"/v1")
	trust := "PATH=" + url
	file := filepath.Join(filepath.Dir(plan), "first.parley")
	got := parley(t, State{}, "run", plan, "--out", file, "--trust", trust).want(t, exit.Failed).stdout
	want := "parley run " + terminal.ShellWord(plan) + " --out " + terminal.ShellWord(file) + " --trust " + terminal.ShellWord(trust) + " --failed\n"
	if !strings.Contains(got, want) || !strings.HasPrefix(got, "complete: 0 of 3 episodes, 3 failed") {
		t.Errorf("%q is not in\n%s", want, got)
	}
	before := asked.Load()
	got = parley(t, State{}, "run", file).want(t, exit.Failed).stdout
	if asked.Load() != before || !strings.Contains(got, "parley run "+terminal.ShellWord(file)+" --failed\n") {
		t.Errorf("%d calls more:\n%s", asked.Load()-before, got)
	}
	got = parley(t, State{}, "run", file, "--failed", "--trust", trust).want(t, exit.Failed).stdout
	if asked.Load() != 2*before || !strings.Contains(got, "--failed\n") {
		t.Errorf("%d calls more, want %d:\n%s", asked.Load()-before, before, got)
	}
}

// TestTheAddressMayChange checks that a run that a wrong address stopped can be resumed at another.
func TestTheAddressMayChange(t *testing.T) {
	t.Parallel()
	wrong, _ := refusing(t, 404, `{"error":{"message":"no such page"}}`)
	right, asked := refusing(t, 400, `{"error":{"message":"not like this"}}`)
	plan := labPlan(t, wrong+"/v1")
	parley(t, State{}, "run", plan, "--trust", "PATH="+wrong).want(t, exit.Failed)
	file := strings.TrimSuffix(plan, ".yaml") + ".parley"
	got := parley(t, State{}, "run", file, "--set", "providers.lab.base_url="+right+"/v1", "--trust", "PATH="+right, "--json").want(t, exit.Failed).stdout
	var sum app.Summary
	if err := json.Unmarshal([]byte(got), &sum); err != nil || asked.Load() == 0 || sum.State != "complete" || sum.Cause != nil {
		t.Fatalf("%v: %d calls: %s", err, asked.Load(), got)
	}
	// The failures cover the whole run, even if this process made no calls.
	got = parley(t, State{}, "run", file, "--json").want(t, exit.Failed).stdout
	var again app.Summary
	if err := json.Unmarshal([]byte(got), &again); err != nil || again.Calls.Asked != 0 || len(again.Failures) != 1 || again.Failures[0].Calls != sum.Calls.Total {
		t.Errorf("%v: %s", err, got)
	}
}

// TestSettingsLeftOut checks that check and run name the settings of agents that a model does not take, each once and at its line, that
// the warnings of run come before its first call, and that the table of calls has their names.
func TestSettingsLeftOut(t *testing.T) {
	t.Parallel()
	url, bodies := answering(t, "yes", `,"usage":{"prompt_tokens":9,"completion_tokens":1}`)
	plan := write(t, "plan.yaml", `kind: secrets
providers: {lab: {dialect: openai, base_url: "`+url+`", capabilities: [{match: "lab/*", no_sampling: true, no_stop: true}]}}
agents:
  cold: {model: lab/large, max_tokens: 9, seed: 4}
  hot:
    model: lab/large
    temperature: 1.5
    stop: [X]
    fallbacks: [sim/small]
lineup: {first: cold, second: hot}
episodes: 1
params: {messages: 1}
`)
	want := []string{
		plan + ":7:18: agents.hot.temperature: lab/large takes no temperature: it is left out",
		plan + ":8:11: agents.hot.stop: lab/large takes no stop: it is left out",
	}
	e := checked(t, State{}, plan)
	said := strings.Join(e.Warnings, "\n")
	file := filepath.Join(t.TempDir(), "run.parley")
	got := parley(t, State{}, "run", plan, "--out", file, "--quiet").want(t, exit.OK)
	for _, line := range want {
		if strings.Count(said, line) != 1 || strings.Count(got.stderr, "parley: warning: "+line+"\n") != 1 {
			t.Errorf("want %q once:\n%s\n%s", line, said, got.stderr)
		}
	}
	if strings.Contains(said+got.stderr, "cold") || strings.Count(got.stderr, "\n") != len(want) || len(*bodies) == 0 {
		t.Errorf("%d calls:\n%s\n%s", len(*bodies), said, got.stderr)
	}
	calls := parley(t, State{}, "export", file, "--table", "calls").want(t, exit.OK)
	for line := range strings.Lines(calls.stdout) {
		var call struct {
			Agent, Dropped string
		}
		if err := json.Unmarshal([]byte(line), &call); err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"hot": `["temperature","stop"]`}[call.Agent]; call.Dropped != want {
			t.Errorf("%+v", call)
		}
	}
}

// TestAskLeavesOut checks that ask says once what a model does not take.
func TestAskLeavesOut(t *testing.T) {
	t.Parallel()
	url, _ := answering(t, "yes", "")
	s := State{Env: func(name string) (string, bool) {
		return map[string]string{"OPENAI_API_KEY": "sk-hush"}[name], name == "OPENAI_API_KEY"
	}}
	got := parley(t, s, "ask", requests(t, 5), "--model", "openai/gpt-5-mini", "--base-url", url, "--temperature", "0", "--quiet").want(t, exit.OK)
	if n := strings.Count(got.stderr, "parley: warning: openai/gpt-5-mini takes no temperature: it is left out\n"); n != 1 {
		t.Errorf("said %d times: %s", n, got.stderr)
	}
}

const pricedPlan = `kind: secrets
seed: 1
episodes: 3
agents: {a: {model: sim/small, max_tokens: 50}}
params: {mode: standard, messages: 2}
prices: p.json
cache: answers
`

// pricesOf returns a file of prices in which a call of the priced plan costs about price/1000 dollars.
func pricesOf(price string) string {
	return `{"models": {"sim/small": {"input": ` + price + `, "output": ` + price + `}}}`
}

// TestPricesFromAnyFolder: a run file finds its prices and its cache from every current folder, and only its own. A change of
// prices is told, and what was spent stays spent.
func TestPricesFromAnyFolder(t *testing.T) {
	sequential(t)
	top := t.TempDir()
	for file, text := range map[string]string{"a/m/plan.yaml": pricedPlan, "a/m/p.json": pricesOf("1000"), "b/m/p.json": pricesOf("0.001")} {
		path := filepath.Join(top, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(top, "a"))
	sum := func(code int, args ...string) (s app.Summary, stderr string) {
		t.Helper()
		got := parley(t, State{}, append(args, "--json")...).want(t, code)
		if err := json.Unmarshal([]byte(got.stdout), &s); err != nil {
			t.Fatal(err)
		}
		return s, got.stderr
	}
	first, _ := sum(exit.Budget, "run", filepath.Join("m", "plan.yaml"), "--budget", "2.5")
	if first.Cost == nil || *first.Cost == 0 {
		t.Fatalf("%+v", first)
	}
	t.Chdir(filepath.Join(top, "b"))
	run := filepath.Join("..", "a", "m", "plan.parley")
	second, said := sum(exit.Budget, "run", run, "--budget", "2.51")
	if *second.Cost < *first.Cost || second.Episodes.Complete == 3 || strings.Contains(said, "changed") || len(second.Repriced) > 0 {
		t.Errorf("another file of prices was used: %+v\n%s", second, said)
	}
	entries, err := os.ReadDir("m")
	if err != nil || len(entries) != 1 {
		t.Errorf("the cache is in the wrong folder: %v, %v", entries, err)
	}
	t.Chdir(top)
	if err := os.Rename("a", "moved"); err != nil {
		t.Fatal(err)
	}
	run = filepath.Join(top, "moved", "m", "plan.parley")
	if _, err := os.Stat(filepath.Join(filepath.Dir(run), "answers")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join("moved", "m", "p.json"), []byte(pricesOf("0.001")), 0o600); err != nil {
		t.Fatal(err)
	}
	third, said := sum(exit.OK, "run", run, "--budget", "5")
	if *third.Cost < *second.Cost || len(third.Repriced) != 1 || strings.Count(said, "parley: warning: The price of sim/small has changed since the run began") != 1 {
		t.Errorf("%+v\n%s", third, said)
	}
}

// TestPricesOutsideALinkedFolder: the folder of a run file may be a link, and its prices outside it.
func TestPricesOutsideALinkedFolder(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	plan := filepath.Join(top, "work", "plan.yaml")
	for _, dir := range []string{filepath.Join(top, "disk", "deep"), filepath.Dir(plan)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	runs := filepath.Join(top, "work", "runs")
	if err := os.Symlink(filepath.Join(top, "disk", "deep"), runs); err != nil {
		t.Skip(err)
	}
	for file, text := range map[string]string{plan: pricedPlan, filepath.Join(top, "work", "p.json"): pricesOf("1000")} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join(runs, "x.parley")
	parley(t, State{}, "run", plan, "--out", run, "--budget", "2.5").want(t, exit.Budget)
	parley(t, State{}, "run", run, "--budget", "1000", "--allow-files", filepath.Dir(plan)).want(t, exit.OK)
}

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
	if sum, _ := summed(t, exit.OK, "run", file, "--set", "plan.matrix.repeat=5"); sum.Episodes.Complete != 10 || sum.Grown == nil || *sum.Grown.New != 4 {
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
	parley(t, State{}, "run", file, trust, model).want(t, exit.Misuse).wantErr(t, "Nothing is recorded in "+file+" yet: delete it, or play the plan into another file\n")
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

// TestGrowingIsDocumented runs the commands of "Ask for more" in docs/how-to/run.md in order and compares the output with the page.
func TestGrowingIsDocumented(t *testing.T) {
	sequential(t)
	_, page, found := strings.Cut(read(t, "../../docs/how-to/run.md"), "\n## Ask for more\n")
	page, _, more := strings.Cut(page, "\n## ")
	if !found || !more {
		t.Fatal("docs/how-to/run.md has no section about runs that grow")
	}
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

// TestServersInSummary checks that a run on two servers reports that one is missing, and the calls of each.
func TestServersInSummary(t *testing.T) {
	t.Parallel()
	sequential(t)
	sim, stop := serves(t, nil, "sim")
	defer stop()
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 2\nagents: {bold: lab/any}\nproviders:\n  lab: {dialect: openai, base_urls: [\""+
		deadURL+"\", \""+sim+"/v1\"]}\n")
	file := filepath.Join(t.TempDir(), "run.parley")
	got := parley(t, State{}, "run", plan, "--out", file, "--json").want(t, exit.OK).
		wantErr(t, "the server "+deadURL+" rests, and others take its calls: lab/any: transport")
	var sum app.Summary
	if err := json.Unmarshal([]byte(got.stdout), &sum); err != nil || len(sum.Servers) != 2 {
		t.Fatalf("%v: %s", err, got.stdout)
	}
	bad, well := sum.Servers[0], sum.Servers[1]
	if bad.URL != deadURL || bad.Failed == 0 || bad.Calls != bad.Failed || !bad.Resting ||
		well.URL != sim+"/v1" || well.Failed != 0 || well.Calls+bad.Calls != sum.Attempts || well.Resting {
		t.Errorf("%+v", sum.Servers)
	}
	quiet := parley(t, State{}, "run", plan, "--out", file+"2", "--quiet").want(t, exit.OK)
	if quiet.stderr != "" {
		t.Error(quiet.stderr)
	}
}
