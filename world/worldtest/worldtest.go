// Package worldtest holds kinds of worlds to what they promise: that playing is a pure
// fold over replies. A kind that passes Exercise can be resumed, replayed and forked by
// the engine, at any concurrency, whatever its models answer.
//
// What it promises: it drives worlds as the engine does, through world.Begin and
// Strand, with no model and no clock; the same kind passes or fails the same way each
// time.
//
// It is not for judging whether a game is a good one, nor for running one: that is the
// engine's.
package worldtest

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"parley/llm"
	"parley/world"
)

// Options say how a kind is exercised. The zero value fits most.
type Options struct {
	// Params is a JSON object as a plan file would give it. Default: {}.
	Params string
	// Lineup is who sits where. Default: an agent in each seat.
	Lineup world.Lineup
	// Answer makes up a good reply. It may draw from r, which depends on the call's place
	// in the episode, and on nothing else. Default: what the kind's stand-in answers, or else
	// Prose. A kind whose calls are acts, or have a schema and no stand-in, needs an Answer.
	Answer func(c world.Call, r *rand.Rand) world.Reply
	// Understood says what in a stand-in's reply shows that it did not understand the call, for StandIn. Default: nothing.
	Understood func(c world.Call, r world.Reply) error
	// Deals is how many deals are played. Default: 3.
	Deals int
	// MaxCalls is when an episode counts as endless. Default: 10,000.
	MaxCalls int
	// EmptyIsAMove means that an empty text is a move like any other in this kind, so that what
	// follows from it is measured.
	EmptyIsAMove bool
	// Dir is the folder of the kind's package, for Imports. Default: the test's own.
	Dir string
}

// Exercise holds a kind to everything that any kind promises:
//
//   - its package imports and does nothing impure: see Imports;
//   - it describes itself: every param has a doc tag and is in the example, which is a plan of the kind;
//   - its params survive being written and read;
//   - its commands have names and tags that the command line takes;
//   - a play with good replies comes to an end that has not failed;
//   - it plays twice the same, also beside another episode;
//   - playing again from the start with the replies of any point, and then on, equals playing through;
//   - the order in which strands are resumed makes no difference;
//   - it asks only seats it has, labels its calls, and does not write to what it asked;
//   - it survives every kind of failure and every sort of nonsense in a reply;
//   - it gives no score for what was not measured: not where every call fails or is refused, and
//     not where every answer is empty; what failed has no scores;
//   - its notes and its outcome are JSON, and its scores are numbers, and what it declares;
//   - its bots are pure.
//
// The first checks, up to that it plays twice the same, run one after the other. Where one fails, the rest is not
// run: it would report the same again. A problem that several plays find is reported once.
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

// Prose is a reply of a few plain words.
func Prose(_ world.Call, r *rand.Rand) world.Reply {
	words := [...]string{"yes", "no", "the", "river", "seven", "I", "think", "so", "maybe", "north", "and", "42"}
	var text strings.Builder
	text.WriteString(words[r.IntN(len(words))])
	for range r.IntN(12) {
		text.WriteString(" " + words[r.IntN(len(words))])
	}
	return world.Reply{Text: text.String() + ".", Finish: llm.FinishStop}
}

// check is one thing that kinds promise.
type check struct {
	name string
	run  func(*exercise) []error
}

// report runs a check and reports what it finds that no other has found.
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

// findings are the problems that checks of one exercise have reported.
type findings struct {
	mu sync.Mutex
	by map[string]string // what a problem says to the check that reported it
}

// add returns the name of the check that has reported the problem before, or "".
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

// checks are in the order in which a failure explains those after it. Those in first explain all that follow.
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
