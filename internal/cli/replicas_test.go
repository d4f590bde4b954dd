package cli

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
)

// TestServersInSummary checks that a run on two servers reports that one is missing, and the calls of each.
func TestServersInSummary(t *testing.T) {
	t.Parallel()
	sequential(t)
	sim, stop := serves(t, nil, "sim")
	defer stop()
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 2\nagents: {bold: lab/any}\nproviders:\n  lab: {dialect: openai, base_urls: [\""+
		deadURL+"\", \""+sim+"/v1\"]}\n")
	file := filepath.Join(t.TempDir(), "run.parley")
	got := parley(t, State{}, "run", plan, "--out", file, "--json").want(t, exit.OK).
		wantErr(t, "the server "+deadURL+" rests, and others take its calls: lab/any: transport")
	var sum app.Summary
	if err := json.Unmarshal([]byte(got.stdout), &sum); err != nil || len(sum.Servers) != 2 {
		t.Fatalf("%v: %s", err, got.stdout)
	}
	bad, well := sum.Servers[0], sum.Servers[1]
	if bad.URL != deadURL || bad.Failed == 0 || bad.Calls != bad.Failed || !bad.Resting ||
		well.URL != sim+"/v1" || well.Failed != 0 || well.Calls+bad.Calls != sum.Attempts || well.Resting {
		t.Errorf("%+v", sum.Servers)
	}
	quiet := parley(t, State{}, "run", plan, "--out", file+"2", "--quiet").want(t, exit.OK)
	if quiet.stderr != "" {
		t.Error(quiet.stderr)
	}
}
