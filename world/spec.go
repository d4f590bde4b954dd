package world

import (
	"context"
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
// One that can come to an end that is none, such as Until, also has a method Err() error: it
// says why when Next returns no episodes.
type Plan interface {
	// Next returns the episodes of the next stage, given those of the stage before, in
	// order. It is first called with none. No episodes: the run is complete.
	Next(last []Played) Specs
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

// Kind is a family of worlds.
type Kind struct {
	Name string
	// Version changes when an episode recorded before would be played on differently.
	Version int
	Doc     string // one line

	// Params returns a pointer to new params with their defaults, for a plan file to be
	// decoded into.
	Params func() any
	// Load puts what the files that params name say into params, so that a run is complete
	// without them. It is called when a plan file is read, and never for a recorded plan,
	// whose params hold it all. advice is what to write differently in the files, though
	// it is understood. Nil: params name no files.
	Load func(params any, files Files) (advice []string, err error)
	// Seats checks params and lists the seats they make.
	Seats func(params any) ([]string, error)
	// Models returns the models that the files ask for, seat to provider/model: they play
	// in seats that a plan leaves empty. Nil: none.
	Models func(params any) map[string]string
	// Plan decides which episodes are played, stage by stage, where a kind does so itself: an
	// evolution breeds what it tries next. It is called for each episode that a plan file
	// asks for, with its params, its spec, and the run's seed; the plans it returns are played
	// beside each other. Specs it asks for need not be like cell, but are to be labelled as
	// of its Cell. Nil: a spec is one episode.
	Plan func(params any, cell Spec, seed uint64) (Plan, error)
	// Alike says whether Plan makes the same of every deal, but for the deals of its specs: it is
	// then asked once for each cell. Nil: it does not.
	Alike func(params any) bool
	// Forecast says what such a plan may come to before anything of it is played. It is
	// called with the same. Nil: all that can be foreseen is the first stage.
	Forecast func(params any, cell Spec, seed uint64) ([]Part, error)
	// World makes the world of one episode.
	World func(params any, lineup Lineup) (World, error)
	// Scores declares what outcomes may score. Nil: it is not known before they do.
	Scores func(params any) []Measure
	// Dealt names what params put before the seats of an episode, beside chance: a problem, a
	// set of them. Episodes are compared pair by pair only where it is the same. whole: it is
	// all there is, so that the seed and the deal do not count. Nil, or "": they are all.
	Dealt func(params any) (what string, whole bool)
	// Bots are agents without a model, by name.
	Bots map[string]Bot
	// Status begins to tell how a run with these params goes. Nil: how many episodes ended
	// is all there is to tell.
	Status func(params any) Status
	// Exhibitor begins the kind's own part of a report. Nil: it has none.
	Exhibitor func() Exhibitor
	// Replay makes what there is to look at of one episode out of what its world noted, in
	// the order of a transcript. Nil: nothing but the transcript.
	Replay func(p Played, notes []Note) []Exhibit
	// Files makes files to read of one episode out of the same, by name: Markdown texts,
	// and tables that end in .csv and have a line of column names. Nil: none.
	Files func(p Played, notes []Note) map[string]string
	// Story makes the same as Replay, where that takes more than notes: all that was noted,
	// asked and done. Nil: Replay is used.
	Story func(p Played, told []Told) []Exhibit
	// Mark finds what a note says about the words of a reply of its seat: the words, and in short
	// what they do, as "gives its secret away". Transcripts show it beside them. "": nothing.
	// Nil: notes say nothing of the sort.
	Mark func(n Note) (words, mark string)
	// Colours are those of seats that have one by custom: light and dark, as #233f92. Charts and
	// transcripts use them. Nil: none has.
	Colours map[string][2]string
	// External means that an unfinished episode cannot be played on, since something
	// outside has forgotten it: it starts again as a new attempt.
	External bool
	// Actor connects to what carries out acts. Nil: there is nothing outside.
	Actor func(params any, run string) (Actor, error)
	// Local says whether all of the outside is within this process. Nil: it is not.
	Local func(params any) bool
	// Probe asks every server that params name whether it is there. Nil: they name none.
	Probe func(ctx context.Context, params any) []Presence
	// Outside names params that say where and how fast episodes are played, and never change
	// what they come to: they may be others when a run is played on. Nil: none are.
	Outside []string
	// Example is a plan file with every param and a comment on it.
	Example string
	// ExampleFiles are the files that Example names, by name: they are written beside it.
	ExampleFiles map[string]string

	definition any // what Define was given
}

// Essence is params without those that are Outside: what makes two plans the same.
func (k Kind) Essence(params json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if len(k.Outside) == 0 || json.Unmarshal(params, &all) != nil {
		return params
	}
	for _, name := range k.Outside {
		delete(all, name)
	}
	b, err := json.Marshal(all)
	if err != nil {
		return params
	}
	return b
}

// Bot is an agent without a model: a pure function of the call.
type Bot func(c Call) Reply
