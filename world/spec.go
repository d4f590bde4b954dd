package world

import (
	"encoding/json"
	"maps"
	"math"
	"strings"
	"time"

	"parley/llm"
)

const (
	// Human is the model of agents that are people.
	Human = "human"
	// ProgramProvider is the provider in the model of requests that programs answer: program/claude-code.
	ProgramProvider = "program"
	// MaxEpisodes is the largest number of episodes of a run.
	MaxEpisodes = math.MaxInt32
)

// cachedContent is the member of Gemini's requests that names a stored prompt.
const cachedContent = "cachedContent"

// Agent sits in a seat: a model with its parameters, a bot, a person, or a program.
type Agent struct {
	Name    string   `json:"name"`
	Model   string   `json:"model,omitempty" doc:"The model, written provider/model, or 'human' for a person: see docs/how-to/play-a-seat.md. An agent has a model, a bot or a program. The model of a program answers what the program asks." filled:"true"`
	Bot     string   `json:"bot,omitempty" doc:"One of the kind's bots: an agent without a model behind it." filled:"true"`
	Program *Program `json:"program,omitempty" doc:"A program that answers: the name of a preset, as claude-code, or a mapping with its command. It is started for each question. See docs/worlds/task.md." default:"none"`
	System  string   `json:"system,omitempty" doc:"A system prompt, put before all messages of the world." default:"none" aliases:"prompt,system_prompt,instructions"`

	Temperature   *float64   `json:"temperature,omitempty" doc:"The sampling temperature." default:"the provider's" aliases:"temp" range:"0..2"`
	TopP          *float64   `json:"top_p,omitempty" doc:"Nucleus sampling: the share of probability that is drawn from." default:"the provider's" range:"0..1"`
	MaxTokens     int        `json:"max_tokens,omitempty" doc:"The most tokens of an answer, reasoning included." default:"the world's, or the provider's" aliases:"max_output_tokens,max_completion_tokens" range:"1..2147483647"`
	Effort        llm.Effort `json:"effort,omitempty" doc:"How long a reasoning model may think." default:"the provider's" aliases:"reasoning_effort,reasoning,thinking"`
	Tier          string     `json:"tier,omitempty" doc:"The service tier, by the provider's own name: flex is cheaper and slower, priority more expensive and faster. See docs/how-to/providers.md." default:"the account's" aliases:"service_tier" filled:"true"`
	CachedContent string     `json:"cached_content,omitempty" doc:"A prompt that you stored at Gemini, by the name that Google gave it: cachedContents/ID. It is read before all messages, at the price of cached tokens. See docs/how-to/providers.md." default:"none" filled:"true"`

	Seed      *int64            `json:"seed,omitempty" doc:"A seed that is sent to providers that take one." default:"none"`
	Stop      []string          `json:"stop,omitempty" doc:"Texts at which an answer ends." default:"none" filled:"true"`
	Fallbacks []string          `json:"fallbacks,omitempty" doc:"Models to ask in turn if this one cannot answer." default:"none" filled:"true"`
	Trainable bool              `json:"trainable,omitempty" doc:"Whether the agent's turns are wanted as training data. If no agent is marked, all are. See 'train'." default:"false" aliases:"train"`
	Tokens    bool              `json:"tokens,omitempty" doc:"Whether to ask for token ids and log probabilities, to train on." default:"true if the plan has 'train', the agent is trained, and its server is known to return them"`
	Deadline  time.Duration     `json:"deadline,omitempty" doc:"How long a person may take to answer a question, for 'model: human'." default:"none: the run waits"`
	Fallback  string            `json:"fallback,omitempty" doc:"The agent whose model answers for a person after the deadline, for 'model: human'." default:"none: the call fails" filled:"true"`
	Tags      map[string]string `json:"tags,omitempty" doc:"Names and values of your choice to group scores by, as 'prompt: terse': see '--by' of report and compare. They do not change how the agent plays." default:"none" aliases:"tag,labels,factors" filled:"true" free:"TAG"`
}

// ModelName returns a model as readers see it.
func ModelName(model string) string {
	if model == Human {
		return "person"
	}
	return model
}

// AgentWith returns the name of an agent that is a copy of another one, with another model: see part.ModelTrier.
func AgentWith(agent, model string) string { return agent + "@" + model }

// Program is a program that answers questions. It is started for each question.
type Program struct {
	Preset  string            `json:"preset,omitempty" doc:"A program whose command, variables and files Parley knows." default:"none" filled:"true"`
	Command []string          `json:"command,omitempty" doc:"The program with its arguments, instead of the preset's. '{prompt}', '{model}', '{url}', '{key}', '{folder}' and '{home}' stand for what they say." default:"the preset's" filled:"true" nonempty:"true"`
	Env     map[string]string `json:"env,omitempty" doc:"Environment variables, besides PATH and those that name the server of the model. They may hold the placeholders of 'command'." default:"the preset's" free:"VARIABLE"`
	Files   map[string]string `json:"files,omitempty" doc:"Files in the program's HOME, by path, with the placeholders of 'command'." default:"the preset's" free:"PATH" filled:"true"`
	Input   string            `json:"input,omitempty" doc:"Where the program reads the question: on its standard input, in place of the argument '{prompt}', or in the file 'PROMPT.md' in its folder." default:"the preset's, or 'stdin'" oneof:"stdin,argument,file"`
	Format  string            `json:"format,omitempty" doc:"The wire format that the program speaks. Without it, the variables of all formats are set." default:"the preset's, or any" oneof:"openai,responses,anthropic,gemini"`
	Ignore  []string          `json:"ignore,omitempty" doc:"What differs by itself between two starts of the program, such as ids and times, as 'path:$.metadata' or 're:Chunk [0-9]+': see '--ignore' in docs/how-to/gateway.md. A resumed run ignores it where it looks for recorded answers." default:"the preset's" filled:"true"`
}

