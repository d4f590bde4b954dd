// Package inproc is a host of environments in this process: those of package env.
//
// It promises that a session exists until it is closed and needs no goroutine, and that an environment that
// panics fails only its session. It is not for environments that wait: they belong on a server.
package inproc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"parley/llm"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/envhttp/pool"
	"parley/worlds/rollout/rules/protocol"
)

// Host makes environments in this process.
type Host struct{ kinds []env.Kind }

// New returns a host of these environments.
func New(kinds []env.Kind) *Host { return &Host{kinds} }

// Name returns its name.
func (*Host) Name() string { return "this process" }

// New returns a session.
func (h *Host) New(_ string, o protocol.Opening) pool.Session { return &session{host: h, opening: o} }

// Check returns nil: a new process has no sessions left behind.
func (*Host) Check(context.Context, func(string) bool) error { return nil }

type session struct {
	host    *Host
	opening protocol.Opening
	env     env.Env
}

func (s *session) Reset(_ context.Context, seed int64) (info json.RawMessage, err error) {
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

func (s *session) Prompt(context.Context) (p protocol.Prompt, err error) {
	defer caught(&err)
	return s.env.Prompt(), nil
}

func (s *session) Step(_ context.Context, _ string, a protocol.Action) (r protocol.Result, err error) {
	defer caught(&err)
	return s.env.Step(a), nil
}

func (s *session) Close(context.Context) error {
	s.env = nil
	return nil
}

// caught turns a panic into an error.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = &llm.Error{Kind: llm.KindServer, Uncertain: true, Message: fmt.Sprintf("the environment panicked: %v", p)}
	}
}

var _ pool.Host = (*Host)(nil)
