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

// Load reads the files that params name: templates and a position.
func (d *definition) Load(p *Params, files world.Files) ([]string, error) {
	return nil, errors.Join(loadTemplates(p, files), loadPosition(p, files))
}

func loadTemplates(p *Params, files world.Files) error {
	keys, err := keysOf("templates", p.Templates)
	for _, key := range keys {
		folder := p.Templates[key]
		names := files.Match(path.Join(folder, "*.txt"))
		if len(names) == 0 {
			err = errors.Join(err, wrong("templates."+key, "no template in %q: want files such as orders.txt; the names are %s", folder, strings.Join(promptNames(), ", ")))
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
				failed = checkTemplate(what, text)
			}
			if failed != nil {
				bad = append(bad, fmt.Sprintf("%s: %v", name, failed))
				continue
			}
			texts[what] = text
		}
		if len(bad) > 0 {
			err = errors.Join(err, wrong("templates."+key, "%s", strings.Join(bad, "; ")))
		}
		p.Prompts[key] = texts
	}
	return err
}

// checkTemplate checks the name and the text of a template.
func checkTemplate(name, text string) error {
	if !slices.Contains(promptNames(), name) {
		return fmt.Errorf("unknown template %.40q; want one of %s", name, strings.Join(promptNames(), ", "))
	}
	return checkPrompt(text)
}

func loadPosition(p *Params, files world.Files) error {
	switch {
	case p.Start == "" && p.StartPhase != "":
		return wrong("start_phase", "%s: set start to a saved game", p.StartPhase)
	case p.Start == "":
		return nil
	case p.Position.Name != "":
		return wrong("position", "is set, but so is start, from which it would be read: remove one of them")
	}
	text, err := files.Text(p.Start)
	if err != nil {
		return wrong("start", "%w", err)
	}
	state, err := SavedPosition([]byte(text), p.StartPhase)
	if err != nil {
		return wrong("start", "%s: %v", p.Start, err)
	}
	p.Position = state
	return nil
}

// sets returns the templates of each power. Powers with the same templates share a set.
func (d *definition) sets(p *Params) (sets [rules.Turkey + 1]*promptSet, err error) {
	keys, err := keysOf("prompts", p.Prompts)
	for _, key := range keys {
		for _, name := range slices.Sorted(maps.Keys(p.Prompts[key])) {
			if bad := checkTemplate(name, p.Prompts[key][name]); bad != nil {
				err = errors.Join(err, wrong("prompts."+key+"."+name, "%w", bad))
			}
		}
	}
	if err != nil {
		return sets, err
	}
	if sets[rules.None], err = d.prompts.With(p.Prompts[everybody]); err != nil {
		return sets, wrong("prompts."+everybody, "%w", err)
	}
	for _, w := range rules.Powers() {
		if sets[w], err = sets[rules.None].With(p.Prompts[w.String()]); err != nil {
			return sets, wrong("prompts."+w.String(), "%w", err)
		}
	}
	return sets, nil
}
