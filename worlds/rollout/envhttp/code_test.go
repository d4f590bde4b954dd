package envhttp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

// coded is the maze as code in workers: maze.py:Maze. fault is called with the number of each step.
type coded struct {
	fault func(n int) error

	mu   sync.Mutex
	live map[string]env.Env
	n    int
}

func (c *coded) Find(name string) (world.Code, error) {
	if name != "maze.py:Maze" {
		return nil, errors.New("the plan did not name it")
	}
	return c, nil
}

func (c *coded) All() []world.Code { return []world.Code{c} }

func (c *coded) Workers() int { return 2 }

func (c *coded) End(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.live, session)
}

func (*coded) StandIn(string, *llm.Request, uint64) (string, bool) { return "", false }

func (c *coded) Do(_ context.Context, session, op string, args any) (json.RawMessage, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	var a struct {
		Params json.RawMessage
		Seed   int64
		Action rules.Action
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	kind, err := env.Find(env.Standard(), "maze")
	if err != nil {
		return nil, err
	}
	var r rules.Result
	switch op {
	case "check":
		if _, err := kind.New(a.Params); err != nil {
			return nil, &world.CodeError{Text: err.Error(), Param: "size"}
		}
		return json.RawMessage(`{}`), nil
	case "reset":
		if c.live[session], err = kind.New(a.Params); err != nil {
			return nil, err
		}
		c.live[session].Reset(a.Seed)
	default:
		c.n++
		if c.fault != nil {
			if err := c.fault(c.n); err != nil {
				return nil, err
			}
		}
		r = c.live[session].Step(a.Action)
	}
	return json.Marshal(map[string]any{
		"reward": r.Reward, "terminated": r.Terminated, "truncated": r.Truncated, "info": r.Info,
		"prompt": rules.Past{}.Delta(c.live[session].Prompt()),
	})
}

// TestCode: an environment in workers is the same as one in this process. If a session is lost, its episode begins again;
// if the code raises an error, the episode fails with its line.
func TestCode(t *testing.T) {
	t.Parallel()
	_, want := setup{params: `{` + mazes + `}`, episodes: 15}.play(t.Context(), t)
	code := strings.Replace(mazes, `"maze"`, `"maze.py:Maze"`, 1)
	lost := func(n int) error {
		if n%31 == 0 {
			return errors.New("its worker ended")
		}
		return nil
	}
	for name, fault := range map[string]func(int) error{"whole": nil, "lost": lost} {
		c := &coded{fault: fault, live: map[string]env.Env{}}
		res, got := setup{params: `{` + code + `}`, episodes: 15, codes: c}.play(t.Context(), t)
		if res.State != journal.Complete || !slices.Equal(rewards(t, got), rewards(t, want)) || len(c.live) > 0 {
			t.Errorf("%s: %+v, %d sessions left", name, res, len(c.live))
		}
		if again := slices.ContainsFunc(got, func(e journal.Ended) bool { return data(t, e).Tries > 1 }); again != (fault != nil) {
			t.Errorf("%s: begun again: %v", name, again)
		}
	}
	c := &coded{live: map[string]env.Env{}, fault: func(int) error {
		return &world.CodeError{Text: "maze.py:12: ZeroDivisionError: division by zero", Trace: "Traceback"}
	}}
	_, got := setup{params: `{` + code + `}`, episodes: 3, codes: c}.play(t.Context(), t)
	for _, e := range got {
		if want := "environment: step 1: maze.py:12: ZeroDivisionError: division by zero"; e.Outcome.Failed != want || data(t, e).Tries != 1 {
			t.Errorf("failed with %q, want %q", e.Outcome.Failed, want)
		}
	}
}

// TestCodeRefused: what cannot be played is refused before the run begins.
func TestCodeRefused(t *testing.T) {
	t.Parallel()
	c := &coded{live: map[string]env.Env{}}
	for _, one := range []struct {
		params string
		codes  world.Codes
		want   string
	}{
		{`{"env":"maze.py:Maze","env_params":{"size":0}}`, c, "params.env_params.size: "},
		{`{"env":"other.py:Maze"}`, c, "params.env: the plan did not name it"},
		{`{"env":"maze.py:Maze"}`, nil, "cannot be played here"},
	} {
		p := rules.Definition{}.Defaults()
		must(t, json.Unmarshal([]byte(one.params), p))
		if _, err := New(p, "run", one.codes); err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: error %v, want %q", one.params, err, one.want)
		}
	}
	p := rules.Definition{}.Defaults()
	must(t, json.Unmarshal([]byte(`{"env":"maze.py:Maze","pool":{"per_server":7}}`), p))
	a, err := New(p, "run", c)
	must(t, err)
	if a.Capacity() != 14 { // two workers
		t.Errorf("room for %d", a.Capacity())
	}
	a.Close(t.Context())
	must(t, json.Unmarshal([]byte(`{"servers":["http://127.0.0.1:1"]}`), p))
	if _, err := (rules.Definition{}).Seats(p); err == nil || !strings.Contains(err.Error(), "leave servers out") {
		t.Errorf("error %v", err)
	}
}
