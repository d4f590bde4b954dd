package envhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/ask/settings"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

// models answers every request with a direction that depends only on the prompt, so that runs can be compared.
type models struct{ before func() }

func (m models) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	n := 0
	for req := range reqs {
		i := n
		n++
		wg.Go(func() {
			if m.before != nil {
				m.before()
			}
			h := fnv.New32a()
			for _, msg := range req.Messages {
				_, _ = h.Write([]byte(msg.Text()))
			}
			text := []string{"north", "east", "south", "west", "east", "south"}[h.Sum32()%6]
			r := llm.Result{Response: &llm.Response{Text: text, Finish: llm.FinishStop, WeightVersion: "7"}}
			if ctx.Err() != nil {
				r = llm.Result{Err: llm.ContextError(ctx)}
			}
			mu.Lock()
			defer mu.Unlock()
			done(i, r)
		})
	}
	wg.Wait()
	return n
}

func (models) Drain() {}

// definition is the kind of rollouts with an environment, so that they are known to be outside.
type definition struct{ rules.Definition }

func (definition) Actor(p *rules.Params, run string) (world.Actor, error) { return New(p, run, nil) }
func (definition) Outside() []string                                      { return nil }

// setup is a run to be played.
type setup struct {
	params   string
	lineup   map[string]string
	episodes int
	journal  journal.Journal
	models   models
	codes    world.Codes
}

func (s setup) play(ctx context.Context, t *testing.T) (engine.Result, []journal.Ended) {
	t.Helper()
	kind := world.Define(definition{})
	params := definition{}.Defaults()
	must(t, json.Unmarshal([]byte(s.params), params))
	raw, err := json.Marshal(params)
	must(t, err)
	if s.lineup == nil {
		s.lineup = map[string]string{"agent": "x"}
	}
	if s.journal == nil {
		s.journal = &journal.Memory{}
	}
	actor, err := New(params, "lab", s.codes)
	must(t, err)
	spec := world.Spec{Kind: "rollout", Params: raw, Lineup: s.lineup}
	res, err := engine.Run(ctx, engine.Config{
		Journal: s.journal, Kind: kind, Plan: world.Repeat(spec, s.episodes), Models: s.models, Actor: actor, Settings: &settings.Settings{Limits: settings.Limits{Live: actor.Capacity()}},
		Begun: journal.Begun{Version: journal.Version, Run: "r", Kind: kind.Name, KindVersion: kind.Version, Seed: 1, Agents: []world.Agent{{Name: "x", Model: "lab/any"}}},
	})
	must(t, err)
	actor.Close(t.Context())
	ended := journaltest.Ends(t, s.journal)
	var inOrder []journal.Ended
	for i := range s.episodes {
		if e, ok := ended[i]; ok {
			inOrder = append(inOrder, e)
		}
	}
	return res, inOrder
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// data returns the outcome of an episode.
func data(t *testing.T, e journal.Ended) (d rules.Data) {
	t.Helper()
	must(t, json.Unmarshal(e.Outcome.Data.(json.RawMessage), &d))
	return d
}

// rewards writes the rewards of episodes, without the tries.
func rewards(t *testing.T, ended []journal.Ended) (out []string) {
	t.Helper()
	for _, e := range ended {
		d := data(t, e)
		for i := range d.Rows {
			d.Rows[i].Ask = 0
		}
		out = append(out, fmt.Sprintf("%d %+v %q %v", e.Episode, d.Rows, d.Stop, e.Outcome.Failed))
	}
	return out
}

// farm is an environment server with planned faults that counts requests.
type farm struct {
	*httptest.Server
	inner *Server
	// fault is called with each request and its number. It may answer in the server's place.
	fault func(n int, verb string, w http.ResponseWriter, r *http.Request) (answered bool)

	mu       sync.Mutex
	requests map[string]int // by verb
	keys     map[string]int // of steps that arrived
	gone     chan struct{}
}

func newFarm(t *testing.T, fault func(n int, verb string, w http.ResponseWriter, r *http.Request) bool) *farm {
	t.Helper()
	f := &farm{inner: NewEnvServer(EnvServerConfig{Kinds: env.Standard()}), fault: fault, requests: map[string]int{}, keys: map[string]int{}, gone: make(chan struct{})}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(func() { close(f.gone); f.CloseClientConnections(); f.Close() })
	return f
}

func (f *farm) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	verb := parts[len(parts)-1]
	if r.Method == http.MethodDelete {
		verb = "delete"
	}
	f.mu.Lock()
	n := f.requests[verb]
	f.requests[verb]++
	if verb == "step" {
		f.keys[r.Header.Get("Idempotency-Key")]++
	}
	fault, inner := f.fault, f.inner
	f.mu.Unlock()
	if fault != nil && fault(n, verb, w, r) {
		return
	}
	inner.ServeHTTP(w, r)
}

// count returns how many requests of a verb have arrived.
func (f *farm) count(verb string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[verb]
}

// twice lists steps that arrived more than once.
func (f *farm) twice() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, n := range f.keys {
		if n > 1 || key == "" {
			out = append(out, fmt.Sprint(key, " ", n))
		}
	}
	slices.Sort(out)
	return out
}

// left counts the sessions that are still there.
func (f *farm) left(t *testing.T) int {
	t.Helper()
	w := httptest.NewRecorder()
	f.inner.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/envs", nil))
	var list struct{ Envs []any }
	must(t, json.Unmarshal(w.Body.Bytes(), &list))
	return len(list.Envs)
}
