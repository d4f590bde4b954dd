package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ask/batch"
	"parley/internal/cli/exit"
	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestGatewayNotDeterministic replays and resumes a program whose prompts differ every time, and checks the
// number of calls found.
func TestGatewayNotDeterministic(t *testing.T) {
	t.Parallel()
	sim, stopSim := serves(t, nil, "sim")
	defer stopSim()
	file := filepath.Join(t.TempDir(), "run.parley")
	ask := func(url, salt string) outcome {
		return parley(t, State{}, "ask", "--model", "lab/echo", "--dialect", "openai", "--base-url", url+"/v1/sessions/game", "say this, salted with "+salt)
	}
	live := []string{"--out", file, "--upstream", "openai=" + sim + "/v1"}
	url, stop := serves(t, nil, "gateway", live...)
	ask(url, "abc").want(t, exit.OK)
	stop().want(t, exit.OK).wantErr(t, "1 call recorded")

	url, stop = serves(t, nil, "gateway", append(live, "--resume", "--ignore", `re:salted with \w+`)...)
	if got := ask(url, "xyz").want(t, exit.OK); got.stdout != "say this, salted with abc\n" {
		t.Errorf("%q", got.stdout)
	}
	stop().want(t, exit.OK).wantErr(t, "0 calls recorded in "+file+", 0 failed; 1 of 1 call found in the record (1 that differ as the rules allow)")

	url, stop = serves(t, nil, "gateway", append(live, "--resume")...)
	ask(url, "uvw").want(t, exit.OK)
	stop().want(t, exit.OK).wantErr(t, "parley: session game: a call is not in the record and is asked now", "0 of 1 call found in the record")

	url, stop = serves(t, nil, "gateway", "--replay", file, "--nearest", "0.5")
	if got := ask(url, "qqq").want(t, exit.OK); got.stdout != "say this, salted with abc\n" {
		t.Errorf("%q", got.stdout)
	}
	stop().want(t, exit.OK).wantErr(t, "parley: session game: episode 0, turn 0 is replayed for a call that differs", "1 of 1 call found in the record (1 by --nearest)")
}

// TestGatewayBudgetHere sets a budget for a server on this machine, which is free unless its price is known.
func TestGatewayBudgetHere(t *testing.T) {
	t.Parallel()
	sim, stopSim := serves(t, nil, "sim")
	defer stopSim()
	prices := write(t, "prices.json", `{"models": {"lab/*": {"input": 1000000, "output": 1000000}}}`)
	for _, c := range []struct {
		args []string
		code int
	}{{nil, exit.OK}, {[]string{"--prices", prices}, exit.Failed}} {
		args := append([]string{"--upstream", "lab=" + sim + "/v1", "--budget", "1", "--out", filepath.Join(t.TempDir(), "run.parley")}, c.args...)
		url, stop := serves(t, nil, "gateway", args...)
		got := parley(t, State{}, "ask", "--model", "lab/echo", "--dialect", "openai", "--base-url", url+"/v1", "say this")
		if got.code != c.code || c.code != exit.OK && !strings.Contains(got.stderr, "budget") {
			t.Errorf("%v: exit code %d: %s", c.args, got.code, got.stderr)
		}
		stop().want(t, exit.OK)
	}
}

// TestShowSetsAside shows a gateway's record with open batches: what they may still cost is not left, and what recorded lines cost is spent.
func TestShowSetsAside(t *testing.T) {
	t.Parallel()
	at := journal.Turn{Turn: 1, Strand: "", Episode: 0}
	file := runfiletest.File(t,
		&journal.Begun{Version: journal.Version, Run: "r", Kind: "gateway", KindVersion: 1, Plan: json.RawMessage(`{"budget":10}`)}, &journal.Opened{},
		&journal.Staged{Specs: world.List(world.Spec{Kind: "gateway", Params: json.RawMessage("{}"), Lineup: map[string]string{"client": "client"}})},
		&journal.Batched{Step: journal.BatchIntended, Key: "k", Provider: "lab", Model: "lab/m", Lines: []string{"one", "two", "three"}, Worst: 3 * llm.Dollar, WorstLine: llm.Dollar},
		&journal.Batched{Step: journal.BatchCreated, Key: "k", Batch: "b1"},
		&journal.Batched{Step: journal.BatchIntended, Key: "may exist", Provider: "lab", Model: "lab/m", Lines: []string{"one"}, Worst: llm.Dollar / 2, WorstLine: llm.Dollar / 2},
		&journal.Turned{Turn: at, Digest: batch.LineDigest("k", "two"), Calls: 1},
		&journal.Replied{Turn: at, Seat: "client", Agent: "client", Request: &llm.Request{Model: "lab/m"}, Response: &llm.Response{Text: "x", Metadata: llm.Metadata{Cost: llm.Dollar / 4}}},
	)
	parley(t, State{}, "show", file).want(t, exit.OK).wantOut(t, "$0.25 spent, $2.50 set aside, $7.25 left of $10.00")
	parley(t, State{}, "show", file, "--json").want(t, exit.OK).wantOut(t, `"set_aside_usd":2.5`)
}

