// Package diplomacy plays games of Diplomacy between seven agents. They exchange messages,
// write diaries, and order their units at the same time.
//
// A prompt holds the board, what everybody can read, and what was written to or by its power,
// and nothing else. An illegal order is asked for once more, for its unit only; then the unit
// holds. A failed call is silence, never an order, a message or a vote. A power waits for
// another only if it must read what the other wrote, or the board after all orders.
//
// The rules are in package rules, reports and pictures in show and drawing, and the files of
// other programs in saved.
//
// Play plays phase after phase. A movement phase has talks (talk.go), orders (orders.go) and
// their results (resolve.go); retreats and adjustments have no talks. Prompts are built in
// ask.go from package brief and the templates of package prompt. The book (book.go) counts
// events, and the outcome scores the game.
package diplomacy

import (
	_ "embed" // the example is a file, so that it can be read and run as one

	"parley/llm"
	"parley/world"
	"parley/world/program"
	"parley/worlds/diplomacy/drawing"
	"parley/worlds/diplomacy/rules"
)

//go:embed example.yaml
var example string

// version increases when a resumed game would be played differently: when the rules of play
// change, and when the prompts do. Their version is the last two digits.
const version = 100 + promptVersion

// Judge is the seat of the agent that finds promises in messages, if there is one.
const Judge = "judge"

// Kind returns the kind of these games.
func Kind() world.Kind { return world.Define(newDefinition()) }

// Commands returns the command that adjudicates positions for other programs.
func (*definition) Commands() []program.Command { return []program.Command{command()} }

// definition is what all games share. It never changes.
type definition struct {
	rules   *rules.Rules
	prompts *promptSet
}

func newDefinition() *definition {
	return &definition{rules: rules.New(), prompts: standard()}
}

// About describes the games.
func (d *definition) About() world.About {
	return world.About{
		Name: "diplomacy", Version: version, Example: example,
		Doc: "Diplomacy for seven agents: talks, diaries, orders by the full rules, and who kept their word.",
	}
}

// Bots returns the players without a model.
func (d *definition) Bots() map[string]world.Bot { return botAll(d.rules) }

// Exhibitor returns an empty part of a report.
func (d *definition) Exhibitor() world.Exhibitor { return exhibitor() }

// Tables are the tables of orders, press, relations and promises.
func (d *definition) Tables() []world.NoteTable { return tables() }

// Story returns the replay of a game.
func (d *definition) Story(_ world.Played, transcript []world.TranscriptEntry) []world.Exhibit {
	return showReplay(world.NotesOf(transcript))
}

// StandIn plays for the simulated provider.
func (d *definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return playStandin(model, req, seed)
}

// Colours returns the colours of the powers.
func (d *definition) Colours() map[string][2]string { return drawing.Colours() }

// Seats returns the seats of the powers, and of the judge if there is one.
func (d *definition) Seats(p *Params) ([]string, error) {
	if err := d.check(p); err != nil {
		return nil, err
	}
	if p.Judge {
		return append(rules.PowerNames(), Judge), nil
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
