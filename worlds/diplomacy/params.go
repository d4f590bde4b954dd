package diplomacy

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// Params are the params of a game in a plan file. The doc tags explain each.
type Params struct {
	Rounds     int                          `json:"rounds" doc:"The maximum number of rounds of talks before the orders of spring and fall. 0: no press. Talks end early if nobody has anything to say." range:"0..10"`
	Messages   int                          `json:"messages" doc:"The maximum number of messages that a power writes in a round." range:"1..20"`
	MaxYear    int                          `json:"max_year" doc:"The last year that is played, winter included: at most 100 years after the first."`
	EndPhase   string                       `json:"end_phase" doc:"The last phase that is played, such as F1903M, if it is before the end of max_year. Empty: the end of max_year."`
	Scoring    string                       `json:"scoring" doc:"The score of a power: game (years survived, centres, a bonus for a solo), share (of the centres), draw (1 for a solo, else 1 divided by the number of survivors), welfare (centres without a unit, summed over the winters; nobody wins by conquest)." oneof:"game,share,draw,welfare"`
	Diary      bool                         `json:"diary" doc:"Whether powers keep a diary, goals and relations: calls at the start, after talks and after results."`
	Planning   bool                         `json:"planning" doc:"Whether powers write a plan before the talks (or orders) of spring and fall: one more call for each."`
	DrawFrom   int                          `json:"draw_from" doc:"The first year in which powers vote, with their orders, on a draw or on conceding the game to one of them. 0: never."`
	Judge      bool                         `json:"judge" doc:"Whether an agent in the seat judge lists the promises in the messages of each phase. They are checked against the orders."`
	Templates  map[string]string            `json:"templates" doc:"Folders of prompt templates by power, or ALL for everybody: {FRANCE: prompts/bold}. The standard templates replace missing files."`
	Prompts    map[string]map[string]string `json:"prompts" doc:"The templates themselves, by power or ALL and name. They are read from templates together with the plan, and recorded with the run."`
	Start      string                       `json:"start" doc:"A JSON file with the position to start from: a state of the Python package diplomacy, or a saved game of it. Empty: the standard start."`
	StartPhase string                       `json:"start_phase" doc:"The phase of a saved game to start from, such as S1905M. Empty: its last phase."`
	Position   rules.State                  `json:"position" doc:"The position itself. It is read from start together with the plan, and recorded with the run."`
}

// Defaults returns a game with talks and diaries and without a judge.
func (d *definition) Defaults() *Params {
	return &Params{
		Rounds: 3, Messages: 5, MaxYear: 1910, Scoring: scoreGame, Diary: true,
		Templates: map[string]string{}, Prompts: map[string]map[string]string{},
		Position: rules.State{Units: map[string][]string{}, Retreats: map[string]map[string][]string{}, Centers: map[string][]string{}},
	}
}

// everybody means all powers in Templates and Prompts.
const everybody = "ALL"

// paramError is an error about a param.
func paramError(param, format string, args ...any) error {
	return fmt.Errorf("diplomacy: params.%s: %w", param, fmt.Errorf(format, args...))
}

// maxYears is the maximum length of a game.
const maxYears = 100

// check returns all errors in p, each with the name of its param.
func (d *definition) check(p *Params) error {
	c := &world.ParamErrors{Kind: "diplomacy"}
	start, err := d.startPosition(p)
	if err != nil {
		c.Add(err)
		start = d.rules.Start()
	}
	first := start.Phase.Year
	c.IntRange("max_year", p.MaxYear, first, first+maxYears)
	if p.DrawFrom != 0 && (p.DrawFrom < first || p.DrawFrom > p.MaxYear) {
		c.Addf("draw_from", "%d: want a year from %d to %d, or 0 for never", p.DrawFrom, first, p.MaxYear)
	}
	if p.EndPhase != "" {
		switch end, err := rules.ParsePhase(p.EndPhase); {
		case err != nil:
			c.Addf("end_phase", "%.40q: a phase is written like S1903M, F1903R or W1903A", p.EndPhase)
		case phaseRank(end) < phaseRank(start.Phase) || end.Year > p.MaxYear:
			c.Addf("end_phase", "%s: want a phase from %s to the end of %d", p.EndPhase, start.Phase, p.MaxYear)
		}
	}
	if p.Judge && p.Rounds == 0 {
		c.Addf("judge", "there is nothing to judge without talks: set rounds to 1 or more")
	}
	_, err = d.promptSets(p)
	c.Add(err)
	return c.Err()
}

