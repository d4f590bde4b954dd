package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/internal/read/training"
	"parley/internal/run/runfile"
	"parley/worlds/rollout"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/envhttp"
)

// arena is an environment server that counts the steps it is sent, by session and key.
type arena struct {
	inner *envhttp.Server
	mu    sync.Mutex
	steps map[string]int
}

func newArena(t *testing.T) (a *arena, url string) {
	t.Helper()
	a = &arena{inner: envhttp.NewEnvServer(envhttp.EnvServerConfig{Kinds: env.Standard()}), steps: map[string]int{}}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return a, s.URL
}

// ServeHTTP counts, and lets the server answer.
func (a *arena) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/step") {
		a.mu.Lock()
		a.steps[r.URL.Path+" "+r.Header.Get("Idempotency-Key")]++
		a.mu.Unlock()
	}
	a.inner.ServeHTTP(w, r)
}

// twice lists steps that arrived more than once, or without a key.
func (a *arena) twice() (out []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for step, n := range a.steps {
		if n > 1 || strings.HasSuffix(step, " ") {
			out = append(out, fmt.Sprintf("%s: %d times", step, n))
		}
	}
	return out
}

// open lists the sessions that are there.
func (a *arena) open() string {
	w := httptest.NewRecorder()
	a.inner.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/envs", nil))
	return strings.TrimSpace(w.Body.String())
}

// What is played: so many groups, each of so many episodes.
const (
	rolloutGroups = 24
	rolloutGroup  = 4
)

func rolloutPlan(t *testing.T, model, environments string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rollouts.yaml")
	text := fmt.Sprintf(`kind: rollout
seed: 3
episodes: %d
providers:
  lab: {dialect: openai, base_url: %q}
agents: {policy: {model: lab/small}}
lineup: {agent: policy}
params: {env: maze, env_params: {size: 3}, servers: [%q], group: %d, max_steps: 5, message_cut: 2, pool: {per_server: 24}}
`, rolloutGroups, model, environments, rolloutGroup)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRolloutsKilledAnywhere kills rollouts with kill -9 at random moments and plays them on
// until they are done. No step may reach the environment server twice, no session may be left
// there, and what comes out is what an undisturbed run gives: the same outcomes, and every
// group with all of its episodes.
func TestRolloutsKilledAnywhere(t *testing.T) {
	t.Parallel()
	model, _ := provider(t)
	a, url := newArena(t)
	file := rolloutPlan(t, model, url)
	want, _ := program(t, 0, "run", file, "--out", filepath.Join(t.TempDir(), "whole.parley"), "--json", "--quiet")
	if want.State != "complete" {
		t.Fatalf("undisturbed: %+v", want)
	}
	kills, trials, least, begins := 0, 0, enough(t, 8, 2), startTime(t)
	for ; kills < least; trials++ {
		out := filepath.Join(t.TempDir(), fmt.Sprintf("run%d.parley", trials))
		for tries := 0; ; tries++ {
			after := killAfter(begins, 200, tries, kills >= least)
			got, killed := program(t, after, "run", file, "--out", out, "--json", "--quiet")
			if killed {
				kills++
				continue
			}
			if got.State != "complete" || got.Digest != want.Digest {
				t.Fatalf("after %d kills: %+v, want %+v", kills, got, want)
			}
			break
		}
		groupsIn(t, out)
	}
	if twice := a.twice(); len(twice) > 0 {
		t.Errorf("steps arrived twice: %v", twice)
	}
	if left := a.open(); left != `{"envs":[]}` {
		t.Errorf("left behind: %s", left)
	}
	t.Logf("%d kills in %d runs, %d steps", kills, trials, len(a.steps))
}

// groupsIn makes sure that every group of a run is there, with all of its episodes.
func groupsIn(t *testing.T, file string) {
	t.Helper()
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	account, err := training.Each(t.Context(), s, rollout.Kind(), training.Filter{}, func(g *training.Group) error {
		if len(g.Members) != rolloutGroup || g.Short != "" {
			t.Errorf("group %s has %d episodes: %s", g.ID, len(g.Members), g.Short)
		}
		return nil
	})
	if err != nil || account.Groups != rolloutGroups || account.Kept != rolloutGroups || account.Rows == 0 {
		t.Errorf("%+v: %v", account, err)
	}
}
