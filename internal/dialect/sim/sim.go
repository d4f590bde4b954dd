// Package sim is the simulated provider: a Model that needs no key and no network,
// and the brain behind the HTTP server of package simhttp.
//
// What it says is a pure function of its seed and of what is asked: the messages,
// the model's name, the parameters, the schema, the sample number. Time, order of
// arrival and concurrency change nothing. A request with a JSON Schema gets a
// valid and varied answer to it, one with tools calls them now and then, any other
// gets plausible text. How long an answer takes and which fault befalls it follow
// from the same and from how often the request was seen, so that a retry can
// succeed. Only the numbers of cached tokens depend on what was asked before.
//
// Any name is a model. A Persona can give names a behaviour of their own.
//
// It is not for judging models: it knows nothing. MaxTokens and Stop cut its
// answers short but do not change them.
package sim

import (
	"fmt"
	"time"

	"parley/internal/dialect/sim/persona"
	"parley/internal/dialect/sim/prose"
	"parley/internal/dialect/sim/quota"
	"parley/llm"
	"parley/worlds/rollout/learner"
)

// Config is how the simulation behaves. The zero value answers at once, without
// limits and faults.
type Config struct {
	// Name is what answers give as their provider. Default: the first half of the
	// request's model, or sim
	Name string
	// Seed makes another world of the same questions. Default: 0
	Seed uint64

	// Latency is how long a whole answer takes. Default: none
	Latency Delay
	// FirstToken is when a streamed answer begins. Default: after a third of Latency,
	// or after Latency where TokensPerSecond is set
	FirstToken Delay
	// TokensPerSecond is how fast an answer comes once it has begun; it then takes as
	// long as that needs, streamed or not. Default: 0, what Latency leaves
	TokensPerSecond float64

	// MinTokens and MaxTokens bound the length of plain answers. Default: 8 and 96
	MinTokens, MaxTokens int

	// Style is whose limits and prompt cache are imitated: quota.OpenAI or
	// quota.Anthropic. Default: quota.OpenAI
	Style quota.Style
	// Limits are what the account allows. Default: no limits
	Limits quota.Limits

	// Faults are the probabilities of things going wrong. Default: none
	Faults Faults
	// StallFor is how long a stalled answer hangs before the connection is dropped.
	// Default: 10 minutes
	StallFor time.Duration

	// Personas are asked in order before anything is made up. Default: Echo, and those that
	// play worlds and environments
	Personas []Persona
}

// Persona is a behaviour: it answers the requests it recognises, mostly by the
// model's name. It must be a pure function of the View.
type Persona func(v View) (text string, ok bool)

// View is what a Persona sees of a request.
type View struct {
	Model   string // without the provider
	Request *llm.Request
	Seed    uint64 // drawn from the simulation's seed and the request: for varied answers
}

// Echo is the persona of models named echo: they repeat the last message.
func Echo(v View) (string, bool) {
	if n := len(v.Request.Messages); v.Model == "echo" && n > 0 {
		return v.Request.Messages[n-1].Text(), true
	}
	return "", false
}

// Secrets is the persona that plays the secret game.
func Secrets(v View) (string, bool) { return persona.Secrets(v.Model, v.Request, v.Seed) }

// Scenario is the persona that takes every part in a scenario.
func Scenario(v View) (string, bool) { return persona.Scenario(v.Model, v.Request, v.Seed) }

// Solver is the persona that solves the arithmetic problems of evolve.
func Solver(v View) (string, bool) { return persona.Solver(v.Model, v.Request, v.Seed) }

// Breeder is the persona that writes prompts for evolve, and grades answers for it.
func Breeder(v View) (string, bool) { return persona.Breeder(v.Model, v.Request, v.Seed) }

// Diplomacy is the persona that plays the powers of Diplomacy.
func Diplomacy(v View) (string, bool) { return persona.Diplomacy(v.Model, v.Request, v.Seed) }

// Learner is the persona that plays the environments of rollouts.
func Learner(v View) (string, bool) { return learner.Play(v.Model, v.Request, v.Seed) }

// Brain makes up answers, delays and faults. Its methods may be called from any
// number of goroutines at once.
type Brain struct {
	cfg     Config
	words   *prose.Lexicon
	live    []chance // one of these may befall a request
	content []chance // one of these may befall an answer
	seen    counter
	schemas schemas
	cache   promptCache
}

// NewBrain checks cfg and returns a Brain that follows it.
func NewBrain(cfg Config) (*Brain, error) {
	if cfg.MinTokens <= 0 {
		cfg.MinTokens = 8
	}
	if cfg.MaxTokens <= 0 {
		cfg.MaxTokens = max(96, cfg.MinTokens)
	}
	if cfg.MaxTokens < cfg.MinTokens {
		return nil, fmt.Errorf("sim: answers of at least %d and at most %d tokens: the first must not be larger", cfg.MinTokens, cfg.MaxTokens)
	}
	if cfg.StallFor <= 0 {
		cfg.StallFor = 10 * time.Minute
	}
	switch cfg.Style {
	case "", quota.OpenAI, quota.Anthropic:
	default:
		return nil, fmt.Errorf("sim: style %q: use %s or %s", cfg.Style, quota.OpenAI, quota.Anthropic)
	}
	if err := cfg.Faults.Check(); err != nil {
		return nil, err
	}
	if cfg.Personas == nil {
		cfg.Personas = []Persona{Echo, Scenario, Secrets, Solver, Breeder, Diplomacy, Learner}
	}
	return &Brain{
		cfg: cfg, words: prose.New(), live: cfg.Faults.chances(liveFaults()), content: cfg.Faults.chances(contentFaults()),
	}, nil
}

// Config returns the configuration with its defaults filled in.
func (b *Brain) Config() Config { return b.cfg }
