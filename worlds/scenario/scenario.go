// Package scenario plays policy simulations: actors with goals of their own decide turn
// by turn, a narrator writes what comes of it, and metrics and checks are taken of every
// turn.
//
// A turn is what actors say to each other (public statements, exchanges between two,
// coalitions), their decisions, and the narrator's account of what follows. All actors
// speak and decide at the same moment: nobody sees what another decides in the same turn.
// What a turn came to is measured and checked while the next one is being decided, so
// that measuring takes no time.
//
// What it promises: an actor is told what everybody can read, what it alone knows, and
// what was said to it, and nothing else; a call that fails is silence and never an
// action, a value or a finding; what is not known stays unknown and is never 0; chance
// depends on the deal alone, and an event that happens once does so once.
//
// It is not for judging whether a scenario is a good one, nor for reading files: package
// folder does that before play.
package scenario

import (
	"errors"
	"fmt"
	"strings"

	"parley/world"
	"parley/worlds/scenario/folder"
	"parley/worlds/scenario/script"
)

// Kind is the family of scenarios.
func Kind() world.Kind { return world.Define(definition{}) }

// definition is what scenarios are made of.
type definition struct{}

// About says what they are.
func (definition) About() world.About {
	return world.About{
		Name: "scenario", Version: 2,
		Doc:     "Actors decide turn by turn in a situation described by a folder of plain files; metrics and checks say what came of it.",
		Example: examplePlan(), ExampleFiles: exampleFiles(),
	}
}

// Defaults leave everything to the folder, which has none.
func (definition) Defaults() *Params { return &Params{Set: map[string]any{}} }

// Params are what a plan file can say about a scenario.
type Params struct {
	// Folder is where the files of the scenario stand, beside the plan file.
	Folder string `json:"folder" doc:"The folder of the scenario's files, beside the plan file."`
	// Turns is how many turns are played. Default: 0, as many as the scenario says.
	Turns int `json:"turns" doc:"How many turns to play; 0 for as many as the scenario says."`
	// Set is other values for keys of the scenario: see script.Change. Default: none.
	Set map[string]any `json:"set" doc:"Other values for keys of the scenario, as {actors.port-authority.goals: [Stay open.]}."`
	// Script is the scenario itself. Default: what is read from Folder.
	Script *script.Script `json:"script,omitempty" doc:"The scenario itself: read from folder when the plan is, and recorded with the run."`
}

// Load reads the folder. A script that is given in its place is left as it is.
func (definition) Load(p *Params, files world.Files) ([]string, error) {
	if p.Folder == "" {
		return nil, nil // seats says what is missing
	}
	if p.Script != nil {
		return nil, errors.New("scenario: params.script: stands beside folder, from which it would be read: leave one of them out")
	}
	s, advice, err := folder.Read(files, p.Folder)
	if err != nil {
		return nil, err
	}
	p.Script = s
	return advice, nil
}

// script returns the scenario with its changes, or what is wrong with them.
func (p *Params) script() (*script.Script, error) {
	s := p.Script
	switch {
	case s == nil && p.Folder == "":
		return nil, errors.New("scenario: params.folder: is missing: the folder of the scenario's files")
	case s == nil:
		return nil, fmt.Errorf("scenario: params.folder: %q %w", p.Folder, world.ErrUnread)
	case s.From != p.Folder && p.Folder != "":
		return nil, fmt.Errorf("scenario: params.folder: %q was not read, only %q: a matrix can vary turns and set, not the folder", p.Folder, s.From)
	}
	set := p.Set
	if p.Turns != 0 {
		set = map[string]any{"turns": p.Turns}
		for key, v := range p.Set {
			if key == "turns" {
				return nil, errors.New("scenario: params.set.turns: stands beside turns: give one of them")
			}
			set[key] = v
		}
	}
	c := world.Complaints{Kind: "scenario"}
	// What is read was checked where it stands, so that only what is set can be wrong, or
	// a script that was written into the plan.
	asWritten := func(key string) string { return key }
	if len(set) == 0 {
		p.complain(&c, "script.", s.Problems(), asWritten)
	} else {
		changed, problems := s.Change(set)
		p.complain(&c, "set.", problems, asWritten)
		p.complain(&c, "set.", changed.Problems(), changed.Called)
		s = changed
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// complain tells of problems at the params that brought them.
func (p *Params) complain(c *world.Complaints, where string, problems []script.Problem, named func(string) string) {
	for _, wrong := range problems {
		at := where + named(wrong.Key)
		if p.Turns != 0 && at == "set.turns" {
			at = "turns"
		}
		c.Say(strings.TrimSuffix(at, "."), "%s", wrong.What)
	}
}

// Seats are those of the actors, and of whoever tells, measures and checks.
func (definition) Seats(p *Params) ([]string, error) {
	s, err := p.script()
	if err != nil {
		return nil, err
	}
	return s.Seats(), nil
}

// Models are those that the files name.
func (definition) Models(p *Params) map[string]string {
	s, err := p.script()
	if err != nil {
		return nil
	}
	return s.Models()
}

// World makes an episode.
func (definition) World(p *Params, _ world.Lineup) (world.World, error) {
	s, err := p.script()
	if err != nil {
		return nil, err
	}
	return newGame(s), nil
}
