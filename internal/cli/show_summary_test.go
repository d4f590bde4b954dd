package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/read/score"
	"parley/llm"
)

// TestShowSummary checks that a model writes a summary once, in a run of its own, and only if it is asked for.
func TestShowSummary(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := conversation(t)
	story := []string{"show", file, "--episode", "1", "--story"}
	if plain := parley(t, State{}, story...).want(t, exit.OK).stdout; strings.Contains(plain, "summary") {
		t.Errorf("nobody asked for a summary:\n%s", plain)
	}
	if _, err := os.Stat(score.Folder(file)); err == nil {
		t.Error("there are scores")
	}
	with := append(story, "--summary", "sim/small", "--json")
	ran := parley(t, State{}, with...).want(t, exit.OK)
	first := ran.stdout
	var got struct{ Texts []score.Text }
	if err := json.Unmarshal([]byte(first), &got); err != nil || len(got.Texts) != 1 || got.Texts[0].Model != "sim/small" || got.Texts[0].Text == "" {
		t.Fatalf("%v: %s", err, first)
	}
	files, err := filepath.Glob(filepath.Join(score.Folder(file), "*.parley"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	before := parley(t, State{}, "show", files[0], "--json").want(t, exit.OK).stdout
	var spent struct {
		Cost llm.Money `json:"cost_usd"`
	}
	if err := json.Unmarshal([]byte(before), &spent); err != nil || spent.Cost == 0 {
		t.Fatal(err, before)
	}
	ran.wantErr(t, "the summary: "+spent.Cost.String()+", recorded in "+files[0])
	if again := parley(t, State{}, with...).want(t, exit.OK).stdout; again != first {
		t.Errorf("the second time:\n%s\nthe first time:\n%s", again, first)
	}
	if after := parley(t, State{}, "show", files[0], "--json").want(t, exit.OK).stdout; after != before {
		t.Errorf("it was asked again: %s", after)
	}
	for _, args := range [][]string{story, {"show", file, "--episode", "1"}} { // it stays
		if got := parley(t, State{}, args...).want(t, exit.OK).stdout; !strings.Contains(got, "by summary (sim/small)\n  | ") {
			t.Errorf("%v:\n%s", args, got)
		}
	}
	if other := parley(t, State{}, "show", file, "--episode", "0", "--story").want(t, exit.OK).stdout; strings.Contains(other, "sim/small)\n") {
		t.Errorf("another episode:\n%s", other)
	}
	parley(t, State{}, "report", file).want(t, exit.OK)

	for want, args := range map[string][]string{
		"needs --episode and --story":       {"show", file, "--episode", "1", "--summary", "sim/small"},
		"are for --summary":                 {"show", file, "--episode", "1", "--story", "--budget", "1"},
		"episode 9 of " + file + " has not": {"show", file, "--episode", "9", "--story", "--summary", "sim/small"},
		`--summary nowhere/x: plan: agents.summary.model: no provider "nowhere"; did you mean cohere? known: sim, anthropic,`: {"show", file, "--episode", "1", "--story", "--summary", "nowhere/x"},
	} {
		parley(t, State{}, args...).want(t, exit.Misuse).wantErr(t, want)
	}
	if unknown := parley(t, State{}, "show", file, "--episode", "1", "--story", "--summary", "nope/x").want(t, exit.Misuse).stderr; strings.Count(unknown, " sim,") != 1 {
		t.Error("a provider of the plan is listed twice:", unknown)
	}
	parley(t, State{}, "show", file, "--episode", "2", "--story", "--summary", "sim/small", "--budget", "0.0001").want(t, exit.Budget).
		wantErr(t, "sim/small wrote no summary: budget: this call may cost up to", " is spent. Give a larger --budget\n")
}

// TestShowNoSummary checks that show says in one line why a model wrote no summary, each time.
func TestShowNoSummary(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"too much to read"}}`)
	}))
	defer server.Close()
	file := playedPlan(t, "kind: secrets\nproviders: {lab: {dialect: openai, base_url: \""+server.URL+"/v1\"}}\nagents: {small: sim/small}\nlineup: {first: small, second: small}\nparams: {messages: 2}\n")
	for range 2 {
		got := parley(t, State{}, "show", file, "--episode", "0", "--story", "--summary", "lab/x").want(t, exit.Failed).stderr
		files, err := filepath.Glob(filepath.Join(score.Folder(file), "*.parley"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if want := "parley: show: lab/x wrote no summary: bad request (400): too much to read. To ask again, delete " + files[0] + "\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestShowInterview checks that the texts of an interview are in the transcript of the run.
func TestShowInterview(t *testing.T) {
	t.Parallel()
	file := conversation(t)
	parley(t, State{}, "score", file, "--with", "../../examples/scores/interview.yaml", "--quiet").want(t, exit.OK)
	if got := parley(t, State{}, "show", file, "--episode", "1").want(t, exit.OK).stdout; strings.Count(got, "asked afterwards: interview, regret\nby ") != 2 {
		t.Error(got)
	}
	if got := parley(t, State{}, "show", file, "--episode", "1", "--seat", "second").want(t, exit.OK).stdout; !strings.Contains(got, "by large (sim/large), about second\n") || strings.Contains(got, "about first") {
		t.Error(got)
	}
}
