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
	"fmt"

	"parley/world"
	"parley/worlds/diplomacy/adjudicate"
	picture "parley/worlds/diplomacy/board"
	"parley/worlds/diplomacy/bot"
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
func Kind() world.Kind {
	k := &kind{rules: rules.New(), prompts: prompt.Standard()}
	return world.Attach[Params](world.Kind{
		Name:      "diplomacy",
		Version:   version,
		Doc:       "Diplomacy for seven agents: talks, diaries, orders by the full rules, and who kept their word.",
		Params:    func() any { return defaults() },
		Load:      k.load,
		Seats:     k.seats,
		Scores:    k.measures,
		World:     k.world,
		Bots:      bot.All(k.rules),
		Exhibitor: show.Exhibitor,
		Replay:    show.Replay,
		Colours:   picture.Colours(),
		Files:     k.files,
		Example:   example,
	}, commands{})
}

// commands are what the kind brings to the command line.
type commands struct{}

// Commands judge positions for other programs.
func (commands) Commands() []world.Command { return []world.Command{adjudicate.Command()} }

// kind is what all games share. None of it ever changes.
type kind struct {
	rules   *rules.Rules
	prompts *prompt.Set
}

// Seats lists the seats of the seven powers.
func Seats() []string {
	var names []string
	for _, w := range board.Powers() {
		names = append(names, w.String())
	}
	return names
}

func (k *kind) seats(params any) ([]string, error) {
	p, err := k.checked(params)
	if err != nil {
		return nil, err
	}
	if p.Judge {
		return append(Seats(), Judge), nil
	}
	return Seats(), nil
}

func (k *kind) world(params any, lineup world.Lineup) (world.World, error) {
	p, err := k.checked(params)
	if err != nil {
		return nil, err
	}
	return k.newGame(p, lineup)
}

// checked returns params as what they must be, or what is wrong with them.
func (k *kind) checked(params any) (*Params, error) {
	p, ok := params.(*Params)
	if !ok || p == nil {
		return nil, fmt.Errorf("diplomacy: params are %T, want *diplomacy.Params", params)
	}
	return p, k.check(p)
}
