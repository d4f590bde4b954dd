package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/run/runfile/runfiletest"
)

// TestStories compares the stories of example runs, and that of a kind without stories, with files.
func TestStories(t *testing.T) {
	t.Parallel()
	sequential(t)
	small := []string{"--set", "params.max_generations=2", "--set", "params.population_size=4", "--set", "params.problems.train=4", "--set", "params.problems.validation=0", "--set", "params.problems.test=4"}
	for _, c := range []struct {
		name, plan string
		last       bool // the last episode, instead of the first
		flags      []string
	}{
		{"secrets", "secrets-judge.yaml", false, nil},
		{"tournament", "secrets-tournament.yaml", false, []string{"--set", "episodes=1", "--set", "params.rounds=2", "--set", "params.messages=1"}},
		{"evolve", "evolve.yaml", true, small},
		{"trial", "evolve.yaml", false, small},
		{"rollout", "rollout-maze.yaml", false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), c.name+".parley")
			parley(t, State{}, append([]string{"run", "../../examples/" + c.plan, "--out", file, "--quiet"}, c.flags...)...).want(t, exit.OK)
			episode := 0
			if c.last {
				var run struct{ Episodes struct{ Total int } }
				if err := json.Unmarshal([]byte(parley(t, State{}, "show", file, "--json").stdout), &run); err != nil {
					t.Fatal(err)
				}
				episode = run.Episodes.Total - 1
			}
			story(t, c.name, file, episode)
		})
	}
	story(t, "other", runfiletest.File(t, cliSample()...), 0)
}

// story compares the story of an episode with a file.
func story(t *testing.T, name, file string, episode int) {
	t.Helper()
	got := parley(t, State{}, "show", file, "--episode", fmt.Sprint(episode), "--story").want(t, exit.OK).stdout
	golden(t, "story-"+name, strings.ReplaceAll(got, file, name+".parley"))
}
