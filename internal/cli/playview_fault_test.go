package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/engine"
	"parley/internal/app"
	"parley/internal/config"
	"parley/internal/dispatch"
	"parley/journal"
)

// TestWhyEpisodesFail: the closing lines and the report say what most episodes failed of, in the
// server's words but not at its command, and acts that failed are counted.
func TestWhyEpisodesFail(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"detail":"unknown field sizee\n\u001b[2J` + strings.Repeat("!", 500) + `"}`))
	}))
	defer s.Close()
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.yaml")
	text := "kind: rollout\nepisodes: 3\nagents: {x: sim/small}\nlineup: {agent: x}\nparams: {env: count, servers: [\"" + s.URL + "\"]}\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = `failed most often (3): environment: open: bad_request: unknown field sizee \u001b[2J!!`
	got := parley(t, State{}, "run", plan).want(t, ExitFailed).stdout
	if !strings.Contains(got, ", 3 failed;") || !strings.Contains(got, want) || strings.Contains(got, strings.Repeat("!", 300)) {
		t.Errorf("%s", got)
	}
	got = parley(t, State{}, "run", plan, "--out", filepath.Join(dir, "other.parley"), "--json").want(t, ExitFailed).stdout
	var sum app.Summary
	if err := json.Unmarshal([]byte(got), &sum); err != nil || sum.Calls.Failed != 3 || sum.Fault == nil || sum.Fault.Episodes != 3 {
		t.Errorf("%v: %s", err, got)
	}
	got = parley(t, State{}, "report", filepath.Join(dir, "plan.parley")).want(t, ExitOK).stdout
	if !strings.Contains(got, "Episodes that failed: 3, most often (3): environment: open: bad_request: unknown field sizee") {
		t.Errorf("%s", got)
	}
}

// TestWaitingIsSaid: the progress says first what play waits for outside, on one line and with
// nothing for a terminal to obey; and a drain says how much is still played.
func TestWaitingIsSaid(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	v := &playView{out: newStream(&out, &State{Env: func(string) (string, bool) { return "", false }, Terminal: func(any) int { return 0 }})}
	why := ""
	v.begin(app.Opened{App: &app.App{}, Plan: &config.Plan{}, Head: &journal.Head{}, Waiting: func() string { return why }})
	v.stats = func() dispatch.Snapshot { return dispatch.Snapshot{} }
	now := time.Now()
	v.away = func() []dispatch.Outage {
		return []dispatch.Outage{{Provider: "lab", URL: "http://x/v1", Why: "503 \x1b[2JLoading", Since: now.Add(-40 * time.Second), Limit: 10 * time.Minute}}
	}
	if first := v.line(now)[0]; first != `lab is unreachable for 40s: 503 \u001b[2JLoading at http://x/v1; waits up to 10m0s` {
		t.Error(first)
	}
	v.away = nil
	if first := v.line(now)[0]; first != "0 of 0 episodes" {
		t.Error(first)
	}
	why = "http://x:\nrefused \x1b[2J"
	if first := v.line(now)[0]; first != `waiting for http://x: refused \u001b[2J` {
		t.Error(first)
	}
	v.see(engine.Event{Closing: 7})
	if !strings.Contains(out.String(), "7 episodes are played to the end") {
		t.Error(out.String())
	}
}
