package rules

import "encoding/json"

// Params are the params of a rollout in a plan file.
type Params struct {
	Env          string          `json:"env" doc:"The environment's name: one that the servers have or, without servers, one that comes with parley."`
	Servers      []string        `json:"servers" doc:"Addresses of environment servers, such as http://127.0.0.1:36663. None: an environment that comes with parley, in this process."`
	Protocol     string          `json:"protocol" doc:"What the servers speak: v1 is the protocol of docs/how-to/environments.md, openenv that of OpenEnv, over HTTP or, at ws:// addresses, over WebSockets." oneof:"v1,openenv"`
	EnvParams    json.RawMessage `json:"env_params" doc:"What the environment is made with: an object of its own keys."`
	Seats        []string        `json:"seats" doc:"The agents of the environment, by the names it calls them. One agent may have any name."`
	MaxSteps     int             `json:"max_steps" doc:"After how many steps an episode is cut off: 1 to 100000."`
	MessageCut   int             `json:"message_cut" doc:"How much of a conversation agents are shown: the leading system message and the last 2n-1 others. 0 or below: all of it."`
	Seed         *int64          `json:"seed,omitempty" doc:"The seed that environments are reset with. Left out: drawn, the same for all episodes of a group."`
	Group        int             `json:"group" doc:"How many episodes are played of each task, for group-relative training: 0 to 10000. 0: env_num of the environments file, or 1."`
	Retries      int             `json:"retries" doc:"How often an episode begins again from a reset when its environment was lost: 0 to 100."`
	Tokens       bool            `json:"tokens" doc:"Whether servers that can (vLLM, SGLang) are asked for token ids and log probabilities."`
	Environments string          `json:"environments" doc:"A file that lists environments with their datasets, in place of env and env_params."`
	Tasks        string          `json:"tasks" doc:"What the environments file said, a task a line; filled in when the plan is read."`
	Task         *Task           `json:"task,omitempty" doc:"Which of the tasks an episode plays; filled in for each episode."`
	Experience   Experience      `json:"experience" doc:"What agents that are trained are told of earlier episodes."`
	OpenEnv      OpenEnv         `json:"openenv" doc:"How observations become prompts and answers become actions, where protocol is openenv."`
	Pool         Pool            `json:"pool" doc:"How environments are held."`
}

// OpenEnv says how an OpenEnv environment, with its own actions and observations, becomes a conversation.
type OpenEnv struct {
	System      string `json:"system" doc:"A system message to begin with. Empty: none."`
	Action      string `json:"action" doc:"The field of an action that an answer is put into. Empty: an answer is itself the action's JSON."`
	Observation string `json:"observation" doc:"The field of an observation that is shown. Empty: all of it, as JSON."`
}

// Pool says how environments are held. It changes the speed of a run, never its results.
type Pool struct {
	PerServer int     `json:"per_server" doc:"The most environments on one server at once: 1 to 100000."`
	Startup   int     `json:"startup" doc:"The most environments being made at once: 1 to 10000."`
	Warm      int     `json:"warm" doc:"How many environments are made ahead of need, for each set of env_params: 0 to 10000."`
	Timeout   float64 `json:"timeout" doc:"Seconds that a request to a server may take."`
	Patience  float64 `json:"patience" doc:"Seconds to wait for a server when none can be reached; then the run stops, to be resumed."`
	Jitter    float64 `json:"jitter" doc:"The most seconds that the making of the first environments is put off, at random, so that they do not come all at once."`
}

// Protocols.
const (
	V1              = "v1"
	ProtocolOpenEnv = "openenv"
)

// Defaults returns the params of an environment that comes with parley.
func (Definition) Defaults() *Params {
	return &Params{
		Env: "arithmetic", Servers: []string{}, Protocol: V1, EnvParams: json.RawMessage("{}"), Seats: []string{"agent"},
		MaxSteps: 1000, MessageCut: -1, Retries: 2, OpenEnv: OpenEnv{Action: "message"},
		Experience: Experience{Pick: PickBest, Count: 1, Template: "What earlier attempts taught:\n\n{lessons}"},
		Pool:       Pool{PerServer: 256, Startup: 16, Timeout: 300, Patience: 120},
	}
}
