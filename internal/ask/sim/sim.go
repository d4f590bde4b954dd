// Package sim is the simulated provider: a Model that needs no key and no network, and the brain of
// the HTTP server in package simhttp.
//
// It promises that an answer depends only on the seed and the request: its messages, model,
// parameters, schema and sample number. Time, order and concurrency change nothing. A request with a
// JSON Schema gets a valid and varied answer. A request with tools calls them now and then. Any other
// gets plausible text. Latency and faults also depend on how often the request was seen, so that a
// retry can succeed. Only the number of cached tokens depends on other requests.
//
// Any name is a model. The model echo repeats the last message. Kinds bring stand-ins, which answer
// the requests of their worlds.
//
// A request becomes a Case (case.go), which has an Answer (answer.go), and may have a delay, a fault and
// cached tokens. Model asks in process. A server also has delays (delay.go), faults of the connection (fault.go), and
// limits: those of a Quota and a Gate (quota.go).
//
// It is not for judging models: it knows nothing. MaxTokens and Stop shorten its answers but do not
// change them.
package sim

import (
	"fmt"
	"time"

	"parley/internal/ask/sim/jsongen"
	"parley/world"
	"parley/world/part"
)

// Config is the behavior of the simulation. The zero value answers at once, without limits and
// faults.
type Config struct {
	// Seed changes all answers. Default: 0
	Seed uint64

	// Latency is how long a whole answer of a server takes. A streamed one begins after a third of it. Default: none
	Latency Delay

	// MinTokens and MaxTokens bound the length of plain answers. Default: 8 and 96
	MinTokens, MaxTokens int

	// Limits are the limits of the account, for a server. Default: no limits
	Limits Limits

	// Faults are the probabilities of faults. A Model has only those of answers. Default: none
	Faults Faults
	// StallFor is the time after which a stalled connection is dropped. Default: 10 minutes
	StallFor time.Duration

	// StandIns are asked first, in order. Their seed comes from Seed and the request. Default: none
	StandIns []part.StandIn
}

// StandIns returns the stand-ins of kinds.
func StandIns(kinds ...world.Kind) (all []part.StandIn) {
	for _, k := range kinds {
		if s, ok := world.As[part.StandIn](k); ok {
			all = append(all, s)
		}
	}
	return all
}

// Brain makes up answers, delays and faults. It may be used from several goroutines at once.
type Brain struct {
	cfg     Config
	words   *jsongen.Lexicon
	live    []chance // faults of requests
	content []chance // faults of answers
	seen    counter
	schemas schemas
	cache   promptCache
}

// NewBrain checks cfg and returns a Brain.
func NewBrain(cfg Config) (*Brain, error) {
	if cfg.MinTokens <= 0 {
		cfg.MinTokens = 8
	}
	if cfg.MaxTokens <= 0 {
		cfg.MaxTokens = max(96, cfg.MinTokens)
	}
	if cfg.MaxTokens < cfg.MinTokens {
		return nil, fmt.Errorf("sim: answers of at least %d and at most %d tokens: the minimum is larger than the maximum", cfg.MinTokens, cfg.MaxTokens)
	}
	if cfg.StallFor <= 0 {
		cfg.StallFor = 10 * time.Minute
	}
	if err := cfg.Faults.Check(); err != nil {
		return nil, err
	}
	return &Brain{
		cfg: cfg, words: jsongen.NewLexicon(), live: cfg.Faults.chances(liveFaults()), content: cfg.Faults.chances(contentFaults()),
	}, nil
}

// Config returns the configuration with its defaults filled in.
func (b *Brain) Config() Config { return b.cfg }
