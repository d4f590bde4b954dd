package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

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
