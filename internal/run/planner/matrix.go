package planner

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"parley/world"
)

// Matrix plays every lineup with every variant of the params a number of times. A cell is one lineup with one variant. Its
// episodes differ only in their deal, and every cell has the same deals, so that cells can be compared in pairs. Every lineup fills all
// seats, with the lineup of any variant, and no two variants have the same names.
type Matrix struct {
	Kind string
	// Seats are the kind's seats in the order of labels.
	Seats []string
	// Lineups map seats to names of agents.
	Lineups []map[string]string
	// Variants are the settings of the params. Default: one without a name, of {}.
	Variants []Variant
	// Repetitions is how often each cell is played. Default: 1.
	Repetitions int
}

// Variant is one setting of a kind's params.
type Variant struct {
	// Variation is the user's name for a group of settings. Labels begin with it, so it contains neither a comma nor a
	// colon: see VariationOf. Empty: none.
	Variation string
	Name      string            // a part of the label of cells; may be empty for one variant of each variation
	Params    json.RawMessage   // with all defaults
	Lineup    map[string]string // fills seats that Lineups leave empty; may be nil
}

// VariationOf returns the first part of a cell's label: its variation, if the matrix has variations.
func VariationOf(cell string) string {
	name, _, _ := strings.Cut(cell, ", ")
	name, _, _ = strings.Cut(name, ": ") // a kind's own plan adds to the label
	return name
}

// LabelValue returns what the label of a cell says about a param, such as quick for preset in "preset=quick: generation 1", or "".
func LabelValue(cell, param string) string {
	cell, _, _ = strings.Cut(cell, ": ") // a kind's own plan adds to the label
	for part := range strings.SplitSeq(cell, ", ") {
		if value, ok := strings.CutPrefix(part, param+"="); ok {
			return value
		}
	}
	return ""
}

// Plan makes m a plan. It plays the first repetition of every cell, then the second, and so on, so that an
// interrupted run has played all cells equally often.
func (m Matrix) Plan() (world.Stages, error) {
	round := world.Block{Rounds: max(1, m.Repetitions)}
	for _, c := range m.Cells() {
		round.Groups = append(round.Groups, world.Group{Spec: c, Size: 1})
	}
	return world.Blocks(round)
}

// Cells returns one spec for each cell, with deal 0, without duplicates.
func (m Matrix) Cells() []world.Spec {
	variants := m.Variants
	if len(variants) == 0 {
		variants = []Variant{{Params: json.RawMessage("{}")}}
	}
	varied := m.varied()
	var cells []world.Spec
	seen := map[string]bool{}
	for _, v := range variants {
		for _, lineup := range m.Lineups {
			s := world.Spec{Kind: m.Kind, Params: v.Params, Lineup: maps.Clone(lineup), Cell: label(varied, lineup, v)}
			maps.Copy(s.Lineup, v.Lineup)
			if !seen[s.Cell] {
				seen[s.Cell] = true
				cells = append(cells, s)
			}
		}
	}
	return cells
}

// varied lists the seats in which different agents sit.
func (m Matrix) varied() []string {
	return slices.DeleteFunc(slices.Clone(m.Seats), func(seat string) bool {
		return !slices.ContainsFunc(m.Lineups, func(l map[string]string) bool { return l[seat] != m.Lineups[0][seat] })
	})
}

// label names a cell by what varies, as "terse, first=small, second=large, messages=4". It is empty if nothing does.
func label(varied []string, lineup map[string]string, v Variant) string {
	parts := make([]string, 0, len(varied)+2)
	if v.Variation != "" {
		parts = append(parts, v.Variation)
	}
	for _, seat := range varied {
		parts = append(parts, seat+"="+lineup[seat])
	}
	if v.Name != "" {
		parts = append(parts, v.Name)
	}
	return strings.Join(parts, ", ")
}
