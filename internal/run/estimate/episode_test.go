package estimate

import (
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/worlds"
)

// TestEstimateEpisodeBudget: a check warns if the budget would stop episodes.
func TestEstimateEpisodeBudget(t *testing.T) {
	t.Parallel()
	for budget, want := range map[string]string{"0.0001": "so episodes would end there", "0.008": "would stop some", "5": ""} {
		plan, err := planfile.Load(t.Context(), filepath.Join("..", "..", "..", "examples", "scenario", "plan.yaml"), worlds.Standard(),
			[]string{"episodes=3", "params.turns=3", "agents.policy.max_tokens=400", "agents.clerk.max_tokens=200", "episode_budget=" + budget}, planfile.Reach{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Config{Plan: plan, Episodes: 2}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(e.Warnings, "\n")
		if !strings.Contains(got, want) || want == "" && strings.Contains(got, "episode_budget") {
			t.Errorf("%s: want %q in\n%s", budget, want, got)
		}
	}
}
