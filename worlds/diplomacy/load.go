package diplomacy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/diplomacy/prompt"
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/saved"
)

// load reads the files that params name: templates and a position.
func (k *kind) load(params any, files world.Files) ([]string, error) {
	p, ok := params.(*Params)
	if !ok || p == nil {
		return nil, fmt.Errorf("diplomacy: params are %T, want *diplomacy.Params", params)
	}
	if err := loadTemplates(p, files); err != nil {
		return nil, err
	}
	return nil, loadPosition(p, files)
}

func loadTemplates(p *Params, files world.Files) error {
	keys, err := keysOf("templates", p.Templates)
	if err != nil {
		return err
	}
	for _, key := range keys {
		folder := p.Templates[key]
		names := files.Match(path.Join(folder, "*.txt"))
		if len(names) == 0 {
			return wrong("templates."+key, "there is no template in %q: want files such as orders.txt; the names are %s", folder, strings.Join(prompt.Names(), ", "))
		}
		if p.Prompts == nil {
			p.Prompts = map[string]map[string]string{}
		}
		texts := map[string]string{}
		for _, name := range names {
			what := strings.TrimSuffix(path.Base(name), ".txt")
			if !slices.Contains(prompt.Names(), what) {
				return wrong("templates."+key, "%s: %q is no template: use %s", name, what, strings.Join(prompt.Names(), ", "))
			}
			text, err := files.Text(name)
			if err != nil {
				return err
			}
			if err := prompt.Check(text); err != nil {
				return wrong("templates."+key, "%s: %v", name, err)
			}
			texts[what] = text
		}
		p.Prompts[key] = texts
	}
	return nil
}

func loadPosition(p *Params, files world.Files) error {
	switch {
	case p.Start == "" && p.StartPhase != "":
		return wrong("start_phase", "%s of what? name a saved game in start", p.StartPhase)
	case p.Start == "":
		return nil
	case p.Position.Name != "":
		return wrong("position", "stands beside start, from which it would be read: leave one of them out")
	}
	text, err := files.Text(p.Start)
	if err != nil {
		return err
	}
	state, err := saved.Position([]byte(text), p.StartPhase)
	if err != nil {
		return wrong("start", "%s: %v", p.Start, err)
	}
	p.Position = state
	return nil
}

// sets are the templates of each power. Those who are told the same share one.
func (k *kind) sets(p *Params) (sets [board.Turkey + 1]*prompt.Set, err error) {
	if _, err := keysOf("prompts", p.Prompts); err != nil {
		return sets, err
	}
	all, err := k.prompts.With(p.Prompts[everybody])
	if err != nil {
		return sets, wrong("prompts."+everybody, "%v", err)
	}
	sets[board.None] = all
	for _, w := range board.Powers() {
		if sets[w], err = all.With(p.Prompts[w.String()]); err != nil {
			return sets, wrong("prompts."+w.String(), "%v", err)
		}
	}
	return sets, nil
}
