// Part protocol defines the data that a rollout and its environment exchange: requests (Opening, Stepping),
// results (Opened, Stepped, Result), and the JSON forms of prompts with their tools, actions and rewards of one
// agent or of many.
//
// It promises that everything reads back as it was written; that all forms that environments use are accepted;
// and that nothing an environment sends makes it panic.
//
// It is not for performing acts: it opens nothing and does not wait.

package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"parley/llm"
)

// Default is the agent of an environment with a single agent.
const Default = "default"

// The acts of a rollout.
const (
	Open  = "open"  // have an environment made and reset; Opening to Opened
	Step  = "step"  // do something in it; Stepping to Stepped
	Close = "close" // release it before its end; takes Closing, returns nothing

	List = "list" // list the tools of a server that is not the environment; Listing to Listed
	Call = "call" // call some of them; Calling to Called
)

// Listing asks for the tools of a server.
type Listing struct {
	Try int `json:"try,omitempty"`
}

// Listed is the tools of a server.
type Listed struct {
	Tools ProtocolTools `json:"tools"`
}

// Calling calls tools, one after the other.
type Calling struct {
	Try   int            `json:"try,omitempty"`
	Seat  string         `json:"seat"`
	Calls []llm.ToolCall `json:"calls"`
}

// Called has a message of a tool for each call.
type Called struct {
	Results []llm.Message `json:"results"`
}

// Opening asks for an environment.
type Opening struct {
	Env    string          `json:"env"`
	Params json.RawMessage `json:"params,omitempty"`
	Seed   int64           `json:"seed"`
	// Try counts how often the episode has started over.
	Try int `json:"try,omitempty"`
}

// Opened is the result of a reset with the first prompt.
type Opened struct {
	Info   json.RawMessage `json:"info,omitempty"`
	Prompt Delta           `json:"prompt,omitempty"`
	Fault  *CodeError      `json:"fault,omitempty"`
}

// CodeError is an error in the code of an environment: it fails the episode.
type CodeError struct {
	Text  string `json:"text"` // what happened in which line
	Trace string `json:"trace,omitempty"`
}

// Error returns the text.
func (e *CodeError) Error() string { return e.Text }

// Stepping is an action.
type Stepping struct {
	Try    int    `json:"try,omitempty"`
	Step   int    `json:"step"` // from 1
	Action Action `json:"action"`
	// Last means that this is the last step.
	Last bool `json:"last,omitempty"`
}

// ProtocolStepped is the result of a step with the next prompt, which is empty at the end of the episode.
type ProtocolStepped struct {
	Reward     Rewards         `json:"reward,omitempty"`
	Terminated bool            `json:"terminated,omitempty"`
	Truncated  bool            `json:"truncated,omitempty"`
	Info       json.RawMessage `json:"info,omitempty"`
	Prompt     Delta           `json:"prompt,omitempty"`
	Fault      *CodeError      `json:"fault,omitempty"`
	// Rejected is why the environment did not accept the action, if it did not.
	Rejected string `json:"rejected,omitempty"`
}

// Closing closes an environment.
type Closing struct {
	Try int `json:"try,omitempty"`
}

// Result is the result of a step as environments send it.
type Result struct {
	Observation json.RawMessage `json:"observation"`
	Reward      Rewards         `json:"reward"`
	Terminated  bool            `json:"terminated"`
	Truncated   bool            `json:"truncated"`
	Info        json.RawMessage `json:"info"`
	Rejected    string          `json:"-"` // why the environment did not accept the action
}

// Done reports whether the step ended the episode.
func (r Result) Done() bool { return r.Terminated || r.Truncated }

// Rewarded returns the rewards by agent: info.reward_dict if there is one, otherwise the reward.
func (r Result) Rewarded() Rewards {
	var info struct {
		RewardDict Rewards `json:"reward_dict"`
	}
	if json.Unmarshal(r.Info, &info) == nil && len(info.RewardDict) > 0 {
		return info.RewardDict
	}
	return r.Reward
}

// Rewards maps agents to rewards. In JSON a number is the reward of Default.
type Rewards map[string]float64

// UnmarshalJSON reads a number, or agents with their numbers; null is no reward. An object with two members for it, such
// as reward and Reward, sets it twice: which one counts must not depend on their order.
func (r *Rewards) UnmarshalJSON(b []byte) error {
	if *r != nil {
		return errors.New("reward is given twice, or in two spellings: want it once")
	}
	b = bytes.TrimSpace(b)
	if len(b) == 0 || string(b) == "null" {
		return nil
	}
	if b[0] != '{' {
		var x float64
		if json.Unmarshal(b, &x) != nil {
			return fmt.Errorf("reward is %.40s: want a number, or agents with their numbers", string(b))
		}
		*r = Rewards{Default: x}
		return nil
	}
	var m map[string]float64
	if json.Unmarshal(b, &m) != nil {
		return fmt.Errorf("reward is %.40s: want agents with their numbers", string(b))
	}
	*r = m
	return nil
}

// MarshalJSON writes a number if only Default has a reward. NaN and infinities are errors.
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
