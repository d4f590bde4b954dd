package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/llm"
)

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
			for _, want := range []string{"stopped: 0 of 3 episodes", c.why, "what to do: ", c.remedy, "parley resume " + terminal.ShellWord(file) + " --trust " + terminal.ShellWord(trust) + "\n"} {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in\n%s", want, got)
				}
			}
			if strings.Contains(got, "parley show") {
				t.Errorf("there is nothing to show:\n%s", got)
			}
			got = parley(t, State{}, "resume", file, "--trust", trust, "--json").want(t, exit.Failed).stdout
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
	printTrouble(&out, &sum)
	if got := out.String(); !strings.Contains(got, "overloaded (lab/tiny): 503 no capacity\nwhat to do: the provider is short of capacity") {
		t.Error(got)
	}
}

// TestFailedRunsSayHowToPlayAgain checks that a complete run is never played again in its file, and that the
// closing lines have a command that plays the plan into another.
func TestFailedRunsSayHowToPlayAgain(t *testing.T) {
	t.Parallel()
	url, asked := refusing(t, 400, `{"error":{"message":"not like this"}}`)
	plan := labPlan(t, url+"/v1")
	trust := "PATH=" + url
	file := filepath.Join(filepath.Dir(plan), "first.parley")
	other := filepath.Join(filepath.Dir(plan), "first-again.parley")
	got := parley(t, State{}, "run", plan, "--out", file, "--trust", trust).want(t, exit.Failed).stdout
	want := "parley run " + terminal.ShellWord(plan) + " --trust " + terminal.ShellWord(trust) + " --out " + terminal.ShellWord(other) + "\n"
	if !strings.Contains(got, want) || !strings.HasPrefix(got, "complete: 0 of 3 episodes, 3 failed") {
		t.Errorf("%q is not in\n%s", want, got)
	}
	before := asked.Load()
	got = parley(t, State{}, "resume", file).want(t, exit.Failed).stdout
	if asked.Load() != before || !strings.Contains(got, "parley run PLAN --out "+terminal.ShellWord(other)+"\n") {
		t.Errorf("%d calls more:\n%s", asked.Load()-before, got)
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
	got := parley(t, State{}, "resume", file, "--set", "providers.lab.base_url="+right+"/v1", "--trust", "PATH="+right, "--json").want(t, exit.Failed).stdout
	var sum app.Summary
	if err := json.Unmarshal([]byte(got), &sum); err != nil || asked.Load() == 0 || sum.State != "complete" || sum.Cause != nil {
		t.Fatalf("%v: %d calls: %s", err, asked.Load(), got)
	}
	// The failures cover the whole run, even if this process made no calls.
	got = parley(t, State{}, "resume", file, "--json").want(t, exit.Failed).stdout
	var again app.Summary
	if err := json.Unmarshal([]byte(got), &again); err != nil || again.Calls.Asked != 0 || len(again.Failures) != 1 || again.Failures[0].Calls != sum.Calls.Total {
		t.Errorf("%v: %s", err, got)
	}
}
