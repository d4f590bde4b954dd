package app

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/worlds"
)

// simulated are providers of every dialect, with their paths at the simulated server. Some models have no native schemas.
func simulated() map[string]string {
	const vertex = "/v1/projects/p/locations/r/publishers/"
	return map[string]string{
		"openai": "/v1", "openai-responses": "/v1", "azure": "/openai/v1", "anthropic": "/v1", "gemini": "/v1beta",
		"vertex": vertex + "google", "vertex-anthropic": vertex + "anthropic", "bedrock": "", "groq": "/v1",
	}
}

// TestExamplesInEveryFormat plays plans of each world at the simulated server. They complete in every format, with the same outcomes.
func TestExamplesInEveryFormat(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("TestExamples plays them too")
	}
	s, err := simhttp.New(simhttp.Config{Sim: sim.Config{StandIns: sim.StandIns(worlds.Standard()...)}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	for name, sets := range map[string][]string{
		"secrets-judge.yaml": {"plan.matrix.repeat=1"}, "diplomacy-judge.yaml": nil, "scenario/plan.yaml": {"episodes=1"}, "rollout-judge.yaml": nil, "rollout-tools.yaml": nil,
		"evolve-reflect.yaml": {"params.max_generations=1", "params.problems.validation=5", "params.problems.test=5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, first := "", ""
			for preset, path := range simulated() {
				if testing.Short() && preset != "gemini" && preset != "bedrock" {
					continue
				}
				digest := playAt(t, name, preset, srv.URL+path, sets)
				if want == "" {
					want, first = digest, preset
				}
				if digest != want {
					t.Errorf("the digest with %s is %s, with %s %s", preset, digest, first, want)
				}
			}
		})
	}
}

// playAt plays an example whose models are those of a provider.
func playAt(t *testing.T, name, preset, url string, sets []string) (digest string) {
	t.Helper()
	sets = append(smaller()[name], sets...)
	plan, err := planfile.Load(t.Context(), filepath.Join("..", "..", "..", "examples", name), worlds.Standard(), sets, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := provider.Lookup(preset)
	p.BaseURL, p.KeyEnv, p.KeyHeader, p.Credentials = url, "", "", ""
	if preset == "bedrock" { // PATH stands for a key: it is always set
		p.KeyEnv = "PATH"
	}
	plan.Providers = []provider.Provider{p}
	for i, a := range plan.Agents {
		plan.Agents[i].Model = strings.Replace(a.Model, "sim/", preset+"/", 1)
	}
	sum, err := Play{Kinds: worlds.Standard(), Plan: plan, File: filepath.Join(t.TempDir(), "run.parley")}.Run(t.Context(), context.Background())
	if err != nil || sum.State != journal.Complete || sum.Episodes.Failed > 0 || sum.Calls.Failed > 0 {
		t.Fatalf("%s: %+v, %v", preset, sum, err)
	}
	return sum.Digest
}
