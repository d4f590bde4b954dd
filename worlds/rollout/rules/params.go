package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/world"
)

// Params are the params of a rollout in a plan file.
type Params struct {
	Env          string          `json:"env" doc:"Name of the environment: on the servers or, without servers, a built-in one; or a class in Python beside the plan, such as wordle.py:Wordle."`
	Servers      []string        `json:"servers" doc:"Addresses of environment servers, such as http://127.0.0.1:36663. Empty: a built-in environment, in this process."`
	Protocol     string          `json:"protocol" doc:"Protocol of the servers: v1 is described in docs/how-to/train.md; openenv is that of OpenEnv, over HTTP or, at ws:// addresses, over WebSockets." oneof:"v1,openenv"`
	EnvParams    json.RawMessage `json:"env_params" doc:"Parameters of the environment, as an object. Each environment has its own keys."`
	Seats        []string        `json:"seats" doc:"Names of the agents in the environment. A single agent may have any name."`
	MaxSteps     int             `json:"max_steps" doc:"Maximum number of steps of an episode." range:"1..100000"`
	MessageCut   int             `json:"message_cut" doc:"Shortens prompts to the leading system message and the last 2n-1 other messages. 0 or below: prompts are complete."`
	Seed         *int64          `json:"seed,omitempty" doc:"Seed for the reset of environments. Default: a random seed for each group."`
	Group        int             `json:"group" doc:"Number of episodes of each task, for group-relative training. 0: env_num of the environments file, or 1." range:"0..10000"`
	Retries      int             `json:"retries" doc:"Maximum number of times that an episode begins again from a reset after its environment was lost." range:"0..100"`
	MaxStaleness int             `json:"max_staleness" doc:"Maximum number of versions between the first and the last weights that answer in an episode, if the server reports versions. -1: any number." range:"-1..1000000"`
	Stale        string          `json:"stale" doc:"What happens to an episode over max_staleness: drop fails it, restart begins it again from a reset, which counts as one of its retries." oneof:"drop,restart"`
	Tokens       bool            `json:"tokens" doc:"Ask for token ids and log probabilities, where the server supports it (vLLM, SGLang)."`
	Environments string          `json:"environments" doc:"File that lists environments with their datasets, instead of env and env_params."`
	Tasks        string          `json:"tasks" doc:"Tasks of the environments file, one on a line; set when the plan is read."`
	Task         *Task           `json:"task,omitempty" doc:"Task of the episode; set for each episode."`
	Refill       Refill          `json:"refill" doc:"Plays groups until enough of them have rewards that differ, and chooses tasks by how often they were passed."`
	Tools        Tools           `json:"tools" doc:"Tools for agents that the environment does not have."`
	Judge        JudgeParams     `json:"judge" doc:"Models that give a part of the rewards, after the last step. Without questions: none."`
	Judgement    *Group          `json:"judgement,omitempty" doc:"Group that the episode judges; set for each judgement."`
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
	PerServer int            `json:"per_server" doc:"Maximum number of environments on one server, or in one Python process, at a time. 0: found by trying, from 256 up." range:"0..100000"`
	Startup   int            `json:"startup" doc:"Maximum number of environments that start at the same time. 0: found by trying, from 16 up." range:"0..10000"`
	Warm      int            `json:"warm" doc:"Number of spare environments for each set of env_params." range:"0..10000"`
	Timeout   world.Duration `json:"timeout" doc:"How long a request to a server may take." range:"1ms..24h"`
	Patience  world.Duration `json:"patience" doc:"How long to wait when no server can be reached. Then the run stops; you can resume it." range:"1s..24h"`
	Jitter    world.Duration `json:"jitter" doc:"Maximum random delay before each of the first environments starts, to spread the load." range:"0s..1h"`
}

