package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// eventLines reads the file of --events: how often each event is in it, and the last line.
func eventLines(t *testing.T, path string) (counts map[string]int, last map[string]any) {
	t.Helper()
	counts = map[string]int{}
	for line := range strings.Lines(read(t, path)) {
		last = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		what, ok := last["msg"].(string)
		if !ok || last["time"] == nil || last["level"] == nil {
			t.Errorf("no event: %s", line)
		}
		counts[what]++
	}
	return counts, last
}

// TestEvents checks that the lines of --events add up to the summary of the run, and that a later process appends its own.
func TestEvents(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(plan, []byte("kind: secrets\nepisodes: 5\nagents: {a: sim/small}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "events.jsonl")
	sum, _ := summed(t, exit.OK, "run", plan, "--events", file)
	counts, last := eventLines(t, file)
	want := map[string]int{"run began": 1, "stage began": 1, "episode began": 5, "episode ended": 5, "call ended": sum.Calls.Total, "run ended": 1}
	for what, n := range want {
		if counts[what] != n {
			t.Errorf("%s: %d, want %d", what, counts[what], n)
		}
	}
	if last["msg"] != "run ended" || last["state"] != "complete" || last["digest"] != sum.Digest {
		t.Errorf("%v", last)
	}
	parley(t, State{}, "run", plan, "--set", "episodes=7", "--events", file).want(t, exit.OK)
	if counts, _ := eventLines(t, file); counts["run resumed"] != 1 || counts["episode began"] != 7 || counts["run ended"] != 2 {
		t.Errorf("%v", counts)
	}
	for _, other := range []string{plan, filepath.Join(dir, "plan.parley"), filepath.Join(dir, "new.parley")} { // a slip must not spoil them
		before, _ := os.ReadFile(other)
		parley(t, State{}, "run", plan, "--events", other).want(t, exit.Misuse).wantErr(t, "--events: "+other+" is not a file of events")
		if after, _ := os.ReadFile(other); string(after) != string(before) {
			t.Errorf("%s was changed", other)
		}
	}
	parley(t, State{}, "run", plan, "--events", filepath.Join(dir, "no", "events.jsonl"), "--out", filepath.Join(dir, "other.parley")).want(t, exit.Misuse).wantErr(t, "--events: ")
}

// TestFailedEvents checks that calls and episodes that fail are warnings.
func TestFailedEvents(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(plan, []byte("kind: secrets\nepisodes: 3\nagents: {a: sim/small}\nepisode_budget: 0.0001\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "events.jsonl")
	sum, _ := summed(t, exit.Failed, "run", plan, "--events", file)
	counts, _ := eventLines(t, file)
	if counts["episode failed"] != sum.Episodes.Failed || sum.Episodes.Failed != 3 || counts["episode ended"] != 0 {
		t.Errorf("%v %+v", counts, sum.Episodes)
	}
}

// TestUnpricedEvents: a run of models without a price has no cost in its events.
func TestUnpricedEvents(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := filepath.Join(t.TempDir(), "events.jsonl")
	summed(t, exit.OK, "run", write(t, "plan.yaml", unpricedPlan), "--set", "lineup.second=a", "--events", file)
	if _, last := eventLines(t, file); last["msg"] != "run ended" || last["cost_usd"] != nil {
		t.Errorf("%v", last)
	}
}
