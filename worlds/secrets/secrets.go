// Package secrets is a game of trust between two agents: each holds a secret word, they
// talk for a number of messages, and what each gave away and got is the score.
//
// What it promises: both secrets are dealt anew in every episode, so that nobody is
// judged by a word; a player's own words come to it as assistant and the other's as user,
// always; a failed call is silence and can never become something that was said; what
// counts as giving a secret away is one written rule, the same for everybody.
//
// It is not for judging how a secret was got: it keeps the conversation for whoever is.
package secrets

import (
	_ "embed" // the example is a file, so that it can be read and run as one
	"fmt"

	"parley/world"
)

//go:embed example.yaml
var example string

// Kind is the family of these games.
func Kind() world.Kind {
	return world.Kind{
		Name:    "secrets",
		Version: 1,
		Doc:     "Two agents with a secret word each: talk, and get the other's without giving away your own.",
		Params:  func() any { return defaults() },
		Seats:   seats,
		World:   newWorld,
		Bots:    bots(),
		Example: example,
	}
}

// The seats: who speaks first, and who second.
const (
	First  = "first"
	Second = "second"
)

func seats(params any) ([]string, error) {
	if _, err := checked(params); err != nil {
		return nil, err
	}
	return []string{First, Second}, nil
}

func newWorld(params any, _ world.Lineup) (world.World, error) {
	p, err := checked(params)
	if err != nil {
		return nil, err
	}
	return &game{Params: *p}, nil
}

// checked returns params as what they must be, or what is wrong with them.
func checked(params any) (*Params, error) {
	p, ok := params.(*Params)
	if !ok || p == nil {
		return nil, fmt.Errorf("secrets: params are %T, want *secrets.Params", params)
	}
	return p, p.check()
}

// game is one episode.
type game struct{ Params }

// Play deals a secret to each seat, lets them talk, and scores what was given away.
func (g *game) Play(t *world.Table) world.Outcome {
	dealt := deal(t.Rand(), g.words(), 2)
	var players [2]player
	for i, seat := range []string{First, Second} {
		players[i] = player{seat: seat, secret: dealt[i], persona: g.Persona[seat]}
		t.Note("secret", seat, dealt[i])
	}
	c := &talk{players: players, length: g.Messages, rules: rulesOf(g.Mode)}
	c.play(t)
	return c.outcome(g.Mode)
}