// Label returns the name of the preset, or that of the command without its folder.
func (p *Program) Label() string {
	name := p.Preset
	if len(p.Command) > 0 {
		name = p.Command[0]
		if i := strings.LastIndexAny(name, `/\`); i >= 0 {
			name = name[i+1:]
		}
	}
	return name
}

// Human reports whether the agent is a person.
func (a Agent) Human() bool { return a.Model == Human }

// Request completes a world's request with the agent's settings. It does not change what the world has set.
func (a Agent) Request(ask llm.Request) llm.Request {
	ask.Model = a.Model
	if a.Program != nil {
		ask.Model = ProgramProvider + "/" + a.Program.Label()
	}
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
	if ask.Tier == "" {
		ask.Tier = a.Tier
	}
	if ask.Seed == nil {
		ask.Seed = a.Seed
	}
	if ask.Stop == nil {
		ask.Stop = a.Stop
	}
	ask.Fallbacks = a.Fallbacks
	if a.Tokens && a.Program == nil {
		ask.TokenIDs, ask.Logprobs = true, true
	}
	if a.CachedContent != "" && ask.Extra[cachedContent] == nil {
		ask.Extra = a.withCached(ask.Extra)
	}
	return ask
}

// withCached returns a copy of a request's extra members, with the agent's cached content.
func (a Agent) withCached(extra map[string]json.RawMessage) map[string]json.RawMessage {
	name, err := json.Marshal(a.CachedContent)
	if err != nil { // a text always can be
		return extra
	}
	out := map[string]json.RawMessage{cachedContent: name}
	maps.Copy(out, extra)
	return out
}

// Lineup maps seats to agents.
type Lineup map[string]Agent

// Spec describes an episode to play. Its position in the run is its number.
type Spec struct {
	Kind string `json:"kind"`
	// Params are the kind's, with all defaults.
	Params json.RawMessage `json:"params,omitempty"`
	// Lineup maps seats to names of agents. Specs of a plan share it: do not modify it.
	Lineup map[string]string `json:"lineup"`
	// Deal determines chance: episodes with the same deal draw the same.
	Deal int `json:"deal"`
	// Cell names the cell of a matrix that the episode repeats. Empty: the whole run.
	Cell string `json:"cell,omitempty"`
	// Systems replace the system prompts of agents in this episode, by name. Specs share them: do not modify them.
	Systems map[string]string `json:"systems,omitempty"`
	// Remark is what a kind's plan notes about the episode for its report, if it plays episodes of another kind. It has no effect on play.
	Remark json.RawMessage `json:"remark,omitempty"`
}

// Played is an episode that ended.
type Played struct {
	Episode int
	Spec    Spec
	Outcome Outcome // its Data is a json.RawMessage
	// Unit says which other episodes it depends on.
	Unit Unit
	// Took is what it took, for an Exhibitor. Plans do not get it: they must not depend on it.
	Took Took
	// Past is how many turns of its first strand were copied from an episode of another run, and are the same in all
	// episodes of this run: a fork. It is for an Exhibitor, as Took is.
	Past int
}

// Took is what the last attempt at an episode took. Times are in seconds. Times of simultaneous calls add up.
type Took struct {
	Attempt       int     // from 0
	Input, Output int     // tokens
	Cost          float64 // in dollars
	// Began and Ended count from the first start of the run, without the time between its processes.
	Began, Ended float64
	// Asked is how long models took to answer, and Acted how long acts took. Queued and Waited are how long asks and
	// acts waited before that.
	Asked, Queued, Acted, Waited float64
}

// Stages decide which episodes a run plays, a stage at a time. They are a pure fold over outcomes: each run and resume makes
// new ones, and they must ask for the same episodes if they are given the same ones. See part.FailingStages for those that can fail.
type Stages interface {
	// Next returns the episodes of the next stage, given those of the stage before, in order. The first call has none.
	// If it returns none, the run is complete.
	Next(last []Played) Specs
}

// Part is a part of what a plan may ask for: a generation, a final test.
type Part struct {
	Name string // for people; parts with the same name are reported together
	// Like are examples of its episodes, at least one. Each episode of the part takes about as much as they do.
	Like []Spec
	// Times is how many times as much they take, where the examples are only a piece of one: examples are played, and a whole one may
	// make millions of calls. 0: they are whole.
	Times float64
	// Low and High bound the number of episodes. Stages is the largest number of stages, one after the other.
	Low, High, Stages int
}

// Status reports the progress of a run, and its result at the end. One goroutine at a time uses it.
type Status interface {
	// Add takes an episode that ended, in any order within a stage. It ignores malformed data.
	Add(p Played)
	// Line returns what to show now, the most important first, or nothing. It is called several times a second.
	Line() []string
}

// Bot is an agent without a model: a pure function of the call.
type Bot func(c Call) Reply
