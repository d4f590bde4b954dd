// Part openenv is a client of OpenEnv servers: over a WebSocket for each session, or over plain HTTP, where
// a server has one environment.
//
// OpenEnv's actions and observations are the environment's own objects; a rules.OpenEnv says how they become a
// conversation. The package promises that an action is sent at most once; that a socket is always read, so
// that pings are answered while a model thinks and a closed socket is noticed; and that closing a session
// closes its socket. Over a socket, the tools of an environment with an MCP server are offered (tools.go).
//
// It is not for retrying or for choosing a server: package pool does that.

package envhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// OpenenvHost is an OpenEnv server.
type OpenenvHost struct {
	*Client
	socket  string // empty: plain HTTP
	mapping rules.OpenEnv
	// toolless means that the server said that it has no tools.
	toolless atomic.Bool
}

// newOpenenv returns the server at an address: ws:// and wss:// for sockets, http:// and https:// for plain HTTP.
// limit is the maximum number of sessions; 0: as many as the server allows.
func newOpenenv(address string, m rules.OpenEnv) (h *OpenenvHost, limit int) {
	address = strings.TrimRight(address, "/")
	if rest, ok := strings.CutPrefix(address, "ws"); ok {
		return &OpenenvHost{Client: newExchange("http"+rest, 1), socket: address + "/ws", mapping: m}, 0
	}
	return &OpenenvHost{Client: newExchange(address, 1), mapping: m}, 1
}

// New returns a session.
func (h *OpenenvHost) New(id string, o rules.Opening) Session {
	s := &session{host: h, id: id, params: o.Params}
	if h.socket != "" {
		s.peer = &socket{address: h.socket}
	} else {
		s.peer = plain{h.Client}
	}
	return s
}

// Check asks whether the server is healthy. Sessions end with their sockets, so none are left behind.
func (h *OpenenvHost) Check(ctx context.Context, _ func(string) bool) error {
	return h.Do(ctx, http.MethodGet, "/health", "", nil, nil)
}

// peer is the server's side of a session.
type peer interface {
	// send sends a message (reset, step) and returns the answer.
	send(ctx context.Context, what string, data any, key string) (answer, error)
	close(ctx context.Context) error
}

// answer is the answer to a reset or a step.
type answer struct {
	Observation json.RawMessage `json:"observation"`
	Reward      *rules.Rewards  `json:"reward"`
	Done        bool            `json:"done"`
	Result      json.RawMessage `json:"-"` // of a request to its MCP server
}

// session is an environment and its conversation.
type session struct {
	host   *OpenenvHost
	peer   peer
	id     string
	params json.RawMessage
	talk   []llm.Message
	tools  rules.ProtocolTools
	done   bool
}

// Reset starts over. The params go to the environment's reset, which picks those it knows.
func (s *session) Reset(ctx context.Context, seed int64) (json.RawMessage, error) {
	data := map[string]any{}
	var params map[string]any
	if json.Unmarshal(s.params, &params) == nil {
		maps.Copy(data, params)
	}
	data["seed"], data["episode_id"] = seed, s.id
	a, err := s.peer.send(ctx, "reset", data, "")
	if err != nil {
		return nil, err
	}
	s.talk, s.done = nil, a.Done
	if s.host.mapping.System != "" {
		s.talk = append(s.talk, llm.System(s.host.mapping.System))
	}
	s.talk = append(s.talk, s.shown(a.Observation))
	return nil, s.list(ctx)
}

// Prompt returns the conversation so far.
func (s *session) Prompt(context.Context) (rules.Prompt, error) {
	if s.done {
		return nil, nil
	}
	return rules.Prompt{rules.Default: {Messages: s.talk, Tools: s.tools}}, nil
}

