// Package scenario is the kind of policy simulations: actors with their own goals decide turn
// by turn, a narrator writes what follows, and metrics and checks are taken after every turn.
//
// Package folder reads the files of a scenario, play plays it, and show shows it.
package scenario

import (
	"errors"
	"fmt"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/earlier"
	"parley/worlds/scenario/script"
)

// Kind is the family of scenarios.
func Kind() world.Kind { return world.Define(definition{}) }

// definition implements world.Definition.
type definition struct{}

// About describes the kind.
func (definition) About() world.About {
	return world.About{
		Name: "scenario", Version: 2,
		Doc:     "Actors decide turn by turn in a situation described by a folder of plain files; metrics and checks say how it ended.",
		Example: examplePlan(), ExampleFiles: exampleFiles(),
	}
}

// Defaults returns empty params: the folder has to be given.
func (definition) Defaults() *Params { return &Params{Set: map[string]any{}} }

// Params are the params of a scenario in a plan file. The doc tags describe each.
type Params struct {
	Folder string         `json:"folder" doc:"The folder of the scenario's files, beside the plan file."`
	Turns  int            `json:"turns" doc:"How many turns to play; 0 for as many as the scenario says."`
	Set    map[string]any `json:"set" doc:"Other values for keys of the scenario, as {actors.port-authority.goals: [Stay open.]}."`
	Script *script.Script `json:"script,omitempty" doc:"The scenario itself: read from folder when the plan is, and recorded with the run."`
}

// Load reads the folder. A script that is given instead stays unchanged.
func (definition) Load(p *Params, files world.Files) ([]string, error) {
	if p.Folder == "" {
		return nil, nil // Seats reports what is missing
	}
	if p.Script != nil {
		return nil, errors.New("scenario: params.script: conflicts with folder, from which it would be read; leave one of them out")
	}
	s, advice, err := script.Read(files, p.Folder)
	if err != nil {
		return nil, errors.Join(err, converterHint(files, p.Folder))
	}
	p.Script = s
	return advice, nil
}

// Convert converts a folder of the earlier Scenario Lab.
func (definition) Convert(files world.Files, folder string) (world.Converted, error) {
	return earlier.Convert(files, folder)
}

// script returns the scenario with its changes, or what is wrong with them.
func (p *Params) script() (*script.Script, error) {
	s := p.Script
	switch {
	case s == nil && p.Folder == "":
		return nil, errors.New("scenario: params.folder: is missing; name the folder of the scenario's files")
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
				return nil, errors.New("scenario: params.set.turns: conflicts with turns; give one of them")
			}
			set[key] = v
		}
	}
	c := world.ParamErrors{Kind: "scenario"}
	// Load checked what it read, so only what is set can be wrong, or
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

// complain reports problems at the params that caused them.
func (p *Params) complain(c *world.ParamErrors, where string, problems []script.Problem, named func(string) string) {
	for _, wrong := range problems {
		at := where + named(wrong.Key)
		if p.Turns != 0 && at == "set.turns" {
			at = "turns"
		}
		c.Addf(strings.TrimSuffix(at, "."), "%s", wrong.What)
	}
}

// Seats returns the seats of the actors, the narrator, and those that measure and check.
func (definition) Seats(p *Params) ([]string, error) {
	s, err := p.script()
	if err != nil {
		return nil, err
	}
	return s.Seats(), nil
}

// Models returns the models that the files name.
func (definition) Models(p *Params) map[string]string {
	s, err := p.script()
	if err != nil {
		return nil
	}
	return s.Models()
}

// World returns an episode.
func (definition) World(p *Params, _ world.Lineup) (world.World, error) {
	s, err := p.script()
	if err != nil {
		return nil, err
	}
	return newPlay(s), nil
}

// TaskName returns the name of the scenario. What a plan sets in it may differ between compared episodes.
func (definition) TaskName(p *Params) (name string, whole bool) {
	s, err := p.script()
	if err != nil {
		return "", false
	}
	return s.Name, false
}

// StandIn answers for the simulated provider.
func (definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return playStandin(model, req, seed)
}

// Exhibitor makes the exhibits of a report.
func (definition) Exhibitor() world.Exhibitor { return showExhibitor() }

// Story shows an episode turn by turn.
func (definition) Story(_ world.Played, entries []world.TranscriptEntry) []world.Exhibit {
	return story(world.NotesOf(entries))
}

// Files writes an episode as files for people to read.
func (definition) Files(p world.Played, notes []world.Note) map[string]string {
	return showFiles(p, notes)
}

// Tables are the tables of events and statements.
func (definition) Tables() []world.NoteTable { return tables() }

// Measures returns the scores of a scenario: its metrics, the turns and the issues.
func (definition) Measures(p *Params) []world.Measure {
	s, err := p.script()
	if err != nil {
		return nil
	}
	actors := make([]string, len(s.Actors))
	for i, a := range s.Actors {
		actors[i] = a.ShortName
	}
	var all []world.Measure
	for _, m := range s.Metrics {
		var seats []string
		if m.ActorSpecific {
			seats = actors
		}
		for _, category := range m.Categories {
			all = append(all, world.Measure{Name: categoryScore(m.Name, category), Seats: seats, Bounds: world.Share()})
		}
		if len(m.Categories) == 0 {
			all = append(all, world.Measure{Name: m.Name, Seats: seats, Bounds: bounds(m.Range, m.Type == script.Boolean)})
		}
	}
	all = append(all, world.Measure{Name: "turns", Bounds: world.Bounds{High: float64(s.Turns)}})
	if len(s.Validation.Checks) > 0 {
		all = append(all, world.Measure{Name: "issues", Bounds: world.AtLeast0()})
	}
	return all
}
