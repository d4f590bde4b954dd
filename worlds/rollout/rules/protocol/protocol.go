// Package protocol holds the words between a rollout and its environment: what is asked of
// an environment (Opening, Stepping), what it answers (Opened, Stepped, Result), and how
// prompts, actions and rewards of one agent or of many are written in JSON.
//
// What it promises: everything here is plain data that reads back as it was written; the
// forms that environments use for one agent and for several are all read; nothing an
// environment sends makes it panic.
//
// It is not for carrying acts out: it opens nothing and waits for nobody.
package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"parley/llm"
)

// Default is the agent of an environment that knows one only.
const Default = "default"

// The acts of a rollout.
const (
	Open  = "open"  // have an environment made and reset; Opening to Opened
	Step  = "step"  // do something in it; Stepping to Stepped
	Close = "close" // give it back before it came to its end; Closing to nothing
)

// Opening asks for an environment.
type Opening struct {
	Env    string          `json:"env"`
	Params json.RawMessage `json:"params,omitempty"`
	Seed   int64           `json:"seed"`
	// Try counts how often the episode has begun again from a reset.
	Try int `json:"try,omitempty"`
}

// Opened is an environment that was reset, and what it asks first.
type Opened struct {
	Info   json.RawMessage `json:"info,omitempty"`
	Prompt Delta           `json:"prompt,omitempty"`
}

// Stepping is an action.
type Stepping struct {
	Try    int    `json:"try,omitempty"`
	Step   int    `json:"step"` // from 1
	Action Action `json:"action"`
	// Last means that nothing is asked of the environment after this.
	Last bool `json:"last,omitempty"`
}

// Stepped is what became of an action, and what the environment asks next. After a step
// that ends the episode it asks nothing.
type Stepped struct {
	Reward     Rewards         `json:"reward,omitempty"`
	Terminated bool            `json:"terminated,omitempty"`
	Truncated  bool            `json:"truncated,omitempty"`
	Info       json.RawMessage `json:"info,omitempty"`
	Prompt     Delta           `json:"prompt,omitempty"`
}

// Closing gives an environment back.
type Closing struct {
	Try int `json:"try,omitempty"`
}

// Result is what an environment says of a step.
type Result struct {
	Observation json.RawMessage `json:"observation"`
	Reward      Rewards         `json:"reward"`
	Terminated  bool            `json:"terminated"`
	Truncated   bool            `json:"truncated"`
	Info        json.RawMessage `json:"info"`
}

// Done says whether the step ended the episode.
func (r Result) Done() bool { return r.Terminated || r.Truncated }

// Rewarded returns who was rewarded and how much: info.reward_dict where there is one, and
// otherwise the reward.
func (r Result) Rewarded() Rewards {
	var info struct {
		RewardDict Rewards `json:"reward_dict"`
	}
	if json.Unmarshal(r.Info, &info) == nil && len(info.RewardDict) > 0 {
		return info.RewardDict
	}
	return r.Reward
}

// Rewards is agent to reward. In JSON a number is that of Default.
type Rewards map[string]float64

// UnmarshalJSON reads a number, or agents with their numbers; null is no reward.
func (r *Rewards) UnmarshalJSON(b []byte) error {
	*r = nil
	b = bytes.TrimSpace(b)
	if len(b) == 0 || string(b) == "null" {
		return nil
	}
	if b[0] != '{' {
		var x float64
		if err := json.Unmarshal(b, &x); err != nil {
			return fmt.Errorf("reward: want a number, or agents with their numbers: %w", err)
		}
		*r = Rewards{Default: x}
		return nil
	}
	var m map[string]float64
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("reward: want agents with their numbers: %w", err)
	}
	*r = m
	return nil
}

// MarshalJSON writes a number where only Default was rewarded. What is no number in JSON
// is an error.
func (r Rewards) MarshalJSON() ([]byte, error) {
	for agent, x := range r {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("reward of %.40q: %v is no number", agent, x)
		}
	}
	if x, only := r[Default]; only && len(r) == 1 {
		return json.Marshal(x)
	}
	if len(r) == 0 {
		return []byte("0"), nil
	}
	return json.Marshal(map[string]float64(r))
}

// Action is agent to what it does. In JSON a text is what Default does.
type Action map[string]string

// UnmarshalJSON reads a text, or agents with their texts.
func (a *Action) UnmarshalJSON(b []byte) error {
	*a = nil
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return fmt.Errorf("action: %w", err)
		}
		*a = Action{Default: s}
		return nil
	}
	var m map[string]string
	if err := json.Unmarshal(b, &m); err != nil || m == nil {
		return errors.New("action: want a text, or agents with their texts")
	}
	*a = m
	return nil
}

// MarshalJSON writes a text where only Default acts.
func (a Action) MarshalJSON() ([]byte, error) {
	if s, only := a[Default]; only && len(a) == 1 {
		return json.Marshal(s)
	}
	return json.Marshal(map[string]string(a))
}

// Prompt is what an environment asks: agent to the messages it is to answer. None: the
// episode has come to its end.
type Prompt map[string][]llm.Message

// Ask makes the prompt of an environment with one agent.
func Ask(messages ...llm.Message) Prompt { return Prompt{Default: messages} }

// UnmarshalJSON reads any of the forms: a list of messages, {"messages": list}, and agents
// with either. An agent that is given no messages is not asked.
func (p *Prompt) UnmarshalJSON(b []byte) error {
	*p = Prompt{}
	if ms, err := messages(b); err == nil {
		p.add(Default, ms)
		return nil
	} else if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return fmt.Errorf("prompt: %w", err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	for agent, raw := range m {
		ms, err := messages(raw)
		if err != nil {
			return fmt.Errorf("prompt of %.40q: %w", agent, err)
		}
		p.add(agent, ms)
	}
	return nil
}

func (p Prompt) add(agent string, ms []llm.Message) {
	if len(ms) > 0 {
		p[agent] = ms
	}
}

// MarshalJSON writes a list where only Default is asked, and an empty one for nobody.
func (p Prompt) MarshalJSON() ([]byte, error) {
	if len(p) == 0 {
		return []byte("[]"), nil
	}
	if ms, only := p[Default]; only && len(p) == 1 {
		return json.Marshal(ms)
	}
	return json.Marshal(map[string][]llm.Message(p))
}

// messages reads a list of messages, or an object that has one under messages.
func messages(b []byte) (ms []llm.Message, err error) {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || string(b) == "null" || string(b) == "{}":
		return nil, nil
	case b[0] == '[':
		err = json.Unmarshal(b, &ms)
		return ms, err
	case b[0] != '{':
		return nil, errors.New("want a list of messages")
	}
	var in struct {
		Messages *json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(b, &in); err != nil || in.Messages == nil {
		return nil, errors.New(`want a list of messages, or {"messages": list}`)
	}
	err = json.Unmarshal(*in.Messages, &ms)
	return ms, err
}
