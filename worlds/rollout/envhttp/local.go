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
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

// localHost makes the environments of package env in this process, and classes in Python in worker processes. It needs no
// goroutine for a session.
type localHost struct {
	kinds []env.Kind
	codes world.Codes // nil: there are no workers
}

// Name returns its name.
func (*localHost) Name() string { return "this process" }

// New returns a session.
func (h *localHost) New(id string, o rules.Opening) Session {
	if rules.IsCode(o.Env) {
		return &workerSession{codes: h.codes, id: id, opening: o}
	}
	return &localSession{kinds: h.kinds, opening: o}
}

// Check returns nil: a new process has no sessions left behind.
func (*localHost) Check(context.Context, func(string) bool) error { return nil }

// checkCode asks a class whether it can be made with params, and returns the agents that it names, if it does.
func checkCode(codes world.Codes, env string, params json.RawMessage) (agents []string, err error) {
	code, err := findCode(codes, env)
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

// CodeNames lists the classes in Python that params name.
func CodeNames(p *rules.Params) (names []world.CodeName) {
	if p.Tasks == "" {
		return addCodeName(names, p.Env, "env")
	}
	for line := range strings.Lines(p.Tasks) {
		var t rules.Task
		if json.Unmarshal([]byte(line), &t) == nil { // the plan reports bad tasks
			names = addCodeName(names, t.Env, "environments")
		}
	}
	return names
}

func addCodeName(names []world.CodeName, env, param string) []world.CodeName {
	if one := (world.CodeName{Name: env, Param: param}); rules.IsCode(env) && !slices.Contains(names, one) {
		names = append(names, one)
	}
	return names
}

func findCode(codes world.Codes, env string) (world.Code, error) {
	if codes == nil {
		return nil, fmt.Errorf("workers: %s: environments in Python cannot be played here", env)
	}
	return codes.Find(env)
}

// workerSession is a class in Python in a worker. An error of its code is a *rules.CodeError. If the worker ended, and
// another could not continue, the session is lost as that of a server that was killed.
type workerSession struct {
	codes   world.Codes
	id      string
	opening rules.Opening
	code    world.Code // nil: it has not begun
	past    rules.Past
	prompt  rules.Prompt
}

// workerAnswer is the result of a reset or a step.
type workerAnswer struct {
	rules.Result
	Prompt rules.Delta `json:"prompt"`
}

func (s *workerSession) Reset(ctx context.Context, seed int64) (info json.RawMessage, err error) {
	if s.code == nil {
		if s.code, err = findCode(s.codes, s.opening.Env); err != nil {
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

func (s *workerSession) Prompt(context.Context) (rules.Prompt, error) { return s.prompt, nil }

func (s *workerSession) Step(ctx context.Context, _ string, action rules.Action) (rules.Result, error) {
	a, err := s.do(ctx, "step", map[string]any{"action": action})
	return a.Result, err
}

func (s *workerSession) Close(context.Context) error {
	if s.code != nil {
		s.code.End(s.id)
	}
	return nil
}

// do carries out an operation and keeps the next prompt.
func (s *workerSession) do(ctx context.Context, op string, args any) (a workerAnswer, err error) {
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

// localSession is an environment in this process. One that panics fails only its session.
type localSession struct {
	kinds   []env.Kind
	opening rules.Opening
	env     env.Env
}

func (s *localSession) Reset(_ context.Context, seed int64) (info json.RawMessage, err error) {
	defer catchPanic(&err)
	if s.env == nil {
		kind, err := env.Find(s.kinds, s.opening.Env)
		if err == nil {
			s.env, err = kind.New(s.opening.Params)
		}
		if err != nil {
			s.env = nil
			return nil, &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Message: err.Error(), Err: err}
		}
	}
	s.env.Reset(seed)
	return nil, nil
}

func (s *localSession) Prompt(context.Context) (p rules.Prompt, err error) {
	defer catchPanic(&err)
	return s.env.Prompt(), nil
}

func (s *localSession) Step(_ context.Context, _ string, a rules.Action) (r rules.Result, err error) {
	defer catchPanic(&err)
	return s.env.Step(a), nil
}

func (s *localSession) Close(context.Context) error {
	s.env = nil
	return nil
}

// catchPanic turns a panic into an error.
func catchPanic(err *error) {
	if p := recover(); p != nil {
		*err = &llm.Error{Kind: llm.KindServer, Uncertain: true, Message: fmt.Sprintf("the environment panicked: %v", p)}
	}
}

var _ Host = (*localHost)(nil)
