package app

import (
	"context"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/ask/trust"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/world"
	"parley/worlds"
)

// smaller are overrides that make an example quick to play, by its path.
func smaller() map[string][]string {
	return map[string][]string{
		"secrets.yaml":                   {"plan.matrix.repeat=5"},
		"secrets-compare.yaml":           {"plan.matrix.repeat=2"},
		"secrets-modes.yaml":             {"plan.matrix.repeat=2"},
		"secrets-factors.yaml":           {"plan.matrix.repeat=1"},
		"secrets-agents.yaml":            {"plan.matrix.repeat=1"},
		"scenario-factors.yaml":          {"plan.matrix.repeat=1"},
		"diplomacy-rotation.yaml":        {"plan.matrix.repeat=1", "params.max_year=1901"},
		"secrets-judge.yaml":             {"plan.matrix.repeat=5"},
		"secrets-tournament.yaml":        {"episodes=2"},
		"evolve.yaml":                    {"params.max_generations=2", "params.problems.validation=10", "params.problems.test=10"},
		"evolve-file.yaml":               {"params.max_generations=2"},
		"evolve-reflect.yaml":            {"params.max_generations=2", "params.problems.validation=10", "params.problems.test=10"},
		"evolve-agent.yaml":              {"params.max_generations=1", "params.split={train: 10, validation: 4, test: 6}"},
		"secrets-open.yaml":              nil,
		"evolve-against-random.yaml":     {"params.max_generations=1", "params.problems.test=10", "plan.matrix.repeat=1"},
		"rollout.yaml":                   {"episodes=2"},
		"rollout-maze.yaml":              {"episodes=2"},
		"rollout-negotiation.yaml":       {"episodes=2"},
		"rollout-tools.yaml":             {"episodes=2"},
		"rollout-judge.yaml":             {"episodes=2"},
		"rollout-compare.yaml":           {"episodes=2"},
		"rollout-refill.yaml":            {"params.refill.useful=3"},
		"rollout-tasks.yaml":             nil,
		"task.yaml":                      {"plan.matrix.repeat=4"},
		"scenario/plan.yaml":             {"episodes=2"},
		"scenario-grid/plan.yaml":        {"plan.matrix.repeat=1"},
		"scenario-threshold/plan.yaml":   {"plan.until.min=2", "plan.until.max=2"},
		"diplomacy.yaml":                 {"episodes=1", "params.max_year=1901"},
		"diplomacy-baseline.yaml":        {"params.max_year=1901"},
		"diplomacy-critical.yaml":        {"episodes=2"},
		"diplomacy-judge.yaml":           {"episodes=1", "params.max_year=1901", "params.draw_from=1901"},
		"diplomacy-one-against-six.yaml": {"params.max_year=1901"},
	}
}

// elsewhere are examples that need a server beside them; their own tests play them.
func elsewhere() []string {
	return []string{"diplomacy-person.yaml", "replicas.yaml", "secrets-batch.yaml", "rollout-count.yaml", "rollout-openenv.yaml", "rollout-mcp.yaml"}
}

// TestExamples plays every plan of the examples on the simulated provider, one call at a
// time and many at once: both complete, without a failure, with the same outcomes. Without PARLEY_SWEEP, which .ci/run kills sets, only
// the first examples of each kind are played one call at a time.
func TestExamples(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..", "examples")
	files, err := filepath.Glob(filepath.Join(root, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(filepath.Join(root, "*", "plan.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, folders...) {
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		sets, known := smaller()[name]
		switch {
		case slices.Contains(elsewhere(), name), testing.Short() && strings.Contains(name, "-"): // one of each kind is enough
			continue
		case !known:
			t.Errorf("examples/%s is played by no test: put it into smaller or elsewhere", name)
			continue
		}
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			t.Parallel()
			many := playExample(t, file, append(sets, "limits.concurrency=200"))
			if strings.Contains(name, "-") && os.Getenv("PARLEY_SWEEP") == "" {
				return
			}
			one := playExample(t, file, append(sets, "limits.concurrency=1"))
			if one.Digest != many.Digest {
				t.Errorf("the digest one call at a time is %s, many at once %s", one.Digest, many.Digest)
			}
		})
	}
}

func playExample(t *testing.T, file string, sets []string) *Summary {
	t.Helper()
	plan, err := planfile.Load(t.Context(), file, worlds.Standard(), sets, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	needs, err := Needs(plan, file, false)
	if err != nil {
		t.Fatal(err)
	}
	gate := &trust.Gate{}
	for _, n := range needs {
		gate.Give(n.Grant)
	}
	referee := newReferee()
	kinds := append([]world.Kind{world.Define(referee)}, worlds.Standard()...)
	sum, err := Play{Config: Config{Trust: gate}, Kinds: kinds, Plan: plan, PlanFile: file, File: filepath.Join(t.TempDir(), "run.parley")}.Run(t.Context(), context.Background())
	if err != nil || sum.State != journal.Complete || sum.Episodes.Failed > 0 || sum.Calls.Failed > 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if n := referee.contested.Load(); n > 0 {
		t.Errorf("%d requests are answered by the stand-ins of several kinds: who is asked first must not matter", n)
	}
	return sum
}

// simulated are providers of every dialect, with their paths at the simulated server. Some models have no native schemas.
func simulated() map[string]string {
	const vertex = "/v1/projects/p/locations/r/publishers/"
	return map[string]string{
		"openai": "/v1", "openai-responses": "/v1", "azure": "/openai/v1", "anthropic": "/v1", "gemini": "/v1beta",
		"vertex": vertex + "google", "vertex-anthropic": vertex + "anthropic", "bedrock": "", "groq": "/v1",
	}
}

// TestExamplesInEveryFormat plays plans of each world at the simulated server. They complete in every format, with the same outcomes. Each
// plan is played in three formats, and each format is used, or with PARLEY_SWEEP, which .ci/run kills sets, all.
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
	plans := map[string][]string{
		"secrets-judge.yaml": {"plan.matrix.repeat=1"}, "diplomacy-judge.yaml": nil, "scenario/plan.yaml": {"episodes=1"}, "rollout-judge.yaml": nil, "rollout-tools.yaml": nil,
		"evolve-reflect.yaml": {"params.max_generations=1", "params.problems.validation=5", "params.problems.test=5"},
	}
	presets := simulated()
	names := slices.Sorted(maps.Keys(presets))
	for n, name := range slices.Sorted(maps.Keys(plans)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, first := "", ""
			for i, preset := range names {
				if os.Getenv("PARLEY_SWEEP") == "" && i%3 != n%3 {
					continue
				}
				digest := playAt(t, name, preset, srv.URL+presets[preset], plans[name])
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
