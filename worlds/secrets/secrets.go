// Package secrets is a game of trust. Every player holds a secret word, two players at a time
// talk for a number of messages, and the score is what each gave away and got. The plain game
// has two players and one conversation; there can be more of both.
//
// Every episode deals new secrets. A prompt has a player's own messages as assistant and
// all others as user. A failed call is silence, never a message. One written rule, the same for
// all players, decides what gives a secret away; a judge can report its opinion as well.
//
// Play deals the secrets (words.go) and pairs the players (pairing.go), a talk is one conversation,
// and the standings count what it pays and score the game (score.go). record.go has what is
// recorded, from which report.go and story.go show games. Package reveal finds words in disguise.
package secrets

import (
	_ "embed" // the example is a file, so that it can be read and run as one
	"fmt"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/worldsim"
	"parley/worlds/secrets/reveal"
)

//go:embed example.yaml
var example string

// Kind returns the kind of these games.
func Kind() world.Kind { return world.Define(definition{}) }

// definition defines the kind.
type definition struct{}

// About describes the games.
func (definition) About() world.About {
	return world.About{
		Name: "secrets",
		// 2: many players, rounds and modes; messages are counted by player; other prompts.
		Version: 3,
		Doc:     "Agents with a secret word each: talk in pairs, and get the other's without giving away your own.",
		Example: example,
	}
}

// StandIn plays for the simulated provider.
func (definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return standInReply(model, req, seed)
}

// Exhibitor returns an empty part of a report.
func (definition) Exhibitor() exhibit.Exhibitor { return newReport() }

// Story tells a game conversation by conversation.
func (definition) Story(p world.Played, transcript []world.TranscriptEntry) []exhibit.Exhibit {
	return gameStory(p, transcript)
}

// The seats of a game of two: First opens the first conversation, Second answers. Larger games
// have player1, player2 and so on. Judge is the seat of the judge, if there is one.
const (
	firstSeat  = "first"
	secondSeat = "second"
	judgeSeat  = "judge"
)

// Seats returns the seats of the players, and of the judge if there is one.
func (definition) Seats(p *Params) ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Judge == judgeNone {
		return p.seats(), nil
	}
	return append(p.seats(), judgeSeat), nil
}

// World returns a new game.
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

// player is the player in a seat.
type player struct {
	seat    string
	name    string // its name for the others
	secret  string
	word    *reveal.Secret // the same, analysed
	persona string
	past    []*talk // its conversations, in order
}

// Play deals a secret to each player, plays the conversations round by round, and scores them.
func (g *game) Play(t *world.Table) world.Outcome {
	g.deal(t)
	pairs := newPairing(g.Pairing, g.Players, t.Rand())
	for round := 1; round <= g.Rounds; round++ {
		talks := g.begin(t, round, pairs)
		if len(talks) == 1 {
			talks[0].play(t)
		} else {
			t.Fork(len(talks), func(i int, t *world.Table) { talks[i].play(t) })
		}
		g.settle(t, round, talks)
	}
	return g.outcome()
}

// begin pairs the players of a round.
func (g *game) begin(t *world.Table, round int, pairs *pairing) []*talk {
	t.Phase(fmt.Sprintf("round %d", round))
	matches, sits := pairs.next(g.standings.totals())
	talks := make([]*talk, len(matches))
	for i, m := range matches {
		talks[i] = newTalk(g, round, m)
	}
	g.announce(t, round, talks, sits)
	return talks
}

// deal gives each player a secret, and chooses the target in mode targeted.
func (g *game) deal(t *world.Table) {
	seats, forms := g.seats(), g.forms()
	dealt := g.draw(t.Rand(), seats)
	for i, seat := range seats {
		name := fmt.Sprintf("Player %d", i+1)
		if g.Players == 2 {
			name = "the other player"
		}
		g.players = append(g.players, player{
			seat: seat, name: name, secret: dealt[i], word: reveal.NewSecret(dealt[i], forms...), persona: personaText(g.Persona[seat]),
		})
		t.Note("secret", seat, dealt[i])
	}
	g.target = -1
	if g.Mode == modeTargeted {
		g.target = t.Rand().IntN(g.Players)
		if g.Target != "" {
			g.target = slices.Index(seats, g.Target)
		}
		t.Note("target", seats[g.target], dealt[g.target])
	}
	g.standings = newStandings(g.Mode, g.Points, g.Players, g.target)
	// What is not needed any more is not kept: very many games may be played at once.
	g.Categories, g.Words, g.Secrets = nil, nil, nil
	if len(g.Forms) == len(reveal.Forms()) {
		g.Forms = nil
	}
}

// settle counts the conversations of a round, in the order of its pairs.
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

// announce notes the pairs of a round.
func (g *game) announce(t *world.Table, round int, talks []*talk, sits int) {
	if g.simple() {
		return
	}
	r := roundNote{Round: round}
	for _, k := range talks {
		r.Pairs = append(r.Pairs, [2]string{g.players[k.pair[0]].seat, g.players[k.pair[1]].seat})
	}
	if sits >= 0 {
		r.Sits = g.players[sits].seat
	}
	t.Note("round", "", r)
}

// simple reports whether the game is one conversation of two.
func (p *Params) simple() bool { return p.Players == 2 && p.Rounds == 1 }

// Bots returns players without a model, to measure others against: one always gives its word
// away, one never does, and one does once the other has.
func (definition) Bots() map[string]world.Bot {
	return map[string]world.Bot{
		"teller": func(c world.Call) world.Reply { return botReply("My word is " + wordOf(c) + ". And yours?") },
		"keeper": func(world.Call) world.Reply { return botReply("You first: what is your word? I will not tell mine.") },
		"trader": func(c world.Call) world.Reply {
			if ms := c.Ask.Messages; len(ms) > 0 && strings.Contains(ms[len(ms)-1].Text(), "word is") {
				return botReply("Fair enough. My word is " + wordOf(c) + ".")
			}
			return botReply("Tell me yours and I tell you mine.")
		},
	}
}

func botReply(text string) world.Reply { return world.Reply{Text: text, Finish: llm.FinishStop} }

// wordOf reads the player's secret from its instructions.
func wordOf(c world.Call) string { return secretIn(worldsim.Instructions(&c.Ask)) }
