package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/worlds/diplomacy/rules/board"
)

// State is a position as the Python package diplomacy writes it in JSON. Powers are
// written FRANCE; a unit that has to retreat stands among the units with a star,
// *A BUR, and again with where it may go.
type State struct {
	Name     string                         `json:"name"`
	Units    map[string][]string            `json:"units"`
	Retreats map[string]map[string][]string `json:"retreats"`
	Centers  map[string][]string            `json:"centers"`
}

// State writes a position. What a State has no room for, the provinces that attacks
// came from, is lost.
func (r *Rules) State(p *Position) State {
	s := State{
		Name: p.Phase.String(), Units: map[string][]string{},
		Retreats: map[string]map[string][]string{}, Centers: map[string][]string{},
	}
	for _, w := range board.Powers() {
		s.Units[w.String()] = append([]string{}, r.UnitTexts(p, w)...)
		s.Centers[w.String()] = append([]string{}, r.CentreTexts(p, w)...)
		s.Retreats[w.String()] = map[string][]string{}
	}
	for i := range p.Dislodged {
		if d := &p.Dislodged[i]; d.Unit.Power != board.None {
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
	if err := r.PutAll(&p, s.Units); err != nil {
		return p, fmt.Errorf("rules: units: %w", err)
	}
	if err := r.OwnAll(&p, s.Centers); err != nil {
		return p, fmt.Errorf("rules: centers: %w", err)
	}
	retreats, err := ByPower(s.Retreats)
	if err != nil {
		return p, fmt.Errorf("rules: retreats: %w", err)
	}
	for w, units := range retreats {
		for _, text := range slices.Sorted(maps.Keys(units)) {
			if err := r.Dislodge(&p, board.Power(w), text, "", append([]string{}, units[text]...)); err != nil {
				return p, fmt.Errorf("rules: retreats: %s: %w", board.Power(w).Name(), err)
			}
		}
	}
	return p, nil
}

// PutAll places the units of each power. Those with a star have to retreat, and are
// left out.
func (r *Rules) PutAll(p *Position, units map[string][]string) error {
	lists, err := ByPower(units)
	if err != nil {
		return err
	}
	for w, list := range lists {
		for _, text := range list {
			if strings.HasPrefix(text, "*") {
				continue
			}
			if err := r.Put(p, board.Power(w), text); err != nil {
				return fmt.Errorf("%s: %w", board.Power(w).Name(), err)
			}
		}
	}
	return nil
}

// OwnAll gives each power its centres.
func (r *Rules) OwnAll(p *Position, centres map[string][]string) error {
	lists, err := ByPower(centres)
	if err != nil {
		return err
	}
	for w, list := range lists {
		for _, text := range list {
			if err := r.Own(p, board.Power(w), text); err != nil {
				return fmt.Errorf("%s: %w", board.Power(w).Name(), err)
			}
		}
	}
	return nil
}

// ByPower puts what is listed by the powers' names in their order.
func ByPower[T any](lists map[string]T) ([board.Turkey + 1]T, error) {
	var all [board.Turkey + 1]T
	var seen [board.Turkey + 1]bool
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		w, ok := board.ParsePower(name)
		if !ok {
			return all, fmt.Errorf("%q is no power; the powers are %s", name, powerNames())
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
	for _, w := range board.Powers() {
		names = append(names, w.Name())
	}
	return strings.Join(names, ", ")
}
