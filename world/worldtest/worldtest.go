// Package worldtest checks what kinds of worlds promise: that play is a pure fold over replies. The engine can resume,
// replay and fork a kind that passes Exercise, at any concurrency, whatever its models answer.
//
// What it promises: it drives worlds as the engine does, through world.Begin and Strand, with no model and no clock.
// The same kind always passes or fails the same way.
//
// It does not judge whether a game is good, and it does not run games: the engine does.
package worldtest

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"parley/llm"
	"parley/world"
)

// Options configure how a kind is exercised. The zero value works for most kinds.
type Options struct {
	// Params is a JSON object of params, as in a plan file. Default: {}.
	Params string
	// Lineup is who sits where. Default: an agent in each seat.
	Lineup world.Lineup
	// Answer makes a good reply. It may draw from r, which depends only on the call's position in the episode.
	// Default: the answer of the kind's stand-in, or Prose. A kind whose calls are acts, or have a schema and no
	// stand-in, needs an Answer.
	Answer func(c world.Call, r *rand.Rand) world.Reply
	// Understood returns an error if a stand-in's reply shows that it misunderstood the call, for StandIn. Default: nil.
	Understood func(c world.Call, r world.Reply) error
	// Deals is how many deals are played. Default: 3.
	Deals int
	// MaxCalls is how many calls make an episode endless. Default: 10,000.
	MaxCalls int
	// EmptyIsAMove means that an empty text is a valid move in this kind, so its result is a measurement.
	EmptyIsAMove bool
	// Dir is the folder of the kind's package, for Imports. Default: the test's own.
	Dir string
}

// Exercise checks everything that any kind promises:
//
//   - its package imports and does nothing impure: see Imports;
//   - it describes itself: every param has a doc tag and is in the example, which is a plan of the kind;
//   - its params survive being written and read;
//   - its commands have names and tags that the command line takes;
//   - a play with good replies ends without failing;
//   - two plays are the same, also beside another episode;
//   - replaying the replies up to any point and continuing equals playing through;
//   - the order in which strands are resumed makes no difference;
//   - it asks only its own seats, labels its calls, and does not change its requests;
//   - it survives every kind of failure and nonsense in a reply;
//   - it gives no score for what was not measured: not if every call fails or is refused, and not if every answer is
//     empty; a failed outcome has no scores;
//   - its notes and its outcome are JSON, and its scores are numbers that it declares;
//   - its bots are pure.
//
// The checks up to the one for equal plays run one after the other. If one fails, the rest does not run, since it would
// report the same again. A problem that several plays find is reported once.
func Exercise(t *testing.T, kind world.Kind, o Options) {
	t.Helper()
	o = o.resolved()
	first, rest := checks()
	for _, c := range first {
		if !t.Run(c.name, func(t *testing.T) { c.report(t, kind, o, &findings{}) }) {
			t.Log("worldtest: correct this first: the checks that follow were not run")
			return
		}
	}
	found := &findings{}
	for _, c := range rest {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.report(t, kind, o, found)
		})
	}
}

func (o Options) resolved() Options {
	if o.Params == "" {
		o.Params = "{}"
	}
	if o.Deals == 0 {
		o.Deals = 3
	}
	if o.MaxCalls == 0 {
		o.MaxCalls = 10_000
	}
	if o.Dir == "" {
		o.Dir = "."
	}
	return o
}

// Prose returns a reply of a few plain words.
func Prose(_ world.Call, r *rand.Rand) world.Reply {
	words := [...]string{"yes", "no", "the", "river", "seven", "I", "think", "so", "maybe", "north", "and", "42"}
	var text strings.Builder
	text.WriteString(words[r.IntN(len(words))])
	for range r.IntN(12) {
		text.WriteString(" " + words[r.IntN(len(words))])
	}
	return world.Reply{Text: text.String() + ".", Finish: llm.FinishStop}
}

// check is one promise of kinds.
type check struct {
	name string
	run  func(*exercise) []error
}

// report runs a check and reports the problems that no other check has reported.
func (c check) report(t *testing.T, kind world.Kind, o Options, found *findings) {
	t.Helper()
	for _, err := range c.run(&exercise{kind: kind, Options: o}) {
		if by := found.add(c.name, err); by == "" {
			t.Error(err)
		} else if by != c.name {
			t.Errorf("finds what %q reports", by)
			return
		}
	}
}

// findings are the problems that the checks of one exercise have reported.
type findings struct {
	mu sync.Mutex
	by map[string]string // key of a problem to the check that reported it
}

// add returns the name of the check that has already reported the problem, or "".
func (f *findings) add(check string, err error) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := keyOf(err)
	by := f.by[key]
	if by == "" {
		if f.by == nil {
			f.by = map[string]string{}
		}
		f.by[key] = check
	}
	return by
}

// checks returns the checks in an order in which a failure explains later ones. A failure in first explains all of rest.
func checks() (first, rest []check) {
	return []check{
			{"imports", (*exercise).imports},
			{"describes itself", (*exercise).describes},
			{"plays once", (*exercise).once},
			{"plays twice the same", (*exercise).twice},
		}, []check{
			{"plays the same beside another", (*exercise).beside},
			{"refolds from any point", (*exercise).refolds},
			{"joins in any order", (*exercise).interleaves},
			{"survives failures", (*exercise).failures},
			{"survives nonsense", (*exercise).nonsense},
			{"scores only what is measured", (*exercise).measured},
			{"has pure bots", (*exercise).bots},
		}
}

// Simple is a definition for tests that need a kind: everything is optional. For other parts of a kind, embed it in a
// type that has their methods.
type Simple[P any] struct {
	Kind   world.About // default: the name "test" and version 1
	Params P           // the defaults
	// Sits lists the seats. If SeatsOf is set, it checks params and lists the seats instead.
	Sits    []string
	SeatsOf func(params *P) ([]string, error)
	// Play plays an episode.
	Play func(params *P, t *world.Table) world.Outcome
	// Scores declares what outcomes score.
	Scores []world.Measure
	// Players are the bots.
	Players map[string]world.Bot
}

// About returns s.Kind.
func (s Simple[P]) About() world.About {
	s.Kind.Name = cmp.Or(s.Kind.Name, "test")
	s.Kind.Version = cmp.Or(s.Kind.Version, 1)
	return s.Kind
}

// Defaults returns a copy of s.Params.
func (s Simple[P]) Defaults() *P { return &s.Params }

// Seats returns the result of s.SeatsOf, or s.Sits.
func (s Simple[P]) Seats(params *P) ([]string, error) {
	if s.SeatsOf != nil {
		return s.SeatsOf(params)
	}
	return s.Sits, nil
}

// World returns a world that s.Play plays.
func (s Simple[P]) World(params *P, _ world.Lineup) (world.World, error) {
	return world.Func(func(t *world.Table) world.Outcome {
		if s.Play == nil {
			return world.Outcome{}
		}
		return s.Play(params, t)
	}), nil
}

// Measures returns s.Scores.
func (s Simple[P]) Measures(*P) []world.Measure { return s.Scores }

// Bots returns s.Players.
func (s Simple[P]) Bots() map[string]world.Bot { return s.Players }
