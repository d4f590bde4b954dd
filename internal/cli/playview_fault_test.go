package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/llm"
)

// TestWhyEpisodesFail checks that the closing lines and the report give the most frequent reason for failures,
// with the server's text made harmless, and that failed acts are counted.
func TestWhyEpisodesFail(t *testing.T) {
	t.Parallel()
	sequential(t)
	url, _ := refusing(t, http.StatusBadRequest, `{"detail":"unknown field sizee\n\u001b[2J`+strings.Repeat("!", 500)+`"}`)
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.yaml")
	text := "kind: rollout\nepisodes: 3\nagents: {x: sim/small}\nlineup: {agent: x}\nparams: {env: count, servers: [\"" + url + "\"]}\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `failed most often (3): environment: open: bad_request: ` + url + `: unknown field sizee \u001b[2J!!`
	got := parley(t, State{}, "run", plan).want(t, exit.Failed).stdout
	if !strings.Contains(got, ", 3 failed;") || !strings.Contains(got, want) || strings.Contains(got, strings.Repeat("!", 300)) {
		t.Errorf("%s", got)
	}
	got = parley(t, State{}, "run", plan, "--out", filepath.Join(dir, "other.parley"), "--json").want(t, exit.Failed).stdout
	var sum app.Summary
	if err := json.Unmarshal([]byte(got), &sum); err != nil || sum.Calls.Failed != 0 || sum.Acts.Failed != 3 || sum.Fault == nil || sum.Fault.Episodes != 3 {
		t.Errorf("%v: %s", err, got)
	}
	got = parley(t, State{}, "report", filepath.Join(dir, "plan.parley")).want(t, exit.OK).stdout
	if !strings.Contains(got, "Failed episodes: 3. The most frequent cause (3): environment: open: bad_request: "+url+": unknown field sizee") {
		t.Errorf("%s", got)
	}
}

// TestWaitingIsSaid checks that the progress line begins with what the run waits for, on one line and harmless
// to a terminal, and that a drain says how much is still played.
func TestWaitingIsSaid(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	v := &runView{Out: terminal.NewStream(&out, func(string) (string, bool) { return "", false }, func(any) int { return 0 })}
	why := ""
	v.Begin(app.Opened{App: &app.App{}, Plan: &planfile.Plan{}, Head: &journal.Head{}, Waiting: func() string { return why }})
	v.Stats = func() dispatch.Snapshot { return dispatch.Snapshot{} }
	now := time.Now()
	v.Calls = func(now time.Time) []dispatch.Wait {
		return []dispatch.Wait{{Says: dispatch.Outage{Provider: "lab", URL: "http://x/v1", Why: "503 \x1b[2JLoading", Since: now.Add(-40 * time.Second), Limit: 10 * time.Minute}.Text(now)}}
	}
	if first := v.Line(now)[0]; first != `lab is unreachable for 40s: 503 \u001b[2JLoading at http://x/v1; waits up to 10m0s` {
		t.Error(first)
	}
	v.Calls = func(time.Time) []dispatch.Wait {
		return []dispatch.Wait{{Money: &budget.Shortage{Calls: 1021, Model: "lab/large", Amount: llm.Dollars(0.006828), Exceeds: true}}}
	}
	if got, want := strings.Join(v.Line(now), ", "), "0 of 0 episodes, $0.00, 1,021 wait for room in the budget ($0.0068 set aside for each), 0 in flight"; !strings.HasPrefix(got, want) {
		t.Errorf("%q does not begin with %q", got, want)
	}
	v.Calls = nil
	if first := v.Line(now)[0]; first != "0 of 0 episodes" {
		t.Error(first)
	}
	why = "http://x:\nrefused \x1b[2J"
	if first := v.Line(now)[0]; first != `waiting for http://x: refused \u001b[2J` {
		t.Error(first)
	}
	v.See(engine.Event{Closing: 7})
	if !strings.Contains(out.String(), "7 episodes are played to the end") {
		t.Error(out.String())
	}
}

// TestClosingNamesTheCause checks that if calls fail, the end of a run, show and report say how, by model, and
// what to do about it.
func TestClosingNamesTheCause(t *testing.T) {
	t.Parallel()
	sequential(t)
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%3 == 0 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"message":"This model's maximum context length is 2048 tokens.","code":"context_length_exceeded"}}`))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"{\"rea"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`))
	}))
	defer s.Close()
	dir := t.TempDir()
	parley(t, State{}, "init", "scenario", "--out", filepath.Join(dir, "plan.yaml")).want(t, exit.OK)
	plan := filepath.Join(dir, "plan.yaml")
	run := []string{"run", plan, "--set", `providers.lab={dialect: openai, base_url: "` + s.URL + `/v1"}`, "--set", "agents.policy.model=lab/tiny", "--set", "agents.clerk.model=lab/tiny", "--set", "episodes=1", "--concurrency", "1"}
	got := parley(t, State{}, run...).want(t, exit.Failed).stdout
	for _, want := range []string{
		"failed most often (1): the narrator wrote nothing: ", " calls failed: ", " cut off (lab/tiny), ", " too long (lab/tiny)\n",
		"most often: the answer was cut off at the limit of output tokens", "what to do: raise max_tokens",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the closing lines do not say %q:\n%s", want, got)
		}
	}
	file := filepath.Join(dir, "plan.parley")
	if got := parley(t, State{}, "show", file).want(t, exit.OK).stdout; !strings.Contains(got, "what to do: raise max_tokens") {
		t.Error(got)
	}
	got = parley(t, State{}, "resume", file, "--json").want(t, exit.Failed).stdout
	var sum app.Summary
	if err := json.Unmarshal([]byte(got), &sum); err != nil || len(sum.Failures) != 2 {
		t.Fatalf("%v: %s", err, got)
	}
	if long := sum.Failures[1]; long.Kind != llm.KindTooLong || long.Model != "lab/tiny" || !strings.HasPrefix(long.Remedy, "the model's context is 2048 tokens") ||
		sum.Failures[0].Calls+long.Calls != sum.Calls.Total {
		t.Errorf("%+v of %d", sum.Failures, sum.Calls.Total)
	}
	if got := parley(t, State{}, "report", file).want(t, exit.OK).stdout; !strings.Contains(got, "raise max_tokens") {
		t.Error(got)
	}
}
