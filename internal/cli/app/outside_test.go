package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/worlds"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/envhttp"
)

// arena serves environments and counts steps.
func arena(t *testing.T) (url string, steps *atomic.Int64) {
	t.Helper()
	steps = &atomic.Int64{}
	inner := envhttp.NewEnvServer(envhttp.EnvServerConfig{Kinds: env.Standard()})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/step") {
			steps.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, steps
}

func rollouts(t *testing.T, server string) *planfile.Plan {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	text := fmt.Sprintf("kind: rollout\nseed: 1\nepisodes: 20\nagents: {x: {model: sim/small}}\nlineup: {agent: x}\nparams: {env: maze, servers: [%q], max_steps: 4, pool: {per_server: 2}}\n", server)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := planfile.Load(t.Context(), file, worlds.Standard(), nil, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestServerMoved: the servers of environments, and their settings, may change when a run is
// resumed; what is played in them may not.
func TestServerMoved(t *testing.T) {
	t.Parallel()
	first, _ := arena(t)
	second, steps := arena(t)
	undisturbed, err := Play{Kinds: worlds.Standard(), Plan: rollouts(t, first), File: filepath.Join(t.TempDir(), "whole.parley"), Tool: "test"}.Run(t.Context(), context.Background())
	if err != nil || undisturbed.State != journal.Complete {
		t.Fatal(undisturbed, err)
	}
	file := filepath.Join(t.TempDir(), "run.parley")
	drain, stop := context.WithCancelCause(t.Context())
	half := Play{Kinds: worlds.Standard(), Plan: rollouts(t, first), File: file, Tool: "test", Watch: func(e engine.Event) {
		if e.Ended != nil && e.Ended.Episode == 5 {
			stop(errors.New("enough"))
		}
	}}
	if sum, err := half.Run(t.Context(), drain); err != nil || sum.State != journal.Stopped {
		t.Fatal(sum, err)
	}
	_, err = Play{Kinds: worlds.Standard(), File: file, MustExist: true, Sets: []string{"params.max_steps=3"}}.Run(t.Context(), context.Background())
	if err == nil || !IsUsage(err) || !strings.Contains(err.Error(), "params.max_steps was 4, and is 3") {
		t.Errorf("max_steps: %v", err)
	}
	moved := Play{Kinds: worlds.Standard(), File: file, MustExist: true, Sets: []string{fmt.Sprintf("params.servers=[%q]", second), "params.pool.per_server=5"}}
	sum, err := moved.Run(t.Context(), context.Background())
	if err != nil || sum.State != journal.Complete || sum.Digest != undisturbed.Digest || steps.Load() == 0 {
		t.Errorf("%+v: %v; want %s; %d steps on the second server", sum, err, undisturbed.Digest, steps.Load())
	}
}

// TestCheckServers: a check says which servers answer. It opens environments and plays in them only
// with Act.
func TestCheckServers(t *testing.T) {
	t.Parallel()
	there, steps := arena(t)
	const gone = "http://127.0.0.1:1" // a port that systems give to nobody
	e, err := Check{Plan: rollouts(t, there)}.Run(t.Context())
	if err != nil || len(e.Servers) != 1 || !e.Servers[0].Answers || e.Episodes.Played != 0 || steps.Load() != 0 || len(e.Warnings) == 0 || !strings.Contains(e.Warnings[0], "--act") {
		t.Errorf("%+v %v, %d steps", e, err, steps.Load())
	}
	e, err = Check{Plan: rollouts(t, there), Act: true}.Run(t.Context())
	if err != nil || e.Episodes.Played == 0 || e.Calls.Total.Low == 0 || steps.Load() == 0 || slices.ContainsFunc(e.Warnings, func(w string) bool { return strings.Contains(w, "--act") }) {
		t.Errorf("%+v %v, %d steps", e, err, steps.Load())
	}
	e, err = Check{Plan: rollouts(t, gone), Act: true}.Run(t.Context())
	if err != nil || e.Servers[0].Answers || e.Servers[0].Why == "" || e.Episodes.Played != 0 {
		t.Errorf("%+v %v", e, err)
	}
}
