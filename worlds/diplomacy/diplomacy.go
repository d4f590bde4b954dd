// Package diplomacy plays games of Diplomacy between seven agents: they talk, write
// diaries, order their units at the same moment, and live with what comes of it.
//
// What it promises: a power is told the board, what everybody can read, and what was
// written to it or by it, and nothing else; an order that is not legal is asked for
// once more, for its unit only, and then the unit holds; a call that fails is silence and
// never an order, a message or a vote; no power waits for another unless it has to read
// what that one wrote, or the board after everybody's orders.
//
// It is not for the rules themselves (package rules), for what there is to look at (show
// and board), nor for other programs' files (saved).
//
// The flow: Play goes from phase to phase. A movement phase is talks (talk.go), orders
// (orders.go) and what comes of them (resolve.go); retreats and adjustments have no
// talks. What a power is told is put together in tell.go from package brief and the
// templates of package prompt. The book (book.go) counts, the outcome scores.
package diplomacy

import (
	_ "embed" // the example is a file, so that it can be read and run as one

	"parley/world"
	"parley/worlds/diplomacy/adjudicate"
	"parley/worlds/diplomacy/bot"
	"parley/worlds/diplomacy/drawing"
	"parley/worlds/diplomacy/prompt"
	"parley/worlds/diplomacy/rules"
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/show"
)

//go:embed example.yaml
var example string

// version goes up when a game would be played on differently: when rules of play change
// and when prompts do, which have a version of their own, the last two digits.
const version = 100 + prompt.Version

// Judge is the seat of whoever reads the messages for promises, if somebody does.
const Judge = "judge"

// Kind is the family of these games.
func Kind() world.Kind { return world.Define(newDefinition()) }

// Commands judge positions for other programs.
func (*definition) Commands() []world.Command { return []world.Command{adjudicate.Command()} }

// definition is what all games share. None of it ever changes.
type definition struct {
	rules   *rules.Rules
	prompts *prompt.Set
}

func newDefinition() *definition {
	return &definition{rules: rules.New(), prompts: prompt.Standard()}
}

// About says what the games are.
func (d *definition) About() world.About {
	return world.About{
		Name: "diplomacy", Version: version, Example: example,
		Doc: "Diplomacy for seven agents: talks, diaries, orders by the full rules, and who kept their word.",
	}
}

// Bots play without a model.
func (d *definition) Bots() map[string]world.Bot { return bot.All(d.rules) }

// Exhibitor begins the part of a report.
func (d *definition) Exhibitor() world.Exhibitor { return show.Exhibitor() }

// Story shows a game phase by phase.
func (d *definition) Story(_ world.Played, transcript []world.TranscriptEntry) []world.Exhibit {
	return show.Replay(world.NotesOf(transcript))
}

// Colours are those that the powers have on every board.
func (d *definition) Colours() map[string][2]string { return drawing.Colours() }

// Seats are those of the powers, and the judge's if there is one.
func (d *definition) Seats(p *Params) ([]string, error) {
	if err := d.check(p); err != nil {
		return nil, err
	}
	if p.Judge {
		return append(board.PowerNames(), Judge), nil
	}
	return board.PowerNames(), nil
}

// World makes a game.
func (d *definition) World(p *Params, lineup world.Lineup) (world.World, error) {
	if err := d.check(p); err != nil {
		return nil, err
	}
	return d.newGame(p, lineup)
}
