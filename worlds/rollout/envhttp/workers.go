// Part workers is a host of environments in worker processes: classes in Python. Other environments are those of
// another host.
//
// It promises that an error of the code is a *rules.CodeError, and that a session whose worker ended, and that another
// worker could not continue, is lost as that of a server that was killed.

package envhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/rules"
)

// WorkersHost makes environments in workers.
type WorkersHost struct {
	Host  // of all other environments
	codes world.Codes
}

// newWorkers returns a host of the environments in codes and of those of another host.
func newWorkers(codes world.Codes, other Host) *WorkersHost { return &WorkersHost{other, codes} }

// New returns a session.
func (h *WorkersHost) New(id string, o rules.Opening) Session {
	if !rules.IsCode(o.Env) {
		return h.Host.New(id, o)
	}
	return &workersSession{codes: h.codes, id: id, opening: o}
}

// checkWorkers asks a class whether it can be made with params, and returns the agents that it names, if it does.
func checkWorkers(codes world.Codes, env string, params json.RawMessage) (agents []string, err error) {
	code, err := find(codes, env)
	if err != nil {
		return nil, err
	}
	raw, err := code.Do(context.Background(), "", "check", map[string]any{"params": params})
	if err != nil {
		return nil, err
	}
	var made struct {
		Agents []string `json:"agents"`
	}
	err = json.Unmarshal(raw, &made)
	return made.Agents, err
}

// Names lists the classes in Python that params name.
func Names(p *rules.Params) (names []world.CodeName) {
	if p.Tasks == "" {
		return add(names, p.Env, "env")
	}
	for line := range strings.Lines(p.Tasks) {
		var t rules.Task
		if json.Unmarshal([]byte(line), &t) == nil { // the plan reports bad tasks
			names = add(names, t.Env, "environments")
		}
	}
	return names
}

func add(names []world.CodeName, env, param string) []world.CodeName {
	if one := (world.CodeName{Name: env, Param: param}); rules.IsCode(env) && !slices.Contains(names, one) {
		names = append(names, one)
	}
	return names
}

func find(codes world.Codes, env string) (world.Code, error) {
	if codes == nil {
		return nil, fmt.Errorf("workers: %s: environments in Python cannot be played here", env)
	}
	return codes.Find(env)
}

type workersSession struct {
	codes   world.Codes
	id      string
	opening rules.Opening
	code    world.Code // nil: it has not begun
	past    rules.Past
	prompt  rules.Prompt
}

// workersAnswer is the result of a reset or a step.
type workersAnswer struct {
	rules.Result
	Prompt rules.Delta `json:"prompt"`
}

func (s *workersSession) Reset(ctx context.Context, seed int64) (info json.RawMessage, err error) {
	if s.code == nil {
		if s.code, err = find(s.codes, s.opening.Env); err != nil {
			return nil, &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Message: err.Error(), Err: err}
		}
	}
	s.past = rules.Past{}
	params := s.opening.Params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	a, err := s.do(ctx, "reset", map[string]any{"params": params, "seed": seed})
	return a.Info, err
}

func (s *workersSession) Prompt(context.Context) (rules.Prompt, error) { return s.prompt, nil }

func (s *workersSession) Step(ctx context.Context, _ string, action rules.Action) (rules.Result, error) {
	a, err := s.do(ctx, "step", map[string]any{"action": action})
	return a.Result, err
}

func (s *workersSession) Close(context.Context) error {
	if s.code != nil {
		s.code.End(s.id)
	}
	return nil
}

// do carries out an operation and keeps the next prompt.
func (s *workersSession) do(ctx context.Context, op string, args any) (a workersAnswer, err error) {
	raw, err := s.code.Do(ctx, s.id, op, args)
	if fault, ok := errors.AsType[*world.CodeError](err); ok {
		// It says nothing about the host, and trying again would not help.
		return a, &llm.Error{Kind: llm.KindBadRequest, Message: fault.Text, Err: &rules.CodeError{Text: fault.Text, Trace: fault.Trace}}
	}
	if err != nil {
		if ctx.Err() != nil {
			return a, llm.ContextError(ctx)
		}
		return a, &llm.Error{Kind: llm.KindTransport, Uncertain: true, Message: err.Error(), Err: err}
	}
	if err = json.Unmarshal(raw, &a); err == nil {
		s.prompt, err = s.past.Apply(a.Prompt)
	}
	if err != nil {
		err = &llm.Error{Kind: llm.KindMalformed, Uncertain: true, Message: s.opening.Env + ": " + err.Error()}
	}
	return a, err
}
