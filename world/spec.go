package world

import (
	"encoding/json"

	"parley/llm"
)

// Agent is what sits in a seat: a model with its parameters, or a bot.
type Agent struct {
	Name string `json:"name"`
	// Model is written provider/model. Empty for a bot.
	Model string `json:"model,omitempty"`
	// Bot is the name of one of the kind's bots. Empty for a model.
	Bot string `json:"bot,omitempty"`
	// System is put before everything the world says.
	System string `json:"system,omitempty"`

	Temperature *float64   `json:"temperature,omitempty"`
	TopP        *float64   `json:"top_p,omitempty"`
	MaxTokens   int        `json:"max_tokens,omitempty"`
	Effort      llm.Effort `json:"effort,omitempty"`
	Seed        *int64     `json:"seed,omitempty"`
	Stop        []string   `json:"stop,omitempty"`
	Fallbacks   []string   `json:"fallbacks,omitempty"`
	// Trainable marks the agent whose turns are wanted as training data.
	Trainable bool `json:"trainable,omitempty"`
	// Tags are names and values of the user's choice to group scores by. They do not change how
	// the agent plays.
	Tags map[string]string `json:"tags,omitempty"`
}

// Request completes what a world asks with what the agent brings. What the world set
// stays as it is.
func (a Agent) Request(ask llm.Request) llm.Request {
	ask.Model = a.Model
	if a.System != "" {
		ms := make([]llm.Message, 0, len(ask.Messages)+1)
		ask.Messages = append(append(ms, llm.System(a.System)), ask.Messages...)
		if ask.Prefix > 0 {
			ask.Prefix++
		}
	}
	if ask.Temperature == nil {
		ask.Temperature = a.Temperature
	}
	if ask.TopP == nil {
		ask.TopP = a.TopP
	}
	if ask.MaxTokens == 0 {
		ask.MaxTokens = a.MaxTokens
	}
	if ask.Effort == "" {
		ask.Effort = a.Effort
	}
	if ask.Seed == nil {
		ask.Seed = a.Seed
	}
	if ask.Stop == nil {
		ask.Stop = a.Stop
	}
	ask.Fallbacks = a.Fallbacks
	return ask
}

// Lineup says who sits where: seat to agent.
type Lineup map[string]Agent

// Spec is an episode before it is played. Its place in the run is its name.
type Spec struct {
	Kind string `json:"kind"`
	// Params are the kind's, resolved: nothing is left to a default.
	Params json.RawMessage `json:"params,omitempty"`
	// Lineup is seat to the name of an agent of the run. Specs of a plan share it: it is not
	// written to.
	Lineup map[string]string `json:"lineup"`
	// Deal is what chance depends on: episodes with the same deal draw the same.
	Deal int `json:"deal"`
	// Cell names what the episode is a repetition of, in a matrix. Empty: the whole run.
	Cell string `json:"cell,omitempty"`
}

// Played is an episode that ended.
type Played struct {
	Episode int
	Spec    Spec
	Outcome Outcome // its Data is a json.RawMessage
	// Unit says which other episodes it depends on.
	Unit Unit
	// Took is what it took, for an Exhibitor. A plan is not told: it must not depend on it.
	Took Took
	// Past is how many turns of its first strand were copied from an episode of another run, and
	// are the same in all episodes of this one: a fork. For an Exhibitor, as Took is.
	Past int
}

// Took is what the last attempt at an episode took. Times are in seconds. Those of calls that
// were made at once add up.
type Took struct {
	Attempt       int     // from 0
	Input, Output int     // tokens
	Cost          float64 // in dollars
	// Began and Ended are since the run was first played, without the time between sittings.
	Began, Ended float64
	// Asked is how long models took to answer, and Acted how long acts took. Queued and
	// Waited are how long asks and acts waited before.
	Asked, Queued, Acted, Waited float64
}

// Plan decides which episodes a run plays. It is a pure fold over outcomes: it is made
// anew for every run and resume, and must ask for the same each time it sees the same.
// One that can fail, such as Until, is also a FailingPlan.
type Plan interface {
	// Next returns the episodes of the next stage, given those of the stage before, in
	// order. It is first called with none. No episodes: the run is complete.
	Next(last []Played) Specs
}

// FailingPlan is a plan that can fail.
type FailingPlan interface {
	// Err is asked when Next has returned no episodes. It returns nil if the run is complete, or
	// else why the plan cannot go on.
	Err() error
}

// Part is some of what a plan may ask for: a generation, a final test.
type Part struct {
	Name string // for people; parts with the same name are told together
	// Like are episodes such as the part has, at least one: what they take is about what
	// each of the part does.
	Like []Spec
	// Low and High are how many episodes the part has at least and at most, and Stages is in
	// how many stages, one after the other, at most.
	Low, High, Stages int
}

// Status tells how a run goes while it is played, and what came of it when it ends. It is
// used by one goroutine at a time.
type Status interface {
	// Add takes in an episode that ended: those of a stage in any order. Data that is not
	// what it should be is passed over.
	Add(p Played)
	// Line is what to say now, in parts of which the first matter most; nothing as long as
	// there is nothing to say. It is called several times a second.
	Line() []string
}

// Bot is an agent without a model: a pure function of the call.
type Bot func(c Call) Reply
