package envhttp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// v1Host is a server of the v1 environment protocol: /envs, and for each environment reset, get_task_prompt, step
// and DELETE. docs/how-to/train.md describes it. An answer outside the protocol is an error.
type v1Host struct{ *Client }

// newV1Host returns the server at an address, with as many connections as sessions.
func newV1Host(address string, sessions int) *v1Host { return &v1Host{newClient(address, sessions)} }

// New returns a session of an environment.
func (h *v1Host) New(id string, o rules.Opening) Session {
	return &v1Session{v1Host: h, env: o.Env, id: id, params: o.Params}
}

// Check lists the environments and closes those that were left behind.
func (h *v1Host) Check(ctx context.Context, stray func(id string) bool) error {
	var list struct {
		Envs []struct {
			EnvName string `json:"envname"`
			ID      string `json:"id"`
		} `json:"envs"`
	}
	if err := h.Do(ctx, http.MethodGet, "/envs", "", nil, &list); err != nil {
		return err
	}
	for _, e := range list.Envs {
		if stray(e.ID) {
			s := &v1Session{v1Host: h, env: e.EnvName, id: e.ID}
			if err := s.Close(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// v1Session is an environment on the server.
type v1Session struct {
	*v1Host
	env, id string
	params  json.RawMessage
	tools   rules.ToolList // of the reset, for every agent whose prompt has none
}

func (s *v1Session) path(verb string) string {
	p := "/" + url.PathEscape(s.env) + "/" + url.PathEscape(s.id)
	if verb != "" {
		p += "/" + verb
	}
	return p
}

func (s *v1Session) Reset(ctx context.Context, seed int64) (json.RawMessage, error) {
	params := s.params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	var out struct {
		Info  json.RawMessage `json:"info"`
		Tools rules.ToolList  `json:"tools"`
	}
	err := s.Do(ctx, http.MethodPost, s.path("reset"), "", map[string]any{"env_param": params, "seed": seed}, &out)
	s.tools = out.Tools
	return out.Info, err
}

func (s *v1Session) Prompt(ctx context.Context) (p rules.Prompt, err error) {
	err = s.Do(ctx, http.MethodGet, s.path("get_task_prompt"), "", nil, &p)
	for agent, q := range p {
		if q.Tools == nil {
			q.Tools = s.tools
			p[agent] = q
		}
	}
	return p, err
}

func (s *v1Session) Step(ctx context.Context, key string, a rules.Action) (rules.Result, error) {
	// A result without these must not count as a step without a reward.
	var out struct {
		rules.Result
		Reward     *rules.Rewards `json:"reward"`
		Terminated *bool          `json:"terminated"`
		Truncated  bool           `json:"truncated"`
	}
	err := s.Do(ctx, http.MethodPost, s.path("step"), key, map[string]any{"action": a}, &out)
	switch {
	case err != nil:
	case out.Terminated == nil:
		err = invalidError(s.Name(), errors.New("step: terminated is missing: want true or false"))
	case out.Reward == nil && len(out.Rewarded()) == 0:
		err = invalidError(s.Name(), errors.New("step: reward is missing: want a number, or agents with their numbers"))
	}
	if err != nil {
		return rules.Result{}, err
	}
	r := out.Result
	r.Terminated, r.Truncated = *out.Terminated, out.Truncated
	if out.Reward != nil {
		r.Reward = *out.Reward
	}
	return r, nil
}

// Close deletes the session. Servers that cannot delete are asked to close it; an unknown session is not an
// error.
func (s *v1Session) Close(ctx context.Context) error {
	err := s.Do(ctx, http.MethodDelete, s.path(""), "", nil, nil)
	if status(err) == http.StatusNotFound || status(err) == http.StatusMethodNotAllowed {
		err = s.Do(ctx, http.MethodPost, s.path("close"), "", map[string]any{}, nil)
	}
	if status(err) == http.StatusNotFound {
		return nil
	}
	return err
}

func status(err error) int {
	if err == nil {
		return 0
	}
	return llm.AsError(err).Status
}

var _ Host = (*v1Host)(nil)
