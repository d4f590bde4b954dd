// Package diplomacy plays games of Diplomacy between seven agents. They exchange messages,
// write diaries, and order their units at the same time.
//
// A prompt holds the board, what everybody can read, and what was written to or by its power,
// and nothing else. An illegal order is asked for once more, for its unit only; then the unit
// holds. A failed call is silence, never an order, a message or a vote. A power waits for
// another only if it must read what the other wrote, or the board after all orders.
//
// Play (game.go) plays phase after phase. A movement phase has talks (press.go), orders
// (orders.go) and results; retreats and adjustments have no talks. Powers keep diaries
// (diary.go), and a judge finds their promises (promise.go). Questions are built in ask.go from
// the templates of prompt.go and the descriptions of brief.go. At the end outcome.go scores the
// game. Bots (bot.go) and the simulated provider (standin.go) play without a model.
//
// record.go has the notes of a game as data. report.go shows them, and saved.go exchanges them
// with other programs. adjudicate.go is a command for other programs.
//
// Package rules has the rules, and package drawing the pictures.
package diplomacy

import (
	_ "embed" // the example is a file, so that it can be read and run as one

	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
	"parley/worlds/diplomacy/drawing"
	"parley/worlds/diplomacy/rules"
)

//go:embed example.yaml
var example string

// version increases when a resumed game would be played differently: when the rules of play
// change, and when the prompts do. Their version is the last two digits.
const version = 100 + promptVersion

// judgeSeat is the seat of the agent that finds promises in messages, if there is one.
const judgeSeat = "judge"

// Kind returns the kind of these games.
func Kind() world.Kind { return world.Define(newDefinition()) }

// definition is what all games share. It does not change, so games can share one.
type definition struct {
	rules   *rules.Rules
	prompts *promptSet
}

func newDefinition() *definition {
	return &definition{rules: rules.New(), prompts: standardPrompts()}
}

// About describes the games.
func (d *definition) About() world.About {
	return world.About{
		Name: "diplomacy", Version: version, Example: example,
		Doc: "Diplomacy for seven agents: talks, diaries, orders by the full rules, and who kept their word.",
	}
}

// Bots returns the players without a model.
func (d *definition) Bots() map[string]world.Bot { return newBots(d.rules) }

// Exhibitor returns an empty part of a report.
func (d *definition) Exhibitor() exhibit.Exhibitor { return newReport() }

// Tables are the tables of orders, press, relations and promises.
func (d *definition) Tables() []part.NoteTable { return tables() }

// Story returns the replay of a game.
func (d *definition) Story(p world.Played, transcript []world.TranscriptEntry) []exhibit.Exhibit {
	return newReplay(p, world.NotesOf(transcript))
}

// StandIn plays for the simulated provider.
func (d *definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return standInAnswer(model, req, seed)
}

// Colours returns the colours of the powers.
func (d *definition) Colours() map[string][2]string { return drawing.Colours() }

// Seats returns the seats of the powers, and of the judge if there is one.
func (d *definition) Seats(p *Params) ([]string, error) {
	if err := d.check(p); err != nil {
		return nil, err
	}
	if p.Judge {
		return append(rules.PowerNames(), judgeSeat), nil
	}
	return rules.PowerNames(), nil
}

// World returns a new game.
func (d *definition) World(p *Params, lineup world.Lineup) (world.World, error) {
	if err := d.check(p); err != nil {
		return nil, err
	}
	return d.newGame(p, lineup)
}
