// Part matrix is the matrix of a plan file: which agents sit in which seats, with which params, and
// how evenly.
//
// It starts nothing, and opens no file or connection.

package planfile

import (
	"fmt"
	"maps"
	"slices"
)

// maxCells is the largest number of cells of a matrix.
const maxCells = 100_000

// Matrix plays agents in seats in every way, with every combination of params.
type Matrix struct {
	// Agents are put into seats. Default: none; the lineup does not change.
	Agents []string `json:"agents,omitempty"`
	// Seats are the seats for Agents. Default: those that the lineup leaves empty.
	Seats []string `json:"seats,omitempty"`
	// Lineup lists agents to try in a seat, by seat, independent of other seats. Default: none.
	Lineup map[string][]string `json:"lineup,omitempty"`
	// Lineups are the lineups to play, instead of Agents: seat to agent. Default: none.
	Lineups []map[string]string `json:"lineups,omitempty"`
	// Self allows an agent in several of the seats. Default: false.
	Self bool `json:"self"`
	// Swap also plays the same agents in other seats. Default: true.
	Swap bool `json:"swap"`
	// Rotate is latin or williams: see docs/reference/plan-file.md. Default: every order, or one, depending on Swap.
	Rotate string `json:"rotate,omitempty"`
	// Params lists values to try, by param. Default: none.
	Params map[string][]any `json:"params,omitempty"`
	// Variations are groups of settings, by name. Default: none.
	Variations map[string]Variation `json:"variations,omitempty"`
	// Repeat is the number of episodes of each cell. Default: 1; 0 under Until.
	Repeat int `json:"repeat,omitempty"`
}

// Variation is a group of settings of a matrix.
type Variation struct {
	// Params override those of the plan; mappings are merged. Default: none.
	Params map[string]any `json:"params,omitempty"`
	// Lineup overrides that of the plan: seat to agent. Default: none.
	Lineup map[string]string `json:"lineup,omitempty"`
	// Tags group scores. Default: none.
	Tags map[string]string `json:"tags,omitempty"`
}

// FillsSeats reports whether the matrix fills any seat. Otherwise it varies only params.
func (m *Matrix) FillsSeats() bool {
	return m != nil && (len(m.Agents) > 0 || len(m.Seats) > 0 || len(m.OwnSeats()) > 0)
}

// UnmarshalJSON sets the defaults that are not zero.
func (m *Matrix) UnmarshalJSON(b []byte) error {
	type plain Matrix
	v := plain{Swap: true}
	if err := unmarshal(b, &v); err != nil {
		return fmt.Errorf("config: matrix: %w", err)
	}
	*m = Matrix(v)
	return nil
}

// OwnSeats returns the seats that Lineup, Lineups or Variations fill.
func (m *Matrix) OwnSeats() map[string]bool {
	seats := map[string]bool{}
	for _, l := range append(slices.Clone(m.Lineups), m.variationLineups()...) {
		for seat := range l {
			seats[seat] = true
		}
	}
	for seat := range m.Lineup {
		seats[seat] = true
	}
	return seats
}

// variationLineups lists the lineups of the variations, in no order.
func (m *Matrix) variationLineups() (all []map[string]string) {
	for _, v := range m.Variations {
		all = append(all, v.Lineup)
	}
	return all
}

// AgentNames lists the agents that the matrix puts into seats, with repetitions.
func (m *Matrix) AgentNames() []string {
	names := slices.Concat(m.Agents, slices.Concat(slices.Collect(maps.Values(m.Lineup))...))
	for _, l := range append(slices.Clone(m.Lineups), m.variationLineups()...) {
		names = slices.AppendSeq(names, maps.Values(l))
	}
	return names
}
