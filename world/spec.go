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
	// Lineup is seat to the name of an agent of the run.
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
}

// Plan decides which episodes a run plays. It is a pure fold over outcomes: it is made
// anew for every run and resume, and must ask for the same each time it sees the same.
type Plan interface {
	// Next returns the episodes of the next stage, given those of the stage before, in
	// order. It is first called with none. No episodes: the run is complete.
	Next(last []Played) []Spec
}

// Kind is a family of worlds.
type Kind struct {
	Name string
	// Version changes when an episode recorded before would be played on differently.
	Version int
	Doc     string // one line

	// Params returns a pointer to new params with their defaults, for a plan file to be
	// decoded into.
	Params func() any
	// Seats checks params and lists the seats they make.
	Seats func(params any) ([]string, error)
	// World makes the world of one episode.
	World func(params any, lineup Lineup) (World, error)
	// Bots are agents without a model, by name.
	Bots map[string]Bot
	// External means that an unfinished episode cannot be played on, since something
	// outside has forgotten it: it starts again as a new attempt.
	External bool
	// Example is a plan file with every param and a comment on it.
	Example string
}

// Bot is an agent without a model: a pure function of the call.
type Bot func(c Call) Reply