// TestGatewayRules checks that invalid rules are refused.
func TestGatewayRules(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"use it with --replay or --resume":        {"--out", "run.parley", "--upstream", "openai=http://127.0.0.1:1/v1", "--ignore", "order"},
		"--nearest works only with --replay":      {"--out", "run.parley", "--upstream", "openai=http://127.0.0.1:1/v1", "--resume", "--nearest", "0.5"},
		"want a share from 0 to 1":                {"--replay", "run.parley", "--nearest", "NaN"},
		"unknown rule \"spaces\"; want re:REGEXP": {"--replay", "run.parley", "--ignore", "spaces"},
	} {
		parley(t, State{}, append([]string{"gateway"}, args...)...).want(t, exit.Misuse).wantErr(t, want)
	}
	for until, want := range map[string]string{
		"":                               "--until: score: is missing: The name of the score",
		"score=x,widht=1":                "--until widht=1: widht: unknown key; did you mean width?",
		"score=x,width=1,seat=a":         "--until seat=a: seat: unknown key",
		"score=x,width=1,max=9,min=x":    "--until min=x: min: wants a whole number",
		"score=x,width=1,max=9,min=10":   "--until: min 10, max 9",
		"score=x,width=1,max=0":          "--until max=0: max: wants a whole number, 2 to 2147483647",
		"score=x,width=1,min=0":          "--until min=0: min: wants a whole number, 2 to 2147483647",
		"score=x,width=1,confidence=0.0": "--until confidence=0.0: confidence: wants a number, more than 0 and less than 1",
		"score=x,width=1,step=0":         "--until step=0: step: wants a whole number, 1 to 2147483647",
		"score=x,width=0":                "--until width=0: width: wants a number, more than 0",
	} {
		parley(t, State{}, "gateway", "--out", filepath.Join(t.TempDir(), "run.parley"), "--upstream", "openai=http://127.0.0.1:1/v1", "--until", until).want(t, exit.Misuse).wantErr(t, want)
	}
}

// TestGateway asks through a gateway with `parley ask` in each wire format, shows the record, and replays it
// without the provider.
func TestGateway(t *testing.T) {
	t.Parallel()
	sim, stopSim := serves(t, nil, "sim")
	file := filepath.Join(t.TempDir(), "run.parley")
	url, stop := serves(t, nil, "gateway", "--out", file,
		"--upstream", "openai="+sim+"/v1", "--upstream", "anthropic="+sim+"/v1", "--alias", "copycat=anthropic/echo")
	ask := func(url, dialect, model string) outcome {
		return parley(t, State{}, "ask", "--model", "lab/"+model, "--dialect", dialect, "--base-url", url+"/v1/sessions/"+dialect, "say this")
	}
	for _, c := range []struct{ dialect, model string }{{"openai", "echo"}, {"responses", "echo"}, {"anthropic", "copycat"}} {
		if got := ask(url, c.dialect, c.model).want(t, exit.OK); got.stdout != "say this\n" {
			t.Errorf("%s: %q", c.dialect, got.stdout)
		}
	}
	stop().want(t, exit.OK).wantErr(t, "3 calls recorded in "+file+", 0 failed; 3 sessions")
	stopSim()
	shown := parley(t, State{}, "show", file, "--json").want(t, exit.OK)
	var run struct {
		Kind     string
		Episodes struct{ Total int }
	}
	if err := json.Unmarshal([]byte(shown.stdout), &run); err != nil || run.Kind != "gateway" || run.Episodes.Total != 3 {
		t.Errorf("%+v, %v: %s", run, err, shown.stdout)
	}
	otherVerbs(t, file)

	again, stop := serves(t, nil, "gateway", "--replay", file)
	if got := ask(again, "openai", "echo").want(t, exit.OK); got.stdout != "say this\n" {
		t.Errorf("%q", got.stdout)
	}
	res, err := http.Get(again + "/readyz")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", res, err)
	}
	res.Body.Close()
	stop().want(t, exit.OK).wantErr(t, "1 of 1 call found in the record; 1 session")
}

