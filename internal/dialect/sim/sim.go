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
// Any name is a model. One named echo repeats the last message. Kinds bring stand-ins, who
// answer what their worlds ask.
//
// It is not for judging models: it knows nothing. MaxTokens and Stop cut its
// answers short but do not change them.
package sim

import (
	"fmt"
	"time"

	"parley/internal/dialect/sim/prose"
	"parley/internal/dialect/sim/quota"
	"parley/world"
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

	// StandIns are asked in order before anything is made up. The seed that they get is drawn
	// from Seed and the request. Default: nobody is
	StandIns []world.StandIn
}

// StandIns are those that kinds bring, in the order of the kinds.
func StandIns(kinds ...world.Kind) (all []world.StandIn) {
	for _, k := range kinds {
		if s, ok := world.As[world.StandIn](k); ok {
			all = append(all, s)
		}
	}
	return all
}

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
	return &Brain{
		cfg: cfg, words: prose.New(), live: cfg.Faults.chances(liveFaults()), content: cfg.Faults.chances(contentFaults()),
	}, nil
}

// Config returns the configuration with its defaults filled in.
func (b *Brain) Config() Config { return b.cfg }
