package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/config/schema"
	"parley/internal/planner"
	"parley/world"
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
	// Rotate is latin or williams: see rotated. Default: every order, or one, depending on Swap.
	Rotate string `json:"rotate,omitempty"`
	// Params lists values to try, by param. Default: none.
	Params map[string][]any `json:"params,omitempty"`
	// Variations are groups of settings, by name. Default: none.
	Variations map[string]Variation `json:"variations,omitempty"`
	// Repeat is the number of episodes of each cell. Default: 1; 0 under Until.
	Repeat int `json:"repeat,omitempty"`
}

// seats reports whether the matrix fills any seat. Otherwise it varies only params.
func (m *Matrix) seats() bool {
	return m != nil && (len(m.Agents) > 0 || len(m.Seats) > 0 || len(m.ownSeats()) > 0)
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

// World makes the plan that the engine plays, a new one for each run or resume: the plan of the file,
// or the plan that the kind makes of it. It cannot fail for a Plan that was loaded.
func (p *Plan) World() (world.Plan, error) {
	plan, err := p.Asked()
	if err != nil || p.Until != nil || !p.Kind.Plans() {
		return plan, err
	}
	return p.own(plan.Next(nil))
}

// Asked makes the plan of the plan file.
func (p *Plan) Asked() (world.Plan, error) {
	spec := world.Spec{Kind: p.Kind.Name, Params: p.ParamsJSON, Lineup: maps.Clone(p.Lineup)}
	cells := []world.Spec{spec}
	var plan world.Plan = world.Repeat(spec, p.Episodes)
	if p.Matrix != nil {
		m, err := p.worldMatrix()
		if err == nil {
			cells, err = m.Cells()
		}
		if err == nil {
			plan, err = m.Plan()
		}
		if err != nil {
			return nil, err
		}
	}
	if p.Until != nil {
		u := *p.Until
		u.Cells, u.Bounds = cells, p.bounds(u.Score, cells)
		return u.Plan()
	}
	return plan, nil
}

// bounds returns the bounds of a score that hold in all cells.
func (p *Plan) bounds(score string, cells []world.Spec) (out world.Bounds) {
	for i, c := range cells {
		params, err := p.Kind.Read(c.Params)
		if err != nil {
			return world.Bounds{}
		}
		one := world.Bounds{}
		for _, m := range p.Kind.Measures(params) {
			if m.Name == score {
				one = m.Bounds
			}
		}
		if i == 0 {
			out = one
			continue
		}
		out = out.Join(one)
	}
	return out
}

// own lets the kind make a plan of each spec. A uniform kind is asked only once for each cell.
func (p *Plan) own(specs world.Specs) (world.Plan, error) {
	var blocks []world.Block
	for b := range specs.Blocks() {
		made := world.Block{Rounds: b.Rounds}
		for _, g := range b.Groups {
			params, err := p.Kind.Read(g.Spec.Params)
			if err != nil {
				return nil, fmt.Errorf("config: %w", err)
			}
			if !p.Kind.Uniform(params) {
				return p.beside(specs)
			}
			plan, err := p.Kind.Plan(params, g.Spec, p.Seed)
			if err != nil {
				return nil, fmt.Errorf("config: %w", err)
			}
			list, ok := plan.(world.Specs)
			for l := range list.Blocks() {
				ok = ok && l.Rounds == 1
				made.Groups = append(made.Groups, l.Groups...)
			}
			if !ok {
				return p.beside(specs)
			}
		}
		blocks = append(blocks, made)
	}
	all, err := world.Blocks(blocks...)
	if err != nil {
		return nil, tooMany(maxEpisodes, "episodes")
	}
	return all, nil
}

// beside lets the kind make a plan of each spec, and plays these plans beside each other. The number
// of their episodes is limited, since a number in params multiplies it.
func (p *Plan) beside(specs world.Specs) (_ world.Plan, err error) {
	var plans []world.Plan
	var lists []world.Specs
	var params world.Params
	var of json.RawMessage // the JSON of params
	if specs.Len() > MaxDistinct {
		return nil, tooMany(MaxDistinct, "plans of its kind's own")
	}
	episodes, distinct := 0, 0
	for _, spec := range specs.All() {
		// Params that made a list are used again: nothing keeps a reference to them.
		if of == nil || len(lists) < len(plans) || string(of) != string(spec.Params) {
			if params, err = p.Kind.Read(spec.Params); err != nil {
				return nil, fmt.Errorf("config: %w", err)
			}
			of = spec.Params
		}
		plan, err := p.Kind.Plan(params, spec, p.Seed)
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		plans = append(plans, plan)
		if list, ok := plan.(world.Specs); ok {
			lists = append(lists, list)
			episodes += list.Len()
			for range list.Distinct() {
				distinct++
			}
		}
		switch {
		case episodes > maxEpisodes:
			return nil, tooMany(maxEpisodes, "episodes")
		case distinct > MaxDistinct:
			return nil, tooMany(MaxDistinct, "episodes that differ in more than their deal")
		}
	}
	if len(lists) == len(plans) {
		return world.Join(lists...), nil
	}
	return planner.Beside(plans...), nil
}

func tooMany(limit int, what string) error {
	return fmt.Errorf("config: the plan makes more than %d %s: lower episodes, or what params make of each", limit, what)
}

// worldMatrix converts the matrix to that of package world.
func (p *Plan) worldMatrix() (planner.Matrix, error) {
	m := planner.Matrix{Kind: p.Kind.Name, Seats: p.Seats, Repetitions: p.Matrix.Repeat}
	for _, seating := range p.Matrix.seatings(p.Seats) {
		lineup := maps.Clone(p.Lineup)
		if lineup == nil {
			lineup = map[string]string{}
		}
		maps.Copy(lineup, seating)
		m.Lineups = append(m.Lineups, lineup)
	}
	for _, name := range p.Matrix.variations() {
		v := p.Matrix.Variations[name]
		for _, change := range p.Matrix.combinations() {
			_, params, err := p.vary(v.Params, change)
			if err != nil {
				return m, fmt.Errorf("config: plan.matrix: %w", err)
			}
			m.Variants = append(m.Variants, planner.Variant{Variation: name, Name: label(p.Matrix.varied(change)), Params: params, Lineup: v.Lineup})
		}
	}
	return m, nil
}

// vary resolves params with the changes of a variation and then those of a combination.
func (p *Plan) vary(own, change map[string]any) (world.Params, json.RawMessage, error) {
	values := map[string]any{}
	if err := unmarshal(p.ParamsJSON, &values); err != nil {
		return world.Params{}, nil, err
	}
	values, _ = merged(values, own).(map[string]any)
	// A path with dots changes a part of a whole param, so shorter names are applied first.
	shape := paramsShape(p.Kind)
	for _, name := range slices.Sorted(maps.Keys(change)) {
		vary(values, shape, name, change[name])
	}
	return decodeParams(p.Kind, values)
}

// vary sets a param, or a value at a path within one, in a copy of that param.
func vary(values map[string]any, s *schema.Shape, name string, value any) {
	head, rest, dotted := strings.Cut(name, ".")
	if !dotted || s == nil || s.Free != "" || s.Key(name) != nil {
		values[name] = value
		return
	}
	inner, _ := values[head].(map[string]any)
	if inner = maps.Clone(inner); inner == nil {
		inner = map[string]any{}
	}
	vary(inner, s.Under(head), rest, value)
	values[head] = inner
}

// seatings lists the ways to put the agents into the seats. It stops after maxCells+1. Without Swap
// the agents keep their order; without Self each sits once. order is the order of the kind's seats.
func (m *Matrix) seatings(order []string) []map[string]string {
	var all []map[string]string
	if m.Rotate != "" || len(m.Lineups) > 0 {
		all = m.rotated(order)
	} else {
		all = m.arranged()
	}
	for _, seat := range slices.Sorted(maps.Keys(m.Lineup)) {
		all = m.seatIn(seat, all)
	}
	return all
}

// arranged lists the ways to put Agents into Seats without a rotation.
func (m *Matrix) arranged() (all []map[string]string) {
	chosen := make([]int, len(m.Seats))
	var choose func(seat int)
	choose = func(seat int) {
		if seat == len(m.Seats) {
			lineup := make(map[string]string, len(m.Seats))
			for i, a := range chosen {
				lineup[m.Seats[i]] = m.Agents[a]
			}
			all = append(all, lineup)
			return
		}
		for a := range m.Agents {
			again := slices.Contains(chosen[:seat], a)
			back := seat > 0 && a < chosen[seat-1]
			if len(all) > maxCells || again && !m.Self || back && !m.Swap {
				continue
			}
			chosen[seat] = a
			choose(seat + 1)
		}
	}
	choose(0)
	return all
}

// seatIn combines each of the lineups with each agent that Lineup lists for a seat.
func (m *Matrix) seatIn(seat string, lineups []map[string]string) []map[string]string {
	var all []map[string]string
	for _, lineup := range lineups {
		for _, agent := range m.Lineup[seat] {
			if len(all) > maxCells {
				return all
			}
			one := maps.Clone(lineup)
			one[seat] = agent
			all = append(all, one)
		}
	}
	return all
}

// combinations lists every choice of one value for each param; the last param by name changes
// fastest. Without params it is one empty choice.
func (m *Matrix) combinations() []map[string]any {
	all := []map[string]any{{}}
	for _, name := range slices.Sorted(maps.Keys(m.Params)) {
		var longer []map[string]any
		for _, before := range all {
			for _, v := range m.Params[name] {
				one := maps.Clone(before)
				one[name] = v
				longer = append(longer, one)
			}
		}
		all = longer
	}
	return all
}

// varied leaves out params with one value, which do not distinguish cells.
func (m *Matrix) varied(change map[string]any) map[string]any {
	change = maps.Clone(change)
	maps.DeleteFunc(change, func(name string, _ any) bool { return len(m.Params[name]) < 2 })
	return change
}

// label describes a combination, as "messages=4, mode=standard".
func label(change map[string]any) string {
	parts := make([]string, 0, len(change))
	for _, name := range slices.Sorted(maps.Keys(change)) {
		b, err := json.Marshal(change[name])
		if err != nil {
			b = fmt.Append(nil, change[name]) // not reached: the value is from JSON
		}
		parts = append(parts, name+"="+strings.Trim(string(b), `"`))
	}
	return strings.Join(parts, ", ")
}
