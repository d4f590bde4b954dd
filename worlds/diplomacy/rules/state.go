package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// State is a position as the Python package diplomacy writes it in JSON. Powers are
// written FRANCE; a unit that must retreat is among the units with a star,
// *A BUR, and among the retreats with the locations that it can go to.
type State struct {
	Name     string                         `json:"name"`
	Units    map[string][]string            `json:"units"`
	Retreats map[string]map[string][]string `json:"retreats"`
	Centers  map[string][]string            `json:"centers"`
}

// State returns a position as a State, which does not hold where attacks came from.
func (r *Rules) State(p *Position) State {
	s := State{
		Name: p.Phase.String(), Units: map[string][]string{},
		Retreats: map[string]map[string][]string{}, Centers: map[string][]string{},
	}
	for _, w := range Powers() {
		s.Units[w.String()] = append([]string{}, r.UnitTexts(p, w)...)
		s.Centers[w.String()] = append([]string{}, r.CentreTexts(p, w)...)
		s.Retreats[w.String()] = map[string][]string{}
	}
	for i := range p.Dislodged {
		if d := &p.Dislodged[i]; d.Unit.Power != None {
			w := d.Unit.Power.String()
			s.Units[w] = append(s.Units[w], "*"+r.Board.UnitText(d.Unit))
			s.Retreats[w][r.Board.UnitText(d.Unit)] = r.RetreatTexts(d)
		}
	}
	return s
}

// FromState reads a position.
func (r *Rules) FromState(s State) (Position, error) {
	var p Position
	var err error
	if p.Phase, err = ParsePhase(s.Name); err != nil {
		return p, err
	}
	if err := r.Fill(&p, s.Units, s.Centers); err != nil {
		return p, fmt.Errorf("rules: %w", err)
	}
	retreats, err := ByPower(s.Retreats)
	if err != nil {
		return p, fmt.Errorf("rules: retreats: %w", err)
	}
	for w, units := range retreats {
		for _, text := range slices.Sorted(maps.Keys(units)) {
			if err := r.Dislodge(&p, Power(w), text, "", append([]string{}, units[text]...)); err != nil {
				return p, fmt.Errorf("rules: retreats: %s: %w", Power(w).Name(), err)
			}
		}
	}
	return p, nil
}

// Fill adds the units and centres of each power. It skips units with a star: those must
// retreat.
func (r *Rules) Fill(p *Position, units, centres map[string][]string) error {
	for _, part := range []struct {
		name  string
		lists map[string][]string
		add   func(*Position, Power, string) error
	}{{"units", units, r.Put}, {"centers", centres, r.Own}} {
		lists, err := ByPower(part.lists)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		for w, list := range lists {
			for _, text := range list {
				if part.name == "units" && strings.HasPrefix(text, "*") {
					continue
				}
				if err := part.add(p, Power(w), text); err != nil {
					return fmt.Errorf("%s: %s: %w", part.name, Power(w).Name(), err)
				}
			}
		}
	}
	return nil
}

// ByPower converts a map by the powers' names to a list in the order of powers.
func ByPower[T any](lists map[string]T) ([Turkey + 1]T, error) {
	var all [Turkey + 1]T
	var seen [Turkey + 1]bool
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		w, ok := ParsePower(name)
		if !ok {
			return all, fmt.Errorf("unknown power %q; want one of %s", name, powerNames())
		}
		if seen[w] {
			return all, fmt.Errorf("%s is listed twice", w.Name())
		}
		seen[w], all[w] = true, lists[name]
	}
	return all, nil
}

func powerNames() string {
	var names []string
	for _, w := range Powers() {
		names = append(names, w.Name())
	}
	return strings.Join(names, ", ")
}
