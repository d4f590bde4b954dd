package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/cli/exit"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/envhttp"
)

// TestRollouts checks that a run of rollouts can be shown and reported.
func TestRollouts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := filepath.Join(dir, "first.parley")
	parley(t, State{}, "run", "../../examples/rollout.yaml", "--set", "episodes=3", "--out", first, "--quiet").want(t, exit.OK)
	story := parley(t, State{}, "show", first, "--episode", "1", "--story").want(t, exit.OK).stdout
	for _, want := range []string{"Step 1", "environment: What is", "agent (policy): ", "so far; not done", "done: terminated", "terminated after 3 steps"} {
		if !strings.Contains(story, want) {
			t.Errorf("the story has no %q: %s", want, story)
		}
	}
	page := filepath.Join(dir, "page.html")
	report := parley(t, State{}, "report", first).want(t, exit.OK).stdout
	if printed := parley(t, State{}, "report", first, "--html", page).want(t, exit.OK).wantErr(t, "the page is "+page).stdout; printed != "" {
		t.Errorf("with a page it also prints %q", printed)
	}
	for _, want := range []string{"Why episodes ended", "Lengths", "Groups", "Where the time goes"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "Distribution of rewards") || !strings.Contains(string(html), "Step by step") {
		t.Errorf("the page: %v", err)
	}
}

// TestExportForTraining checks that export says which command writes what a trainer reads.
func TestExportForTraining(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run.parley")
	parley(t, State{}, "run", "../../examples/rollout.yaml", "--set", "episodes=1", "--out", run, "--quiet").want(t, exit.OK)
	for _, args := range [][]string{{"--table", "sequences"}, {"--format", "sequences"}, {"--table", "verl"}, {"--format", "verl"}} {
		got := parley(t, State{}, append([]string{"export", run}, args...)...).want(t, exit.Misuse)
		got.wantErr(t, "for a trainer: parley trajectories --shape "+args[1])
	}
}

// TestCheckAct checks that check says whether servers answer, and what they are needed for.
func TestCheckAct(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(envhttp.NewEnvServer(envhttp.EnvServerConfig{Kinds: env.Standard()}))
	defer s.Close()
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	text := "kind: rollout\nepisodes: 4\nagents: {policy: sim/small}\nlineup: {agent: policy}\nparams: {env: word, servers: [\"" + s.URL + "\"]}\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := parley(t, State{}, "check", plan).want(t, exit.OK).stdout
	if !strings.Contains(got, s.URL+" answers") || !strings.Contains(got, "--act") || strings.Contains(got, "CALLS") {
		t.Errorf("%s", got)
	}
	got = parley(t, State{}, "check", plan, "--act").want(t, exit.OK).stdout
	for _, want := range []string{"One of the episodes:", "environment: (to begin with) Find a hidden word", "agent (policy): ", "reward 0, 0 so far", "The end"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not describe an episode with %q: %s", want, got)
		}
	}
	if !strings.Contains(got, s.URL+" answers") || strings.Contains(got, "--act") || !strings.Contains(got, "sim/small") {
		t.Errorf("%s", got)
	}
	got = parley(t, State{}, "check", plan, "--set", `params.servers=["http://127.0.0.1:1"]`).want(t, exit.OK).stdout
	if !strings.Contains(got, "http://127.0.0.1:1 does not answer") || !strings.Contains(got, "next:  start http://127.0.0.1:1, then") {
		t.Errorf("%s", got)
	}
}

// TestWrongEnvironment checks that answers in a wrong form fail the episodes soon, with the server, the request and what is wanted.
func TestWrongEnvironment(t *testing.T) {
	t.Parallel()
	reset, step := `{"observation":{},"info":{}}`, `{"observation":{},"reward":1,"terminated":true,"truncated":false,"info":{}}`
	for name, c := range map[string]struct{ reset, step, want string }{
		"list":   {`[1,2]`, step, "reset: the answer is a JSON array: want an object"},
		"text":   {reset, strings.Replace(step, `"reward":1`, `"reward":"1"`, 1), `step: reward is "1": want a number, or agents with their numbers`},
		"nan":    {reset, strings.Replace(step, `"reward":1`, `"reward":NaN`, 1), "step: reward is NaN, which JSON does not have: want a number"},
		"absent": {reset, strings.Replace(step, `"reward":1,`, "", 1), "step: reward is missing: want a number"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := map[string]string{"envs": `{"envs":[]}`, "reset": c.reset, "step": c.step, "get_task_prompt": `[{"role":"user","content":"hi"}]`}
				_, _ = w.Write([]byte(answer[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]))
			}))
			defer s.Close()
			plan := write(t, "plan.yaml", "kind: rollout\nepisodes: 40\nagents: {policy: sim/small}\nlineup: {agent: policy}\nparams: {env: x, servers: [\""+s.URL+"\"]}\n")
			got := parley(t, State{}, "check", plan, "--act")
			if !strings.Contains(got.stdout, s.URL+": "+c.want) {
				t.Errorf("check says %s%s", got.stdout, got.stderr)
			}
			got = parley(t, State{}, "run", plan, "--out", filepath.Join(t.TempDir(), "run.parley"))
			if all := got.stdout + got.stderr; !strings.Contains(all, s.URL+": "+c.want) || !strings.Contains(all, "40 failed") || !strings.Contains(all, "in the form of the protocol") {
				t.Errorf("run says %s", all)
			}
		})
	}
}