// Protocols.
const (
	ProtocolV1      = "v1"
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
		Env: "arithmetic", Servers: []string{}, Protocol: ProtocolV1, EnvParams: json.RawMessage("{}"), Seats: []string{"agent"},
		MaxSteps: 1000, MessageCut: -1, Retries: 2, MaxStaleness: -1, Stale: StaleDrop, OpenEnv: OpenEnv{Action: "message"},
		Refill: refillDefaults(), Judge: judgeDefaults(),
		Pool: Pool{Timeout: 5 * world.Minute, Patience: 2 * world.Minute},
	}
}

var seatName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}$`)

// check checks all params and names those that are wrong.
func (p *Params) check() error {
	c := &world.ParamErrors{Kind: "rollout"}
	p.checkEnv(c)
	p.checkServers(c)
	p.checkSeats(c)
	p.checkTools(c)
	c.IntRange("message_cut", max(0, p.MessageCut), 0, 100_000) // a negative one is 0
	p.Refill.check(c)
	p.Judge.check(c, p.Seats)
	return c.Err()
}

// paramErrorf returns an error about a param.
func paramErrorf(param, format string, args ...any) error {
	return fmt.Errorf("rollout: params.%s: %s", param, fmt.Sprintf(format, args...))
}

func (p *Params) checkEnv(c *world.ParamErrors) {
	if err := checkName(p.Env); err != nil {
		c.Addf("env", "%v", err)
	}
	if !IsObject(p.EnvParams) {
		c.Addf("env_params", "want an object of the environment's own keys")
	}
	if p.Protocol == ProtocolOpenEnv && len(p.Servers) == 0 {
		c.Addf("servers", "protocol openenv needs an address, such as ws://127.0.0.1:8000")
	}
}

func (p *Params) checkServers(c *world.ParamErrors) {
	schemes := []string{"http://", "https://"}
	if p.Protocol == ProtocolOpenEnv {
		schemes = append(schemes, "ws://", "wss://")
	}
	for i, s := range p.Servers {
		param := fmt.Sprintf("servers[%d]", i)
		switch {
		case IsCode(p.Env):
			c.Addf("servers", "%.80q runs in processes of this run: leave servers out", p.Env)
		case !slices.ContainsFunc(schemes, func(scheme string) bool { return strings.HasPrefix(s, scheme) && len(s) > len(scheme) }):
			c.Addf(param, "%.80q: want an address that begins with %s", s, strings.Join(schemes, ", "))
		case strings.ContainsAny(s, "@?# \t\n"):
			c.Addf(param, "want a plain address: a user, a key or a query would be kept in the run file")
		case slices.Contains(p.Servers[:i], s):
			c.Addf(param, "%s is listed twice", s)
		}
	}
}

func (p *Params) checkSeats(c *world.ParamErrors) {
	if len(p.Seats) == 0 || len(p.Seats) > 1000 {
		c.Addf("seats", "%d: want 1 to 1000", len(p.Seats))
		return
	}
	for i, seat := range p.Seats {
		switch at := fmt.Sprintf("seats[%d]", i); {
		case !seatName.MatchString(seat):
			c.Addf(at, "%.40q: want a name of letters, digits and _ . : -", seat)
		case slices.Contains(p.Seats[:i], seat):
			c.Addf(at, "%s is listed twice", seat)
		}
	}
}

var (
	// The name becomes a part of an address.
	envName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
	toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	codeName = regexp.MustCompile(`^[^:\x00-\x1f]{1,200}\.py:[A-Za-z_][A-Za-z0-9_]{0,99}$`)
)

// checkName returns an error unless a text can be the name of an environment.
func checkName(env string) error {
	if envName.MatchString(env) || IsCode(env) {
		return nil
	}
	return fmt.Errorf("%.40q: want a name of letters, digits and _ . -, or a class in Python, such as wordle.py:Wordle", env)
}

// IsCode reports whether an environment is a class in Python, such as wordle.py:Wordle.
func IsCode(env string) bool { return codeName.MatchString(env) }

// IsObject reports whether a text is a JSON object.
func IsObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return json.Valid(raw) && raw[0] == '{'
}
