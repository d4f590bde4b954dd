package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"iter"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"parley/internal/run/engine"
	"parley/internal/run/worker"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

func TestMain(m *testing.M) {
	if os.Getenv("PARLEY_WORKER") != "" {
		os.Exit(loopbackMain())
	}
	goleak.VerifyTestMain(m)
}

// models answers with a number that depends on the request.
type models struct{}

func (models) Each(_ context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) (n int) {
	for req := range reqs {
		h := fnv.New32a()
		d := req.Digest()
		h.Write(d[:])
		done(n, llm.Result{Response: &llm.Response{Text: fmt.Sprint(h.Sum32() % 1000), Finish: llm.FinishStop}})
		n++
	}
	return n
}

func (models) Drain() {}

// echo carries out the acts of the kind in Go.
type echo struct{}

func (echo) Act(_ context.Context, _ world.TurnID, _ int, _ string, act world.Act) (*llm.Response, error) {
	return &llm.Response{JSON: act.Body, Finish: llm.FinishStop}, nil
}

// of returns a run of episodes of a kind.
func of(k world.Kind, j *journal.Memory, episodes int) engine.Config {
	return engine.Config{
		Journal: j, Kind: k, Models: models{}, Actor: echo{},
		Begun: journal.Begun{Version: journal.Version, Run: "test", Kind: k.Name, KindVersion: k.Version, Seed: 1 << 63, Agents: []world.Agent{{Name: "me", Model: "lab/one"}}},
		Plan:  world.Repeat(world.Spec{Kind: k.Name, Params: json.RawMessage(`{"rounds":4,"mood":"bold"}`), Lineup: map[string]string{"a": "me", "b": "me"}}, episodes),
	}
}

// play plays episodes of a kind.
func play(t *testing.T, k world.Kind, j *journal.Memory, episodes int) engine.Result {
	t.Helper()
	res, err := engine.Run(t.Context(), of(k, j, episodes))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestSameDigest: a world in workers has the digest of the same world in Go, with any number of workers and whenever
// they end.
func TestSameDigest(t *testing.T) {
	t.Parallel()
	want := play(t, world.Define(game{}), &journal.Memory{}, 12).Digest
	for _, c := range []struct {
		name  string
		limit int
		dies  func() int
	}{
		{"one worker", 1, nil},
		{"three workers", 3, nil},
		{"workers that end", 2, sometimes(3, 150)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &served{kind: world.Define(game{}), dies: c.dies}
			_, k := open(t, s, c.limit)
			res := play(t, k, &journal.Memory{}, 12)
			if res.Digest != want {
				t.Errorf("digest %s, want %s: %d episodes, %d failed", res.Digest, want, res.Episodes, res.Failed)
			}
			if s.started < c.limit || c.dies != nil && s.started < 4 {
				t.Errorf("%d workers were started", s.started)
			}
			if s.acts < 48 {
				t.Errorf("%d acts were carried out", s.acts)
			}
		})
	}
}

// TestFaults: what goes wrong in a worker fails the episode with a text that names it.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		twist func(op string, step map[string]any)
		dies  func() int
		want  string
	}{
		{"raises", func(op string, step map[string]any) {
			if op == "strand" {
				delete(step, "ask")
				step["error"] = object{"text": "game.py:12: ValueError: no", "trace": "Traceback"}
			}
		}, nil, "game.py:12: ValueError: no"},
		{"unknown seat", func(_ string, step map[string]any) {
			if calls, ok := step["ask"].([]object); ok {
				calls[0]["seat"] = "nobody"
			}
		}, nil, `asks the seat "nobody"`},
		{"setting of another type", asking("temperature", "hot"), nil, `game.py:3: the call "talk" to the seat "a": temperature: found string, want number`},
		{"setting out of range", asking("temperature", 9), nil, `game.py:3: the call "talk" to the seat "a": temperature 9: use 0 to 2`},
		{"tool with a wrong key", asking("tools", []object{{"nme": "price"}}), nil, `game.py:3: the call "talk" to the seat "a": tools: unknown key "nme"; want one of description, name,`},
		{"tool without a name", asking("tools", []object{{}}), nil, `game.py:3: the call "talk" to the seat "a": tools[0]: name is missing`},
		{"message of another type", asking("messages", []object{{"role": "user", "content": 5}}), nil, `content: want a string or a list of parts`},
		{"score of an unknown seat", func(_ string, step map[string]any) {
			if step["end"] != nil {
				step["end"] = object{"scores": []object{{"name": "sum", "seat": "a", "value": 1}, {"name": "sum", "seat": "nobody", "value": 1}}}
			}
		}, nil, `the score "sum" is for the seat "nobody": want one of ["a" "b"]`},
		{"empty step", func(op string, step map[string]any) {
			if op == "replies" {
				clear(step)
			}
		}, nil, "no ask, fork, end or error"},
		{"malformed", func(op string, step map[string]any) {
			if op == "replies" {
				step["fork"] = "many"
			}
		}, nil, "malformed"},
		{"talk too long", func(_ string, step map[string]any) {
			if calls, ok := step["ask"].([]object); ok && calls[0]["keep"] != nil {
				calls[0]["keep"] = 99
			}
		}, nil, "keeps 99 messages"},
		{"dies always", nil, func() int { return 2 }, "its worker ended 3 times during this step: it ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, k := open(t, &served{kind: world.Define(game{}), twist: c.twist, dies: c.dies}, 1)
			j := &journal.Memory{}
			res := play(t, k, j, 2)
			if res.Failed != 2 || res.State != journal.Complete {
				t.Fatalf("%+v", res)
			}
			head, err := j.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if e, _ := head.Ended.Of(0); !strings.Contains(e.Outcome.Failed, c.want) {
				t.Errorf("failed with %q, want %q", e.Outcome.Failed, c.want)
			}
		})
	}
}

