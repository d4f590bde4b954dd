package app

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
		"evolve-against-random.yaml":     {"params.max_generations=1", "params.problems.test=10", "plan.matrix.repeat=1"},
		"rollout.yaml":                   {"episodes=2"},
		"rollout-experience.yaml":        {"episodes=2"},
		"rollout-maze.yaml":              {"episodes=2"},
		"rollout-negotiation.yaml":       {"episodes=2"},
		"rollout-tools.yaml":             {"episodes=2"},
		"rollout-judge.yaml":             {"episodes=2"},
		"rollout-compare.yaml":           {"episodes=2"},
		"rollout-refill.yaml":            {"params.refill.useful=3"},
		"rollout-tasks.yaml":             nil,
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
	return []string{"diplomacy-person.yaml", "replicas.yaml", "secrets-batch.yaml", "rollout-count.yaml", "rollout-openenv.yaml", "rollout-mcp.yaml", "rollout-sandbox.yaml"}
}

// TestExamples plays every plan of the examples on the simulated provider, one call at a
// time and many at once: both complete, without a failure, with the same outcomes.
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
			one := playExample(t, file, append(sets, "limits.concurrency=1"))
			many := playExample(t, file, append(sets, "limits.concurrency=200"))
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
	referee := newReferee()
	kinds := append([]world.Kind{world.Define(referee)}, worlds.Standard()...)
	sum, err := Play{Kinds: kinds, Plan: plan, File: filepath.Join(t.TempDir(), "run.parley")}.Run(t.Context(), context.Background())
	if err != nil || sum.State != journal.Complete || sum.Episodes.Failed > 0 || sum.Calls.Failed > 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if n := referee.contested.Load(); n > 0 {
		t.Errorf("%d requests are answered by the stand-ins of several kinds: who is asked first must not matter", n)
	}
	return sum
}