// otherVerbs checks that the commands that read run files can read the record of a gateway, and that those that
// play them refuse it.
func otherVerbs(t *testing.T, file string) {
	t.Helper()
	if got := parley(t, State{}, "show", file, "--episode", "0").want(t, exit.OK); !strings.Contains(got.stdout, "user\n    | say this\n    answer\n    | say this\n") || strings.Contains(got.stdout, "note wire") {
		t.Error(got.stdout)
	}
	if got := parley(t, State{}, "show", file, "--episode", "0", "--json").want(t, exit.OK); !strings.Contains(got.stdout, `"asked":[{"role":"user","content":"say this"}]`) {
		t.Error(got.stdout)
	}
	if got := parley(t, State{}, "report", file).want(t, exit.OK); !strings.Contains(got.stdout, "openai/echo") || !strings.Contains(got.stdout, "SESSION") {
		t.Error(got.stdout)
	}
	if got := parley(t, State{}, "export", file, "--format", "jsonl").want(t, exit.OK); strings.Count(got.stdout, "say this") < 3 {
		t.Error(got.stdout)
	}
	if got := parley(t, State{}, "export", file, "--out", filepath.Join(t.TempDir(), "run.eval")).want(t, exit.OK); !strings.HasSuffix(got.stdout, ": 3 samples\n") {
		t.Error(got.stdout)
	}
	if got := parley(t, State{}, "compare", file, "--by", "cell"); got.code == exit.Failed {
		t.Error(got.stderr)
	}
	plan := write(t, "plan.yaml", "kind: secrets\nagents: {bold: sim/small}\n")
	for _, args := range [][]string{{"run", file}, {"run", plan, "--out", file}, {"fork", file, "--episode", "0", "--turn", "0"}} {
		if got := parley(t, State{}, args...); got.code != exit.Misuse || !strings.Contains(got.stderr, "parley gateway --out ") {
			t.Errorf("%v: exit code %d: %s", args, got.code, got.stderr)
		}
	}
}

func TestGatewayUsage(t *testing.T) {
	t.Parallel()
	out := []string{"--out", filepath.Join(t.TempDir(), "run.parley")}
	up := append(out, "--upstream", "lab=http://127.0.0.1:9/v1")
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "--out FILE"},
		{out, "--upstream NAME=URL"},
		{append(up, "--replay", "x"), "leave out --out"},
		{append(out, "--upstream", "nobody"), "nobody=URL"},
		{append(out, "--upstream", "lab=nowhere"), "base_url"},
		{append(up, "--key-env", "NOT_SET"), "--key-env: no environment variable"},
		{append(up, "--key-env", "other=NOT_SET"), "no upstream of that name"},
		{append(up, "--alias", "x"), "NAME=PROVIDER/MODEL"},
		{append(up, "--alias", "x=nowhere/m"), "upstreams here: lab"},
		{append(up, "--fallback", "lab/a"), "PROVIDER/MODEL=PROVIDER/MODEL"},
		{append(up, "--addr", "0.0.0.0:0"), "--client-key-env, or say --open"},
		{append(up, "--client-key-env", "NOT_SET"), "--client-key-env"},
		{append(up, "--budget=-1"), "--budget -1: want an amount"},
		{append(up, "--budget", "0"), "--budget 0: want an amount"},
		{append(up, "--idle=-1s"), "must not be negative"},
		{append(up, "no-such-plan.yaml"), "no-such-plan.yaml"},
		{append(up, "--retries", "-1"), "--retries"},
	} {
		got := parley(t, State{}, append([]string{"gateway"}, c.args...)...)
		if got.code != exit.Misuse || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%v: exit code %d: %s", c.args, got.code, got.stderr)
		}
	}
}

// TestGatewayKeys checks that a request needs one of the keys that a variable holds.
func TestGatewayKeys(t *testing.T) {
	t.Parallel()
	url, stop := serves(t, map[string]string{"MY_KEYS": "one, two"}, "gateway", "--out", filepath.Join(t.TempDir(), "run.parley"),
		"--upstream", "lab=http://127.0.0.1:9/v1", "--client-key-env", "MY_KEYS")
	for key, want := range map[string]int{"one": http.StatusNotFound, "two": http.StatusNotFound, "three": http.StatusUnauthorized, "": http.StatusUnauthorized} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/sessions/none", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%q: %d, want %d", key, res.StatusCode, want)
		}
	}
	stop().want(t, exit.OK)
}