// Step sends an answer as an action. If it is not a valid action, nothing changes and the agent gets the reason.
func (s *session) Step(ctx context.Context, key string, a rules.Action) (rules.Result, error) {
	var answer llm.Message
	for _, answer = range a { // there is one agent, with any name
	}
	if len(answer.ToolCalls) > 0 {
		return s.call(ctx, key, answer)
	}
	text := answer.Text()
	action, ok := s.action(text)
	if !ok {
		return s.rejected(text, "That is no action: answer with one JSON object."), nil
	}
	got, err := s.peer.send(ctx, "step", action, key)
	if e := llm.AsError(err); e != nil && e.Code == codeValidation {
		why := "That is no action of this environment: " + e.Message
		if len(s.tools) > 0 {
			why += ". It has tools: call one of them."
		}
		r := s.rejected(text, why)
		r.Rejected = e.Message
		return r, nil
	}
	if err != nil {
		return rules.Result{}, err
	}
	s.done = got.Done
	s.talk = append(s.talk, llm.Assistant(text), s.shown(got.Observation))
	r := rules.Result{Observation: got.Observation, Reward: rules.Rewards{rules.Default: 0}, Terminated: got.Done}
	if got.Reward != nil && len(*got.Reward) > 0 {
		r.Reward = *got.Reward
	}
	return r, nil
}

// rejected returns the result of a step that was not taken.
func (s *session) rejected(text, why string) rules.Result {
	s.talk = append(s.talk, llm.Assistant(text), llm.User(why))
	return rules.Result{Reward: rules.Rewards{rules.Default: 0}}
}

// Close ends the session.
func (s *session) Close(ctx context.Context) error { return s.peer.close(ctx) }

// action returns the action of an answer.
func (s *session) action(text string) (any, bool) {
	if field := s.host.mapping.Action; field != "" {
		return map[string]string{field: text}, true
	}
	raw := []byte(strings.TrimSpace(text))
	if rest, ok := bytes.CutPrefix(raw, []byte("```json")); ok {
		raw = bytes.TrimSpace(bytes.TrimSuffix(rest, []byte("```")))
	}
	if !json.Valid(raw) || raw[0] != '{' {
		return nil, false
	}
	return json.RawMessage(raw), true
}

// shown returns what an agent sees of an observation: a field as text, or all of it as JSON, and its picture.
func (s *session) shown(observation json.RawMessage) llm.Message {
	var all map[string]json.RawMessage
	if json.Unmarshal(observation, &all) != nil {
		return llm.User(string(observation))
	}
	seen := all[s.host.mapping.Image]
	if len(seen) == 0 || string(seen) == "null" {
		return llm.User(s.read(all, observation))
	}
	delete(all, s.host.mapping.Image)
	rest, err := json.Marshal(all)
	if err != nil {
		return llm.User(string(observation))
	}
	m := llm.User(s.read(all, rest))
	image, err := picture(seen)
	if err != nil {
		m.Parts = append(m.Parts, llm.Part{Text: "\n(The picture cannot be shown: " + err.Error() + ")"})
		return m
	}
	m.Parts = append(m.Parts, llm.Part{Image: image})
	return m
}

// read returns the text of an observation.
func (s *session) read(all map[string]json.RawMessage, observation json.RawMessage) string {
	if field := s.host.mapping.Observation; field != "" && len(all[field]) > 0 {
		return asText(all[field])
	}
	return string(observation)
}

// plain is a peer over HTTP.
type plain struct{ *Client }

func (p plain) send(ctx context.Context, what string, data any, key string) (a answer, err error) {
	if what == "step" {
		data = map[string]any{"action": data, "request_id": key}
	}
	err = p.Do(ctx, http.MethodPost, "/"+what, key, data, &a)
	if e := llm.AsError(err); e != nil && e.Status == http.StatusUnprocessableEntity {
		e.Code = codeValidation
	}
	if err == nil && a.Observation == nil {
		err = unobserved(p.Name(), what)
	}
	return a, err
}

// close does nothing: the server keeps its one environment.
func (plain) close(context.Context) error { return nil }

func unobserved(where, what string) error {
	return invalid(where, errors.New(what+": the answer has no observation"))
}

var _ Host = (*OpenenvHost)(nil)
