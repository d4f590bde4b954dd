package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Matrix plays every lineup with every variant of the params a number of times. A cell
// is one lineup with one variant; its episodes differ in their deal only, and every
// cell has the same deals, so that cells can be compared pair by pair.
type Matrix struct {
	Kind string
	// Seats is the order of the kind's seats, for labels and for Swap.
	Seats []string
	// Lineups are seat to the name of an agent: see Pairs.
	Lineups []map[string]string
	// Variants are what to vary of the params. Default: one, without a name, of {}.
	Variants []Variant
	// Repetitions is how often each cell is played. Default: 1.
	Repetitions int
	// Swap plays each lineup also with its agents moved round the seats, until each has
	// sat everywhere: with two seats, swapped. Default: as listed only.
	Swap bool
}

// Variant is one setting of a kind's params.
type Variant struct {
	// Variation is what the user calls a group of settings. Labels begin with it, so it has neither
	// a comma nor a colon: see VariationOf. Empty: none.
	Variation string
	Name      string            // what cells are labelled with; may be empty for one of each variation
	Params    json.RawMessage   // resolved
	Lineup    map[string]string // who sits in seats that Lineups leave empty, or may be nil
}

// VariationOf is the first part of a cell's label: its variation, in a matrix that has any.
func VariationOf(cell string) string {
	name, _, _ := strings.Cut(cell, ", ")
	name, _, _ = strings.Cut(name, ": ") // a kind's own plan names parts of a cell
	return name
}

// Plan checks m and makes it a plan. It plays the first repetition of every cell, then
// the second, and so on: a run that is cut short has been fair to all.
func (m Matrix) Plan() (Plan, error) {
	cells, err := m.Cells()
	if err != nil {
		return nil, err
	}
	return rounds(cells, 0, max(1, m.Repetitions))
}

// rounds repeats specs in turn, with deals from one up.
func rounds(specs []Spec, deal, n int) (Specs, error) {
	groups := make([]Group, len(specs))
	for i, s := range specs {
		groups[i] = Group{s.dealt(deal), 1}
	}
	return Blocks(Block{groups, n})
}

// Cells returns one spec for each cell, with deal 0. A cell that comes up twice, such as
// a lineup that Swap makes of another, is there once.
func (m Matrix) Cells() ([]Spec, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	variants := m.Variants
	if len(variants) == 0 {
		variants = []Variant{{Params: json.RawMessage("{}")}}
	}
	seatings := m.seatings()
	varied := m.varied(seatings)
	var cells []Spec
	seen := map[string]bool{}
	for _, v := range variants {
		for _, lineup := range seatings {
			s := Spec{Kind: m.Kind, Params: v.Params, Lineup: maps.Clone(lineup), Cell: label(varied, lineup, v)}
			maps.Copy(s.Lineup, v.Lineup)
			if !seen[s.Cell] {
				seen[s.Cell] = true
				cells = append(cells, s)
			}
		}
	}
	return cells, nil
}

func (m Matrix) check() error {
	if len(m.Seats) == 0 {
		return errors.New("world: matrix: no seats")
	}
	if len(m.Lineups) == 0 {
		return errors.New("world: matrix: no lineups")
	}
	for i, l := range m.Lineups {
		for _, seat := range m.Seats {
			if l[seat] == "" && (len(m.Variants) == 0 || slices.ContainsFunc(m.Variants, func(v Variant) bool { return v.Lineup[seat] == "" })) {
				return fmt.Errorf("world: matrix: lineup %d: nobody sits in %s", i+1, seat)
			}
		}
		if len(l) > len(m.Seats) {
			return fmt.Errorf("world: matrix: lineup %d: %s: the seats are %s", i+1,
				strings.Join(slices.Sorted(maps.Keys(l)), ", "), strings.Join(m.Seats, ", "))
		}
	}
	names := map[[2]string]bool{}
	for _, v := range m.Variants {
		if names[[2]string{v.Variation, v.Name}] {
			return fmt.Errorf("world: matrix: two variants are named %q", label(nil, nil, v))
		}
		names[[2]string{v.Variation, v.Name}] = true
	}
	return nil
}

// seatings returns the lineups, each followed by what Swap makes of it.
func (m Matrix) seatings() []map[string]string {
	if !m.Swap {
		return m.Lineups
	}
	var out []map[string]string
	n := len(m.Seats)
	for _, l := range m.Lineups {
		for by := range n {
			moved := make(map[string]string, n)
			for i, seat := range m.Seats {
				moved[seat] = l[m.Seats[(i+by)%n]]
			}
			out = append(out, moved)
		}
	}
	return out
}

// varied lists the seats in which not always the same agent sits.
func (m Matrix) varied(seatings []map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(m.Seats), func(seat string) bool {
		return !slices.ContainsFunc(seatings, func(l map[string]string) bool { return l[seat] != seatings[0][seat] })
	})
}

// label names a cell by what varies, as "terse, first=small, second=large, messages=4". It is
// empty where nothing does.
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

// Pairs returns a lineup for each ordered pair of agents: who sits first and who second
// both ways round, and with self each also against itself.
func Pairs(first, second string, agents []string, self bool) []map[string]string {
	var out []map[string]string
	for i, a := range agents {
		for j, b := range agents {
			if i != j || self {
				out = append(out, map[string]string{first: a, second: b})
			}
		}
	}
	return out
}