// asking returns a twist that sets a key of the first call.
func asking(key string, value any) func(op string, step map[string]any) {
	return func(_ string, step map[string]any) {
		if calls, ok := step["ask"].([]object); ok && calls[0]["act"] == nil {
			calls[0][key] = value
		}
	}
}

// TestInnocent: an episode that ends its worker fails, and those that the worker played beside it do not.
func TestInnocent(t *testing.T) {
	t.Parallel()
	const poisoned, episodes = 10, 40
	s := &served{kind: world.Define(game{})}
	s.poison = func(r map[string]any) bool {
		deal, _ := r["deal"].(float64)
		return r["op"] == "begin" && deal < poisoned
	}
	_, k := open(t, s, 1)
	if res := play(t, k, &journal.Memory{}, episodes); res.Failed != poisoned {
		t.Errorf("%d of %d episodes failed, want %d", res.Failed, episodes, poisoned)
	}
}

// TestDiverged: a world that does something else when it is played again fails, and names the cause.
func TestDiverged(t *testing.T) {
	t.Parallel()
	n := 0
	s := &served{kind: world.Define(game{}), dies: sometimes(1, 30)}
	s.twist = func(_ string, step map[string]any) {
		if calls, ok := step["ask"].([]object); ok {
			s.mu.Lock()
			n++
			calls[0]["label"] = fmt.Sprint(n)
			s.mu.Unlock()
		}
	}
	_, k := open(t, s, 1)
	j := &journal.Memory{}
	if res := play(t, k, j, 4); res.Failed == 0 {
		t.Error("no episode failed")
	}
}

