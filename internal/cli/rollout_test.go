package cli

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/envhttp/envserver"
)

// TestRollouts checks that a run of rollouts can be shown, reported, and used as experience.
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
	report := parley(t, State{}, "report", first, "--html", page).want(t, exit.OK).stdout
	for _, want := range []string{"Why episodes ended", "Lengths", "Groups", "Where the time goes"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "Environments in use") || !strings.Contains(string(html), "Step by step") {
		t.Errorf("the page: %v", err)
	}

	plan := filepath.Join(dir, "plan.yaml")
	text := "kind: rollout\nepisodes: 2\nagents: {policy: sim/small}\nlineup: {agent: policy}\nparams: {env: arithmetic, experience: {from: lessons.jsonl, pick: random}}\n"
	for name, content := range map[string]string{plan: text, filepath.Join(dir, "lessons.jsonl"): `{"name":"a","text":"Count on your fingers."}` + "\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	taught := filepath.Join(dir, "taught.parley")
	parley(t, State{}, "run", plan, "--out", taught, "--quiet").want(t, exit.OK)
	call := parley(t, State{}, "show", taught, "--episode", "1", "--call", "1").want(t, exit.OK).stdout
	if !strings.Contains(call, "What earlier attempts taught:") || !strings.Contains(call, "Count on your fingers.") {
		t.Errorf("the lessons are missing: %s", call)
	}
	// A run passes on the lessons that it was given.
	parley(t, State{}, "run", plan, "--set", "params.experience.from=taught.parley", "--out", filepath.Join(dir, "again.parley"), "--quiet").want(t, exit.OK)
	// A model that repeats every question earns nothing.
	parley(t, State{}, "run", "../../examples/rollout.yaml", "--set", "episodes=3", "--set", "agents.policy.model=sim/echo", "--out", filepath.Join(dir, "dull.parley"), "--quiet").want(t, exit.OK)
	parley(t, State{}, "run", plan, "--set", "params.experience.from=dull.parley", "--out", filepath.Join(dir, "none.parley"), "--quiet").want(t, exit.Misuse).wantErr(t, "params.experience.from", "teaches nothing")
	parley(t, State{}, "run", plan, "--set", "params.experience.pik=best", "--quiet").want(t, exit.Misuse).wantErr(t, "pick")
}

// TestCheckAct checks that check says whether servers answer, and what they are needed for.
func TestCheckAct(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(envserver.New(envserver.Config{Kinds: env.Standard()}))
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
	if !strings.Contains(got, s.URL+" answers") || strings.Contains(got, "--act") || !strings.Contains(got, "sim/small") {
		t.Errorf("%s", got)
	}
	got = parley(t, State{}, "check", plan, "--set", `params.servers=["http://127.0.0.1:1"]`).want(t, exit.OK).stdout
	if !strings.Contains(got, "http://127.0.0.1:1 does not answer") || !strings.Contains(got, "next:  start http://127.0.0.1:1, then") {
		t.Errorf("%s", got)
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
	for _, verb := range []string{"run", "check", "bench", "trainer"} {
		signals := make(chan os.Signal, 1)
		signals <- os.Interrupt
		parley(t, State{Signals: signals}, verb, filepath.Join(dir, "plan.yaml")).want(t, exit.Interrupted)
	}
	if _, err := os.Stat(filepath.Join(dir, "plan.parley")); err == nil {
		t.Error("a run was begun")
	}
}
