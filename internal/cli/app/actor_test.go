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
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/envhttp"
)

// bell is a stranger's kind that acts on something outside.
type bell struct {
	worldtest.Simple[bellParams]
	acts, made, closed *atomic.Int64
	opened             *atomic.Int64 // actors that were there during an act
}

type bellParams struct {
	Server string `json:"server" doc:"Where the bell is."`
	Loud   int    `json:"loud" doc:"How loud it is."`
}

func newBell() bell {
	b := bell{acts: &atomic.Int64{}, made: &atomic.Int64{}, closed: &atomic.Int64{}, opened: &atomic.Int64{}}
	b.Simple = worldtest.Simple[bellParams]{
		Kind: world.About{Name: "bell", Version: 1, Doc: "Ring."}, Sits: []string{"ringer"},
		Play: func(_ *bellParams, t *world.Table) world.Outcome {
			if r := t.One(world.Call{Seat: "ringer", Act: &world.Act{Name: "ring"}}); !r.OK() {
				return world.Outcome{Failed: string(r.Failed)}
			}
			return world.Outcome{}
		},
	}
	return b
}

func (b bell) Actor(p *bellParams, run string) (world.Actor, error) {
	if run == "" || p.Server == "gone" {
		return nil, errors.New("bell: there is no bell")
	}
	if p.Loud > 9 {
		return nil, errors.New("bell: params.loud: want at most 9")
	}
	b.made.Add(1)
	return &ringer{b}, nil
}

func (bell) Outside() []string        { return []string{"server"} }
func (bell) Local(p *bellParams) bool { return p.Server == "" }
func (bell) Probe(_ context.Context, p *bellParams) []world.Presence {
	return []world.Presence{{Server: p.Server, Answers: p.Server != "gone"}}
}

type ringer struct{ bell }

func (r *ringer) Act(context.Context, world.TurnID, int, string, world.Act) (*llm.Response, error) {
	r.acts.Add(1)
	r.opened.Store(max(r.opened.Load(), r.made.Load()-r.closed.Load())) // it has room for one act at a time
	return &llm.Response{Text: "ding"}, nil
}

func (r *ringer) Capacity() int         { return 1 }
func (r *ringer) Close(context.Context) { r.closed.Add(1) }

// TestEnvironmentOfAnyKind: what carries out acts is the kind's own business, and is given back.
func TestEnvironmentOfAnyKind(t *testing.T) {
	t.Parallel()
	b := newBell()
	kinds := []world.Kind{world.Define(b)}
	load := func(set string) *planfile.Plan {
		file := filepath.Join(t.TempDir(), "plan.yaml")
		if err := os.WriteFile(file, []byte("kind: bell\nepisodes: 5\nagents: {x: sim/small}\nlineup: {ringer: x}\nparams: {server: \""+set+"\"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		plan, err := planfile.Load(t.Context(), file, kinds, nil, planfile.Reach{})
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	sum, err := Play{Plan: load("here"), Kinds: kinds, File: filepath.Join(t.TempDir(), "run.parley"), Tool: "test"}.Run(t.Context(), context.Background())
	if err != nil || sum.State != journal.Complete || sum.Episodes.Failed > 0 || b.acts.Load() != 5 || b.closed.Load() != 1 {
		t.Fatalf("%v: %+v, %d acts, closed %d times", err, sum, b.acts.Load(), b.closed.Load())
	}
	dir := t.TempDir() // a run that is refused leaves nothing behind
	_, err = Play{Plan: load("gone"), Kinds: kinds, File: filepath.Join(dir, "none.parley"), Tool: "test"}.Run(t.Context(), context.Background())
	if left, failed := os.ReadDir(dir); err == nil || !IsUsage(err) || failed != nil || len(left) > 0 {
		t.Errorf("an actor that cannot be opened: %v, left %v %v", err, left, failed)
	}
	for _, server := range []string{"here", "gone"} {
		there, all := probeServers(t.Context(), load(server))
		if len(there) != 1 || there[0].Server != server || all != (server == "here") {
			t.Errorf("%s: %+v, %v", server, there, all)
		}
	}
}

// remote is a Remote that nobody should ask.
type remote struct {
	Remote
	t *testing.T
}

func (r remote) Play(context.Context, *engine.RemoteRun) error {
	r.t.Error("played")
	return errors.New("played")
}

// TestActorsOfMatrix: the params of a matrix are checked before anything is played, also if other processes play. The actors that
// were made for that are closed at once.
func TestActorsOfMatrix(t *testing.T) {
	t.Parallel()
	for loud, fine := range map[string]bool{"[1, 2, 3]": true, "[1, 2, 30]": false} {
		for _, far := range []bool{false, true} {
			if far && fine {
				continue
			}
			b := newBell()
			kinds := []world.Kind{world.Define(b)}
			file := filepath.Join(t.TempDir(), "plan.yaml")
			if err := os.WriteFile(file, []byte("kind: bell\nagents: {x: sim/small}\nlineup: {ringer: x}\nplan: {matrix: {params: {loud: "+loud+"}}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			plan, err := planfile.Load(t.Context(), file, kinds, nil, planfile.Reach{})
			if err != nil {
				t.Fatal(err)
			}
			p := Play{Plan: plan, Kinds: kinds, File: filepath.Join(t.TempDir(), "run.parley"), Tool: "test"}
			if far {
				p.Remote = remote{t: t}
			}
			_, err = p.Run(t.Context(), context.Background())
			if fine != (err == nil) || err != nil && (!IsUsage(err) || !strings.Contains(err.Error(), "plan.yaml:4:39: plan.matrix.params.loud[2]: want at most 9")) {
				t.Errorf("%s, far %v: %v", loud, far, err)
			}
			if _, stat := os.Stat(p.File); fine != (stat == nil) {
				t.Errorf("%s, far %v: the run file: %v", loud, far, stat)
			}
			if b.made.Load() != b.closed.Load() || b.opened.Load() > 1 {
				t.Errorf("%s, far %v: made %d, closed %d, %d during an act", loud, far, b.made.Load(), b.closed.Load(), b.opened.Load())
			}
		}
	}
}

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
	half := Play{Kinds: worlds.Standard(), Plan: rollouts(t, first), File: file, Tool: "test", Events: func(e Event) {
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
