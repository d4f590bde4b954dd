package worldtest

import (
	"cmp"

	"parley/world"
)

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