// startPosition is the position the game begins with.
func (d *definition) startPosition(p *Params) (rules.Position, error) {
	if p.Position.Name == "" {
		if p.Start != "" {
			return rules.Position{}, paramError("start", "%q %w: a matrix cannot vary it", p.Start, world.ErrUnread)
		}
		return d.rules.Start(), nil
	}
	pos, err := d.rules.FromState(p.Position)
	if err != nil {
		return pos, paramError("position", "%v", err)
	}
	if !slices.ContainsFunc(rules.Powers(), pos.Alive) {
		return pos, paramError("position", "nobody has a unit or a centre")
	}
	return pos, nil
}

// templateKeys lists the powers that templates are for, everybody first, and checks that they exist.
func templateKeys[T any](param string, m map[string]T) (keys []string, err error) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch {
		case key == everybody:
			keys = slices.Insert(keys, 0, key)
		case slices.Contains(rules.PowerNames(), key):
			keys = append(keys, key)
		default:
			err = errors.Join(err, paramError(param+"."+key, "unknown power; want one of %s or %s", strings.Join(rules.PowerNames(), ", "), everybody))
		}
	}
	return keys, err
}

// Load reads the files that params name: templates and a position.
func (d *definition) Load(p *Params, files world.Files) ([]string, error) {
	return nil, errors.Join(loadTemplates(p, files), loadPosition(p, files))
}

func loadTemplates(p *Params, files world.Files) error {
	keys, err := templateKeys("templates", p.Templates)
	for _, key := range keys {
		folder := p.Templates[key]
		names := files.Match(path.Join(folder, "*.txt"))
		if len(names) == 0 {
			err = errors.Join(err, paramError("templates."+key, "no template in %q: want files such as orders.txt; the names are %s", folder, strings.Join(templateNames(), ", ")))
			continue
		}
		if p.Prompts == nil {
			p.Prompts = map[string]map[string]string{}
		}
		texts := map[string]string{}
		var bad []string // errors, file by file
		for _, name := range names {
			what := strings.TrimSuffix(path.Base(name), ".txt")
			text, failed := files.Text(name)
			if failed == nil {
				_, failed = readTemplate(what, text)
			}
			if failed != nil {
				bad = append(bad, fmt.Sprintf("%s: %v", name, failed))
				continue
			}
			texts[what] = text
		}
		if len(bad) > 0 {
			err = errors.Join(err, paramError("templates."+key, "%s", strings.Join(bad, "; ")))
		}
		p.Prompts[key] = texts
	}
	return err
}

func loadPosition(p *Params, files world.Files) error {
	switch {
	case p.Start == "" && p.StartPhase != "":
		return paramError("start_phase", "%s: set start to a saved game", p.StartPhase)
	case p.Start == "":
		return nil
	case p.Position.Name != "":
		return paramError("position", "is set, but so is start, from which it would be read: remove one of them")
	}
	text, err := files.Text(p.Start)
	if err != nil {
		return paramError("start", "%w", err)
	}
	state, err := readPosition([]byte(text), p.StartPhase)
	if err != nil {
		return paramError("start", "%s: %v", p.Start, err)
	}
	p.Position = state
	return nil
}

// promptSets returns the templates of each power. Powers with the same templates share a set.
func (d *definition) promptSets(p *Params) (sets [rules.Turkey + 1]*promptSet, err error) {
	_, err = templateKeys("prompts", p.Prompts)
	replaced := func(standard *promptSet, key string) *promptSet {
		return standard.with(p.Prompts[key], func(name string, bad error) {
			err = errors.Join(err, paramError("prompts."+key+"."+name, "%w", bad))
		})
	}
	sets[rules.None] = replaced(d.prompts, everybody)
	for _, w := range rules.Powers() {
		sets[w] = replaced(sets[rules.None], w.String())
	}
	return sets, err
}
