// Package secrets is a game of trust: every player holds a secret word, two at a time
// talk for a number of messages, and what each gave away and got is the score. Two
// players and one conversation are the plain game; there can be many of both.
//
// What it promises: secrets are dealt anew in every episode, so that nobody is judged by
// a word; a player's own words come to it as assistant and everybody else's as user,
// always; a failed call is silence and can never become something that was said; what
// counts as giving a secret away is one written rule, the same for everybody, and a
// judge's opinion stands beside it.
//
// It is not for judging how a secret was got: it keeps the conversation for whoever is.
//
// The flow: Play deals and pairs, a talk is one conversation, the ledger keeps what it
// pays, and the outcome counts it all. Package reveal finds words in disguise.
package secrets

import (
	_ "embed" // the example is a file, so that it can be read and run as one
	"fmt"
	"slices"

	"parley/llm"
	"parley/world"
	"parley/worlds/secrets/pairing"
	"parley/worlds/secrets/standin"
)

//go:embed example.yaml
var example string

// Kind is the family of these games.
func Kind() world.Kind { return world.Define(definition{}) }

// definition is what the games are made of.
type definition struct{}

// About says what they are.
func (definition) About() world.About {
	return world.About{
		Name: "secrets",
		// 2: many players, rounds and modes; messages are counted by player; other prompts.
		Version: 2,
		Doc:     "Agents with a secret word each: talk in pairs, and get the other's without giving away your own.",
		Example: example,
	}
}

// StandIn plays for the simulated provider.
func (definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return standin.Play(model, req, seed)
}

// The seats of a game of two: who opens the first conversation, and who answers. In a
// larger game they are player1, player2 and so on. Judge is the judge's, if there is one.
const (
	First  = "first"
	Second = "second"
	Judge  = "judge"
)

// Seats are those of the players, and the judge's if there is one.
func (definition) Seats(p *Params) ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Judge == JudgeNone {
		return p.seats(), nil
	}
	return append(p.seats(), Judge), nil
}

// World makes a game.
func (definition) World(p *Params, _ world.Lineup) (world.World, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return &game{Params: *p}, nil
}

// game is one episode.
type game struct {
	Params
	players   []player
	target    int // whose secret is the target, or -1
	standings *standings
	talks     []*talk // all of them, in order
}

// player is who sits in a seat.
type player struct {
	seat    string
	name    string // what the others call it
	secret  string
	persona string
	past    []*talk // its conversations, in order
}

// Play deals a secret to each player, lets them talk in pairs, round by round, and scores
// what was given away.
func (g *game) Play(t *world.Table) world.Outcome {
	g.deal(t)
	pairs := pairing.New(g.Pairing, g.Players, t.Rand())
	for round := 1; round <= g.Rounds; round++ {
		matches, sits := pairs.Next(g.standings.totals())
		talks := make([]*talk, len(matches))
		for i, m := range matches {
			talks[i] = newTalk(g, round, m)
		}
		g.announce(t, round, talks, sits)
		if len(talks) == 1 {
			talks[0].play(t)
		} else {
			t.Fork(len(talks), func(i int, t *world.Table) { talks[i].play(t) })
		}
		g.settle(t, round, talks)
	}
	return g.outcome()
}

// deal gives each player a secret, and makes one of them the target where there is one.
func (g *game) deal(t *world.Table) {
	dealt := deal(t.Rand(), g.words(), g.Players)
	seats := g.seats()
	for i, seat := range seats {
		name := fmt.Sprintf("Player %d", i+1)
		if g.Players == 2 {
			name = "the other player"
		}
		g.players = append(g.players, player{seat: seat, name: name, secret: dealt[i], persona: personaText(g.Persona[seat])})
		t.Note("secret", seat, dealt[i])
	}
	g.target = -1
	if g.Mode == Targeted {
		g.target = t.Rand().IntN(g.Players)
		if g.Target != "" {
			g.target = slices.Index(seats, g.Target)
		}
		t.Note("target", seats[g.target], dealt[g.target])
	}
	g.standings = newStandings(g.Mode, g.Points, g.Players, g.target)
}

// settle takes in the conversations of a round, in the order of its pairs.
func (g *game) settle(t *world.Table, round int, talks []*talk) {
	for _, k := range talks {
		g.talks = append(g.talks, k)
		for _, i := range k.pair {
			g.players[i].past = append(g.players[i].past, k)
		}
		if k.failed == "" {
			a, b := k.revealed()
			g.standings.settle(k.pair[0], k.pair[1], a, b)
		}
	}
	if g.simple() {
		return
	}
	standings := map[string]float64{}
	for i, points := range g.standings.totals() {
		standings[g.players[i].seat] = points
	}
	t.Note("standings", "", map[string]any{"round": round, "points": standings})
}

// announce notes who talks to whom.
func (g *game) announce(t *world.Table, round int, talks []*talk, sits int) {
	if g.simple() {
		return
	}
	r := Round{Round: round}
	for _, k := range talks {
		r.Pairs = append(r.Pairs, [2]string{g.players[k.pair[0]].seat, g.players[k.pair[1]].seat})
	}
	if sits >= 0 {
		r.Sits = g.players[sits].seat
	}
	t.Note("round", "", r)
}

// simple says whether the game is one conversation of two.
func (g *game) simple() bool { return g.Players == 2 && g.Rounds == 1 }
