package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"parley/internal/read/score"
)

// TestScoringKilledAnywhere kills parley score with kill -9 at random moments, in each stage of a scorer that makes categories,
// and continues until the scores are complete. It wants the scores of an undisturbed scorer. Only calls that were in flight
// may be made twice.
func TestScoringKilledAnywhere(t *testing.T) {
	t.Parallel()
	often(t)
	url, server := provider(t)
	run := filepath.Join(t.TempDir(), "run.parley")
	program(t, 0, "run", plan(t, url), "--out", run, "--set", "episodes=60", "--set", "params.messages=1", "--json", "--quiet")
	with := rubricPlan(t, url)
	want, _ := program(t, 0, "score", copied(t, run), "--with", with, "--json", "--quiet")
	if want.State != "complete" || want.Calls.Total < 300 {
		t.Fatalf("undisturbed: %+v", want)
	}
	kills, trials, least, begins := 0, 0, enough(t, 8, 8), startTime(t)
	asked := server.Stats().Requests
	for ; kills < least; trials++ {
		of := copied(t, run)
		for tries := 0; ; tries++ {
			got, killed := program(t, killAfter(begins, 200, tries, kills >= least), "score", of, "--with", with, "--json", "--quiet")
			if killed {
				kills++
			}
			again := int(server.Stats().Requests-asked) - trials*want.Calls.Total - callsIn(t, score.File(of, "why"))
			if again > kills*planCalls {
				t.Fatalf("%d calls were made again after %d kills with at most %d in flight", again, kills, planCalls)
			}
			if killed {
				continue
			}
			if got.State != "complete" || got.Digest != want.Digest || got.Calls.Total != want.Calls.Total {
				t.Fatalf("after %d kills: %+v, want %+v", kills, got, want)
			}
			break
		}
	}
	t.Logf("%d kills in %d scorings of %d calls: %d calls were made again", kills, trials, want.Calls.Total, int(server.Stats().Requests-asked)-trials*want.Calls.Total)
}

// copied copies a run file into a folder of its own, so that it has no scores.
func copied(t *testing.T, run string) string {
	t.Helper()
	b, err := os.ReadFile(run)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "run.parley")
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// rubricPlan writes a scorer with a judge, categories and an interview.
func rubricPlan(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "why.yaml")
	text := fmt.Sprintf(`kind: rubric
providers:
  lab: {dialect: openai, base_url: %q}
params:
  questions:
    why: {ask: 'Why did {seat} keep its word, or why not?', categories: 3}
    trust: {ask: 'Do the players trust each other?', per: episode, scale: [1, 5]}
    regret: {by: seat, ask: 'What would you do differently?', text: true}
agents:
  reader: {model: lab/medium, max_tokens: 400}
limits: {concurrency: %d}
`, url, planCalls)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