// TestGatewayPlan uses providers and model names of a plan.
func TestGatewayPlan(t *testing.T) {
	t.Parallel()
	sim, stopSim := serves(t, nil, "sim")
	plan := write(t, "plan.yaml", `kind: secrets
providers: {lab: {dialect: openai, base_url: "`+sim+`/v1"}}
agents: {bold: lab/echo, quiet: lab/echo}
lineup: {first: bold, second: quiet}
`)
	url, stop := serves(t, nil, "gateway", plan, "--out", filepath.Join(t.TempDir(), "run.parley"))
	if got := parley(t, State{}, "ask", "--model", "x/bold", "--base-url", url+"/v1", "say this").want(t, exit.OK); got.stdout != "say this\n" {
		t.Errorf("%q", got.stdout)
	}
	stop().want(t, exit.OK)
	stopSim()
}

// TestGatewayAccounts: the gateway uses accounts of a plan whose key a program prints, or whose tokens come from Google's
// credentials, and --key-command names a program for an upstream.
func TestGatewayAccounts(t *testing.T) {
	if _, err := exec.LookPath("cat"); err != nil {
		t.Skip("no cat")
	}
	t.Setenv("GATEWAY_ACCOUNTS_KEY", "hunter2-of-the-account") // which sends the key
	env := map[string]string{"GATEWAY_ACCOUNTS_KEY": "hunter2-of-the-account"}
	s := State{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	sim, stopSim := serves(t, env, "sim", "--key-env", "GATEWAY_ACCOUNTS_KEY")
	defer stopSim()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"hunter2-of-the-account","expires_in":3600,"token_type":"Bearer"}`)
	}))
	defer tokens.Close()
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", write(t, "google.json", `{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r","token_uri":"`+tokens.URL+`"}`))
	printer := write(t, "key.txt", "hunter2-of-the-account")
	plan := write(t, "plan.yaml", `kind: secrets
providers:
  lab: {dialect: openai, base_url: "`+sim+`/v1", key_command: [cat, "`+printer+`"]}
  azure: {base_url: "`+sim+`/openai", api_version: "2024-10-21", key_env: GATEWAY_ACCOUNTS_KEY}
  vertex: {base_url: "`+sim+`/v1/projects/p/locations/l/publishers/google"}
  vertex-anthropic: {base_url: "`+sim+`/v1/projects/p/locations/l/publishers/anthropic"}
agents: {lab-echo: lab/echo}
`)
	ask := func(url, dialect, model string) {
		t.Helper()
		if got := parley(t, State{}, "ask", "--model", "here/"+model, "--dialect", dialect, "--base-url", url+"/v1", "say this").want(t, exit.OK); got.stdout != "say this\n" {
			t.Errorf("%s at %s: %q, %s", model, dialect, got.stdout, got.stderr)
		}
	}
	parley(t, s, "gateway", plan, "--addr", "127.0.0.1:0", "--out", filepath.Join(t.TempDir(), "run.parley")).want(t, exit.Misuse).wantErr(t, "providers.lab.key_command", "nothing was run", "--trust")
	url, stop := serves(t, env, "gateway", plan, "--out", filepath.Join(t.TempDir(), "run.parley"), "--trust", "command=cat "+printer+"="+sim)
	for _, model := range []string{"lab-echo", "azure/echo", "vertex/echo", "vertex-anthropic/echo"} {
		ask(url, "openai", model)
		ask(url, "anthropic", model)
	}
	stop().want(t, exit.OK).wantErr(t, "8 calls recorded")

	url, stop = serves(t, env, "gateway", "--upstream", "lab="+sim+"/v1", "--key-command", "cat "+printer, "--out", filepath.Join(t.TempDir(), "run.parley"))
	ask(url, "openai", "lab/echo")
	stop().want(t, exit.OK)
	parley(t, s, "gateway", "--upstream", "lab="+sim+"/v1", "--key-command", "lab=cat "+printer, "--key-env", "GATEWAY_ACCOUNTS_KEY", "--out", "x.parley").want(t, exit.Misuse).wantErr(t, "not together with key_env")
}

// TestGatewayStudy runs two agents on eight tasks, under two conditions and several times, through a gateway and posts their scores: the record is a study like
// any run. What sessions are is said in the path, in headers and where a session is opened.
func TestGatewayStudy(t *testing.T) {
	t.Parallel()
	sim, stopSim := serves(t, nil, "sim")
	defer stopSim()
	file := filepath.Join(t.TempDir(), "run.parley")
	url, stop := serves(t, nil, "gateway", "--out", file, "--upstream", "openai="+sim+"/v1")
	post := func(path, body string, status int, header ...string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != status {
			t.Errorf("%s: %d %s %v", path, res.StatusCode, b, err)
		}
		return string(b)
	}
	const chat = `{"model": "echo", "messages": [{"role": "user", "content": "say this"}]}`
	tasks := []string{"maze", "sums", "sort", "words", "dates", "graph", "files", "shell"}
	for n := range 3 {
		condition := []string{"plain", "plain", "slow"}[n]
		for _, agent := range []string{"careful", "hasty"} {
			for i, task := range tasks {
				id := fmt.Sprintf("%s-%s-%d", agent, task, n)
				path, about := "/v1/sessions/"+id, []string(nil)
				said := ";agent=" + agent + ";task=" + task + ";condition=" + condition + ";tag.prompt=terse"
				switch n {
				case 0:
					post(path+said+"/chat/completions", chat, 200)
				case 1:
					about = []string{"X-Parley-Agent", agent, "X-Parley-Task", task, "X-Parley-Condition", condition, "X-Parley-Tags", "prompt=terse"}
				default:
					got := post(path, fmt.Sprintf(`{"agent": %q, "task": %q, "condition": %q, "tags": {"prompt": "terse"}}`, agent, task, condition), 200)
					if !strings.Contains(got, `"agent":"`+agent+`"`) || !strings.Contains(got, `"tags":{"prompt":"terse"}`) {
						t.Errorf("opened: %s", got)
					}
				}
				post(path+"/chat/completions", chat, 200, about...)
				post(path+"/chat/completions", chat, 409, "X-Parley-Agent", "other")
				post(path+";colour=red/chat/completions", chat, 404)
				score := map[string]float64{"careful": 0.8 + float64(i%3)/50, "hasty": 0.3 + float64(i%2)/50}[agent] + float64(n)/20
				post(path+"/close", fmt.Sprintf(`{"scores": {"reward": %g}}`, score), 200)
			}
		}
	}
	stop().want(t, exit.OK).wantErr(t, "64 calls recorded in "+file+", 0 failed; 48 refused; 48 sessions")
	report := parley(t, State{}, "report", file, "--json").want(t, exit.OK).stdout
	for _, want := range []string{`"careful"`, `"hasty"`, `"reward"`, `"plain"`} {
		if !strings.Contains(report, want) {
			t.Errorf("the report has no %s", want)
		}
	}
	byAgent := parley(t, State{}, "compare", file, "--by", "agent").want(t, exit.OK).stdout
	for _, want := range []string{"careful", "hasty", "reward", "8 deals", "48"} {
		if !strings.Contains(byAgent, want) {
			t.Errorf("compare has no %s:\n%s", want, byAgent)
		}
	}
	if strings.Contains(byAgent, "unknown") || strings.Contains(byAgent, "same seat") {
		t.Errorf("compare has no interval, or calls sessions of one client different:\n%s", byAgent)
	}
	byCondition := parley(t, State{}, "compare", file, "--by", "condition").want(t, exit.OK).stdout
	if !strings.Contains(byCondition, "paired") || !strings.Contains(byCondition, "8 deals in 48 episodes") {
		t.Errorf("conditions are not compared task by task:\n%s", byCondition)
	}
	for _, factor := range []string{"cell", "condition", "task", "tags.prompt"} {
		parley(t, State{}, "report", file, "--by", factor).want(t, exit.OK)
	}
	rubric := filepath.Join(t.TempDir(), "words.yaml")
	if err := os.WriteFile(rubric, []byte("kind: rubric\nparams: {rules: {said: {expr: 'len(calls)'}}, questions: {}, judges: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	parley(t, State{}, "score", file, "--with", rubric).want(t, exit.OK)
	scored := parley(t, State{}, "compare", file, "--score", "words.said").want(t, exit.OK).stdout
	if !strings.Contains(scored, "careful") || !strings.Contains(scored, "hasty") {
		t.Errorf("scores of sessions are not those of their agents:\n%s", scored)
	}
}
