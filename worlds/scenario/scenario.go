// Package scenario is the kind of policy simulations: actors with their own goals decide turn
// by turn, a narrator writes what follows, and metrics and checks are taken after every turn.
//
// Package script has a scenario as data and reads it from its folder, and package earlier converts
// folders of the earlier Scenario Lab. Here game.go plays a scenario, with talk.go, assess.go and
// prompt.go; record.go has what is recorded; chronicle.go reads it back for replay.go and files.go;
// exhibit.go is for reports, and standin.go plays for the simulated provider.
package scenario

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
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
	s, advice, err := script.ReadFolder(files, p.Folder)
	if err != nil {
		return nil, errors.Join(err, converterHint(files, p.Folder))
	}
	p.Script = s
	return advice, nil
}

// Convert converts a folder of the earlier Scenario Lab.
func (definition) Convert(files world.Files, folder, name string) (part.Converted, error) {
	return earlier.Convert(files, folder, name)
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
		p.addProblems(&c, "script.", s.Problems(), asWritten)
	} else {
		changed, problems := s.Change(set)
		p.addProblems(&c, "set.", problems, asWritten)
		p.addProblems(&c, "set.", changed.Problems(), changed.Called)
		s = changed
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// addProblems reports problems at the params that caused them.
func (p *Params) addProblems(c *world.ParamErrors, where string, problems []script.Problem, named func(string) string) {
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
	return newGame(s), nil
}

// TaskName returns the name of the scenario. What a plan sets in it may differ between compared episodes.
func (definition) TaskName(p *Params) world.Task {
	s, err := p.script()
	if err != nil {
		return world.Task{}
	}
	return world.Task{Name: s.Name}
}

// StandIn answers for the simulated provider.
func (definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return standInReply(model, req, seed)
}

// Exhibitor makes the exhibits of a report.
func (definition) Exhibitor() exhibit.Exhibitor { return newExhibitor() }

// Story shows an episode turn by turn.
func (definition) Story(_ world.Played, entries []world.TranscriptEntry) []exhibit.Exhibit {
	return episodeStory(entries)
}

// Files writes an episode as files for people to read.
func (definition) Files(_ json.RawMessage, p world.Played, notes []world.Note) map[string]string {
	return episodeFiles(p, notes)
}

// Tables are the tables of events and statements.
func (definition) Tables() []part.NoteTable { return noteTables() }

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

// The example is a plan and a scenario folder that you can read and run.
//
//go:embed example
var example embed.FS

// examplePlan returns the plan file of the example.
func examplePlan() string {
	b, err := example.ReadFile("example/plan.yaml")
	if err != nil {
		return "" // it is embedded
	}
	return string(b)
}

// exampleFiles returns the other files, by name.
func exampleFiles() map[string]string {
	files := map[string]string{}
	collectFiles("", files)
	delete(files, "plan.yaml")
	return files
}

func collectFiles(dir string, files map[string]string) {
	entries, err := example.ReadDir("example" + dir)
	if err != nil {
		return // it is embedded
	}
	for _, e := range entries {
		name := dir + "/" + e.Name()
		if e.IsDir() {
			collectFiles(name, files)
		} else if b, err := example.ReadFile("example" + name); err == nil {
			files[name[1:]] = string(b)
		}
	}
}

// earlierKeys returns keys that only the earlier Scenario Lab had, by pattern of file.
func earlierKeys() map[string][]string {
	return map[string][]string{
		"scenario.yaml": {"num_turns", "context_window", "max_per_turn", "enabled"},
		"actors/*":      {"llm_model", "decision_making_style", "response_format"},
		"*metrics.yaml": {
			"extraction_model", "thresholds", "data_type", "options", "extraction_type", "extraction_method", "extraction_prompt", "prompt_template",
			"regex", "patterns", "min_value", "max_value", "aggregation", "export_format", "auto_export", "export_path",
		},
		"validation-rules.yaml": {
			"prompt_template", "run_at_scenario_end", "generate_summary_report", "reporting", "severity_thresholds", "report_format", "include_in_costs", "rules",
		},
		"*events.yaml": {
			"events", "trends", "random_events", "conditional_events", "scheduled_events", "id", "effect", "effects", "impact", "schedule",
			"probability_per_turn", "chance", "interval", "start_turn", "end_turn", "trigger",
		},
	}
}

// converterHint returns an error that names the converter, if a folder has keys of the earlier Scenario Lab.
func converterHint(files world.Files, folder string) error {
	dir := strings.TrimSuffix(path.Clean(folder), "/scenario.yaml")
	keys := earlierKeys()
	for _, pattern := range slices.Sorted(maps.Keys(keys)) {
		for _, file := range files.Match(dir + "/" + pattern) {
			all := map[string]any{}
			if d, err := files.YAML(file, &all); err != nil || d == nil {
				continue // it is reported anyway
			}
			if key := anyKey(all, keys[pattern]); key != "" {
				return fmt.Errorf("params.folder: %q has the key %s of the earlier Scenario Lab: convert the folder with parley init scenario --from FOLDER", folder, key)
			}
		}
	}
	return nil
}

// anyKey returns the first of the keys that a value has at any depth, or "".
func anyKey(v any, keys []string) string {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if k := anyKey(item, keys); k != "" {
				return k
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains(keys, name) {
				return name
			}
			if k := anyKey(v[name], keys); k != "" {
				return k
			}
		}
	}
	return ""
}