// TestNoTokenIDs checks that the refusal of a plan that asks for token ids in vain names the line of the agent.
func TestNoTokenIDs(t *testing.T) {
	t.Parallel()
	plan := write(t, "plan.yaml", "kind: rollout\nproviders: {v: {dialect: openai, base_url: \"http://127.0.0.1:1/v1\"}}\nagents:\n  p: {model: v/small}\nlineup: {agent: p}\nparams: {env: maze, tokens: true}\n")
	if got := parley(t, State{}, "check", plan).want(t, exit.Misuse); !strings.HasPrefix(got.stderr, "parley: "+plan+":4:3: agents.p: the plan asks v/small for token ids") {
		t.Error(got.stderr)
	}
}

// TestSignalWhileRowsAreRead checks that a signal ends the reading of a large dataset before anything is played.
func TestSignalWhileRowsAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rows.jsonl":        strings.Repeat(`{"question":"1+1","answer":"2"}`+"\n", 900_000),
		"environments.yaml": "environments: [{env_name: arithmetic, dataset: rows.jsonl}]\n",
		"plan.yaml":         "kind: rollout\nparams: {environments: environments.yaml}\nagents: {a: sim/small}\nlineup: {agent: a}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, verb := range []string{"run", "check", "trainer"} {
		signals := make(chan os.Signal, 1)
		signals <- os.Interrupt
		parley(t, State{Signals: signals}, append(strings.Fields(verb), filepath.Join(dir, "plan.yaml"))...).want(t, exit.Interrupted)
	}
	if _, err := os.Stat(filepath.Join(dir, "plan.parley")); err == nil {
		t.Error("a run was begun")
	}
}

// TestJudges checks that runs with a judge can be played, reported, learned from, and written as rows with the whole reward.
func TestJudges(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	for _, name := range []string{"judge", "compare"} {
		file, rows := filepath.Join(dir, name+".parley"), filepath.Join(dir, name+".jsonl")
		parley(t, State{}, "run", "../../examples/rollout-"+name+".yaml", "--set", "episodes=3", "--out", file, "--quiet").want(t, exit.OK)
		parley(t, State{}, "trajectories", file, "--trainable", "--out", rows).want(t, exit.OK)
		text, err := os.ReadFile(rows)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if len(lines) != 12 {
			t.Errorf("%s: %d rows", name, len(lines))
		}
		for _, line := range lines {
			var r struct {
				Return      float64  `json:"return"`
				Environment *float64 `json:"environment_reward"`
				Score       *float64 `json:"judge_score"`
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.Environment == nil || r.Score == nil {
				t.Fatalf("%s: %v in %s", name, err, line)
			}
			want := *r.Environment + 0.1**r.Score
			if name == "compare" {
				want = *r.Score
			}
			if d := r.Return - want; d > 1e-9 || d < -1e-9 {
				t.Errorf("%s: %v of %v and %v", name, r.Return, *r.Environment, *r.Score)
			}
		}
		report := parley(t, State{}, "report", file).want(t, exit.OK).stdout
		if !strings.Contains(report, "environment_reward") || !strings.Contains(report, "Rewards by group") {
			t.Errorf("%s: %s", name, report)
		}
		parley(t, State{}, "show", file, "--episode", "0", "--story").want(t, exit.OK)
	}
	parley(t, State{}, "check", "../../examples/rollout.yaml", "--set", "params.judge.questions.q.ask=x").want(t, exit.Misuse).wantErr(t, "judge")
}

// TestMCP checks that the tools of an MCP server are called in a run, that their results are in the rows, and that every
// session is ended.
func TestMCP(t *testing.T) {
	t.Parallel()
	var opened, ended, called atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ID     int
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		result := `{}`
		switch {
		case r.Method == http.MethodDelete:
			ended.Add(1)
			return
		case in.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", fmt.Sprint(opened.Add(1)))
		case in.Method == "tools/list":
			result = `{"tools":[{"name":"look","inputSchema":{"type":"object","properties":{"at":{"type":"integer"}}}}]}`
		case in.Method == "tools/call":
			called.Add(1)
			result = `{"content":[{"type":"text","text":"nothing to see"}]}`
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, in.ID, result)
	}))
	defer s.Close()
	dir := t.TempDir()
	file, rows := filepath.Join(dir, "run.parley"), filepath.Join(dir, "rows.jsonl")
	set := "params.tools.mcp=" + s.URL
	parley(t, State{}, "run", "../../examples/rollout-mcp.yaml", "--set", set, "--out", file, "--quiet").want(t, exit.OK)
	if opened.Load() != 20 || ended.Load() != 20 || called.Load() == 0 {
		t.Errorf("%d sessions, %d ended, %d calls", opened.Load(), ended.Load(), called.Load())
	}
	parley(t, State{}, "trajectories", file, "--trainable", "--out", rows).want(t, exit.OK)
	text, err := os.ReadFile(rows)
	if n := strings.Count(string(text), `"content":"nothing to see"`); err != nil || n != int(called.Load()) {
		t.Errorf("%d results in the rows of %d calls: %v", n, called.Load(), err)
	}
	if got := parley(t, State{}, "check", "../../examples/rollout-mcp.yaml", "--set", set, "--act").want(t, exit.OK).stdout; !strings.Contains(got, s.URL+" answers") || !strings.Contains(got, "tools: (offers tools) look") {
		t.Error(got)
	}
}