// TestLeakingWorkersAreReplaced: a worker that uses too much memory gets no new episodes, and one that uses twice as much is ended
// at once. Its other episodes continue elsewhere, with the same result.
func TestLeakingWorkersAreReplaced(t *testing.T) {
	t.Parallel()
	want := play(t, world.Define(game{}), &journal.Memory{}, 12).Digest
	for _, used := range []int{0, 1500, 2500} {
		s := &served{kind: world.Define(game{})}
		s.twist = func(_ string, step map[string]any) {
			if _, last := step["end"]; last {
				step["memory"] = used
			}
		}
		p, k, err := worker.Open(worker.Config{Name: "game.py:Game", Class: "Game", Start: s.start, Max: 1, Memory: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the episodes of the first may all have begun before the first of them ended
			if res := play(t, k, &journal.Memory{}, 12); res.Digest != want || res.Failed > 0 {
				t.Errorf("%d bytes of 1000: %d failed, digest %s, want %s", used, res.Failed, res.Digest, want)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if (s.started > 1) != (used > 1000) {
			t.Errorf("%d bytes of 1000: %d workers", used, s.started)
		}
	}
}

// TestPhases: the phases that a world in a worker begins are those of its turns.
func TestPhases(t *testing.T) {
	t.Parallel()
	_, k := open(t, &served{kind: world.Define(game{})}, 1)
	params, err := k.Read(json.RawMessage(`{"rounds":1,"mood":"bold"}`))
	if err != nil {
		t.Fatal(err)
	}
	w, err := k.World(params, world.Lineup{"a": {Name: "me"}, "b": {Name: "me"}})
	if err != nil {
		t.Fatal(err)
	}
	s := world.Begin(w, world.Deal{})
	defer s.Stop()
	if turn := s.Next(nil); len(turn.Notes) != 1 || turn.Notes[0].Phase() != "round 1" {
		t.Errorf("%+v", turn)
	}
}

// TestParams: params have the types, the defaults and the errors of the worker.
func TestParams(t *testing.T) {
	t.Parallel()
	_, k := open(t, &served{kind: world.Define(game{})}, 1)
	b, err := json.Marshal(k.Defaults().Pointer())
	if err != nil || string(b) != `{"rounds":3,"mood":"calm"}` {
		t.Errorf("defaults %s, %v", b, err)
	}
	p, err := k.Read(json.RawMessage(`{"rounds":0}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Seats(p); err == nil || !strings.Contains(err.Error(), "rounds") || !strings.Contains(err.Error(), "want 1 or more") {
		t.Errorf("error %v", err)
	}
	if m := k.Measures(k.Defaults()); len(m) != 1 || m[0].Name != "sum" || m[0].High != 1e9 {
		t.Errorf("measures %+v", m)
	}
}

// TestEdited: a worker that is started later and has other code does not play.
func TestEdited(t *testing.T) {
	t.Parallel()
	s := &served{kind: world.Define(game{}), dies: func() int { return 30 }}
	s.files = func(before int) map[string]string { return map[string]string{"game.py": fmt.Sprint(before)} }
	p, k := open(t, s, 1)
	if c := p.Code(); c.Name != "game.py:Game" || c.Language != "go" || c.Files["game.py"] != "0" {
		t.Errorf("code %+v", c)
	}
	_, err := engine.Run(t.Context(), of(k, &journal.Memory{}, 12))
	if err == nil || !strings.Contains(err.Error(), "game.py has changed since the run began") {
		t.Fatalf("error %v", err)
	}
}

// TestNoWorker: if no worker can be started, the run stops, and its episodes do not fail.
func TestNoWorker(t *testing.T) {
	t.Parallel()
	s := &served{kind: world.Define(game{}), dies: func() int { return 30 }}
	p, k, err := worker.Open(worker.Config{Name: "game.py:Game", Class: "Game", Max: 1, Start: func() (worker.Started, error) {
		if s.started > 0 {
			return worker.Started{}, fmt.Errorf("python is gone")
		}
		return s.start()
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	j := &journal.Memory{}
	_, err = engine.Run(t.Context(), of(k, j, 12))
	if err == nil || !strings.Contains(err.Error(), "python is gone") {
		t.Fatalf("error %v", err)
	}
	_, again := open(t, &served{kind: world.Define(game{})}, 1)
	res := play(t, again, j, 12)
	if want := play(t, world.Define(game{}), &journal.Memory{}, 12).Digest; res.Digest != want || res.Replayed == 0 {
		t.Errorf("digest %s with %d calls read back, want %s", res.Digest, res.Replayed, want)
	}
}

// TestLate: a worker has its time for each request, however many wait for it. One that takes too long for a request is ended
// once; the episode fails, and those that the worker played beside it do not.
func TestLate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		takes           time.Duration // for the first step of an episode
		started, failed int
	}{
		{"slow", 50 * time.Second, 1, 0},
		{"stuck", 24 * time.Hour, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &served{kind: world.Define(game{})}
				defer time.Sleep(c.takes) // a worker that was ended notices it
				s.delay = func(r map[string]any) {
					if deal, _ := r["deal"].(float64); r["op"] == "begin" && (c.failed == 0 || deal == 0) {
						time.Sleep(c.takes)
					}
				}
				p, k := open(t, s, 1)
				j := &journal.Memory{}
				res := play(t, k, j, 4)
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
				if res.Failed != c.failed || s.started != c.started {
					t.Errorf("%d episodes failed, %d workers were started; want %d and %d", res.Failed, s.started, c.failed, c.started)
				}
				head, err := j.Head(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if e, _ := head.Ended.Of(0); c.failed > 0 && !strings.Contains(e.Outcome.Failed, "a step took longer than 1m0s") {
					t.Errorf("failed with %q", e.Outcome.Failed)
				}
			})
		})
	}
}
