// Part inproc is a host of environments in this process: those of package env.
//
// It promises that a session exists until it is closed and needs no goroutine, and that an environment that
// panics fails only its session. It is not for environments that wait: they belong on a server.

package envhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"parley/llm"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

// InprocHost makes environments in this process.
type InprocHost struct{ kinds []env.Kind }

// newInproc returns a host of these environments.
func newInproc(kinds []env.Kind) *InprocHost { return &InprocHost{kinds} }

// Name returns its name.
func (*InprocHost) Name() string { return "this process" }

// New returns a session.
func (h *InprocHost) New(_ string, o rules.Opening) Session {
	return &inprocSession{host: h, opening: o}
}

// Check returns nil: a new process has no sessions left behind.
func (*InprocHost) Check(context.Context, func(string) bool) error { return nil }

type inprocSession struct {
	host    *InprocHost
	opening rules.Opening
	env     env.Env
}

func (s *inprocSession) Reset(_ context.Context, seed int64) (info json.RawMessage, err error) {
	defer caught(&err)
	if s.env == nil {
		kind, err := env.Find(s.host.kinds, s.opening.Env)
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

func (s *inprocSession) Prompt(context.Context) (p rules.Prompt, err error) {
	defer caught(&err)
	return s.env.Prompt(), nil
}

func (s *inprocSession) Step(_ context.Context, _ string, a rules.Action) (r rules.Result, err error) {
	defer caught(&err)
	return s.env.Step(a), nil
}

func (s *inprocSession) Close(context.Context) error {
	s.env = nil
	return nil
}

// caught turns a panic into an error.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = &llm.Error{Kind: llm.KindServer, Uncertain: true, Message: fmt.Sprintf("the environment panicked: %v", p)}
	}
}

var _ Host = (*InprocHost)(nil)
