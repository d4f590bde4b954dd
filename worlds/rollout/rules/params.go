package rules

import (
	"encoding/json"
)

// Params are the params of a rollout in a plan file.
type Params struct {
	Env          string          `json:"env" doc:"Name of the environment: on the servers or, without servers, a built-in one; or a class in Python beside the plan, such as wordle.py:Wordle."`
	Servers      []string        `json:"servers" doc:"Addresses of environment servers, such as http://127.0.0.1:36663. Empty: a built-in environment, in this process."`
	Protocol     string          `json:"protocol" doc:"Protocol of the servers: v1 is described in docs/how-to/environments.md; openenv is that of OpenEnv, over HTTP or, at ws:// addresses, over WebSockets." oneof:"v1,openenv"`
	EnvParams    json.RawMessage `json:"env_params" doc:"Parameters of the environment, as an object. Each environment has its own keys."`
	Seats        []string        `json:"seats" doc:"Names of the agents in the environment. A single agent may have any name."`
	MaxSteps     int             `json:"max_steps" doc:"Maximum number of steps of an episode: 1 to 100000."`
	MessageCut   int             `json:"message_cut" doc:"Shortens prompts to the leading system message and the last 2n-1 other messages. 0 or below: prompts are complete."`
	Seed         *int64          `json:"seed,omitempty" doc:"Seed for the reset of environments. Default: a random seed for each group."`
	Group        int             `json:"group" doc:"Number of episodes of each task, for group-relative training: 0 to 10000. 0: env_num of the environments file, or 1."`
	Retries      int             `json:"retries" doc:"Maximum number of times that an episode begins again from a reset after its environment was lost: 0 to 100."`
	MaxStaleness int             `json:"max_staleness" doc:"Maximum number of versions between the first and the last weights that answer in an episode, if the server reports versions. -1: any number."`
	Stale        string          `json:"stale" doc:"What happens to an episode over max_staleness: drop fails it, restart begins it again from a reset, which counts as one of its retries." oneof:"drop,restart"`
	Tokens       bool            `json:"tokens" doc:"Ask for token ids and log probabilities, where the server supports it (vLLM, SGLang)."`
	Environments string          `json:"environments" doc:"File that lists environments with their datasets, instead of env and env_params."`
	Tasks        string          `json:"tasks" doc:"Tasks of the environments file, one on a line; set when the plan is read."`
	Task         *Task           `json:"task,omitempty" doc:"Task of the episode; set for each episode."`
	Refill       Refill          `json:"refill" doc:"Plays groups until enough of them have rewards that differ, and chooses tasks by how often they were passed."`
	Tools        Tools           `json:"tools" doc:"Tools for agents that the environment does not have."`
	Judge        JudgeParams     `json:"judge" doc:"A model that gives a part of the rewards, after the last step."`
	Judgement    *Group          `json:"judgement,omitempty" doc:"Group that the episode judges; set for each judgement."`
	Experience   Experience      `json:"experience" doc:"Lessons from earlier episodes, for the agents that are trained."`
	OpenEnv      OpenEnv         `json:"openenv" doc:"How observations become prompts and answers become actions, with protocol openenv."`
	Pool         Pool            `json:"pool" doc:"Limits of the pool of environments."`
}

// OpenEnv says how the actions and observations of an OpenEnv environment become a conversation.
type OpenEnv struct {
	System      string `json:"system" doc:"System message at the start. Empty: no system message."`
	Action      string `json:"action" doc:"Field of the action that gets the answer. Empty: the answer is the JSON of the action."`
	Observation string `json:"observation" doc:"Field of the observation that agents see. Empty: the whole observation, as JSON."`
	Image       string `json:"image" doc:"Field of the observation that is a picture: base64, an address, or rows of pixels. Empty: none."`
}

// Pool limits the pool of environments. It changes the speed of a run, never its results.
type Pool struct {
	PerServer int     `json:"per_server" doc:"Maximum number of environments on one server, or in one Python process, at a time: 1 to 100000. 0: found by trying, from 256 up."`
	Startup   int     `json:"startup" doc:"Maximum number of environments that start at the same time: 1 to 10000. 0: found by trying, from 16 up."`
	Warm      int     `json:"warm" doc:"Number of spare environments for each set of env_params: 0 to 10000."`
	Timeout   float64 `json:"timeout" doc:"Maximum seconds for a request to a server."`
	Patience  float64 `json:"patience" doc:"Seconds to wait when no server can be reached. Then the run stops; you can resume it."`
	Jitter    float64 `json:"jitter" doc:"Maximum random delay, in seconds, before each of the first environments starts, to spread the load."`
}

// Protocols.
const (
	V1              = "v1"
	ProtocolOpenEnv = "openenv"
)

// What happens to stale episodes.
const (
	StaleDrop    = "drop"
	StaleRestart = "restart"
)

// Defaults returns the params of a built-in environment.
func (Definition) Defaults() *Params {
	return &Params{
		Env: "arithmetic", Servers: []string{}, Protocol: V1, EnvParams: json.RawMessage("{}"), Seats: []string{"agent"},
		MaxSteps: 1000, MessageCut: -1, Retries: 2, MaxStaleness: -1, Stale: StaleDrop, OpenEnv: OpenEnv{Action: "message"},
		Experience: Experience{Pick: PickBest, Count: 1, Template: "What earlier attempts taught:\n\n{lessons}"},
		Refill:     defaults(), Judge: judgeDefaults(),
		Pool: Pool{Timeout: 300, Patience: 120},
	}
}
