package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/world"
)

// maxCells bounds a matrix.
const maxCells = 100_000

// Matrix is every way to put agents into seats, with every setting of params.
type Matrix struct {
	// Agents are those to put into seats. Default: none; the lineup stays as it is.
	Agents []string `json:"agents,omitempty"`
	// Seats are those to put them into. Default: those that the lineup leaves empty.
	Seats []string `json:"seats,omitempty"`
	// Lineup are agents to try in a seat, by seat, whatever sits elsewhere. Default: none.
	Lineup map[string][]string `json:"lineup,omitempty"`
	// Lineups are those to play, in the place of Agents: seat to agent. Default: none.
	Lineups []map[string]string `json:"lineups,omitempty"`
	// Self is whether an agent may sit in several of the seats. Default: false.
	Self bool `json:"self"`
	// Swap is whether the same agents are also played in other seats. Default: true.
	Swap bool `json:"swap"`
	// Rotate is latin or williams: see rotated. Default: every order, or one, as Swap says.
	Rotate string `json:"rotate,omitempty"`
	// Params are values to try, by param. Default: none.
	Params map[string][]any `json:"params,omitempty"`
	// Variations are settings that belong together, by name. Default: none.
	Variations map[string]Variation `json:"variations,omitempty"`
	// Repeat is how many episodes to play of each cell. Default: 1; 0 under Until.
	Repeat int `json:"repeat,omitempty"`
}

// seats says whether it puts anybody into a seat; else it varies params alone.
func (m *Matrix) seats() bool {
	return m != nil && (len(m.Agents) > 0 || len(m.Seats) > 0 || len(m.ownSeats()) > 0)
}

// UnmarshalJSON sets what is not false or 0 by default.
func (m *Matrix) UnmarshalJSON(b []byte) error {
	type plain Matrix
	v := plain{Swap: true}
	if err := unmarshal(b, &v); err != nil {
		return fmt.Errorf("config: matrix: %w", err)
	}
	*m = Matrix(v)
	return nil
}

// Until plays on until a score is known well enough.
type Until struct {
	Score string `json:"score"`
	// Seat or Agent is whose score. Default: that of the whole episode.
	Seat  string `json:"seat,omitempty"`
	Agent string `json:"agent,omitempty"`
	// Width is half the width of the interval to reach.
	Width float64 `json:"width"`
	// Confidence of the interval. Default: 0.95.
	Confidence float64 `json:"confidence"`
	// Min and Max bound the episodes of a cell, and Step is how many more to play at a
	// time. Default: 30, 1,000 and Min.
	Min  int `json:"min"`
	Max  int `json:"max"`
	Step int `json:"step"`
}

// World makes the plan that the engine plays, new for each run or resume: what the plan file
// asks for, or what the kind makes of it. A Plan that was loaded makes no error.
func (p *Plan) World() (world.Plan, error) {
	plan, err := p.Asked()
	if err != nil || p.Until != nil || !p.Kind.Plans() {
		return plan, err
	}
	return p.own(plan.Next(nil))
}

// Asked makes the plan that the plan file asks for.
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
	if u := p.Until; u != nil {
		return world.Until{
			Cells: cells, Score: u.Score, Seat: u.Seat, Agent: u.Agent, Width: u.Width,
			Bounds: p.bounds(u.Score, cells), Confidence: u.Confidence, Min: u.Min, Max: u.Max, Step: u.Step,
		}.Plan()
	}
	return plan, nil
}

// bounds are what a score can be in all of the cells.
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

// own lets the kind make a plan of each spec. Where it makes the same of every deal, it is asked
// once for each cell, however many deals there are.
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

// beside lets the kind make a plan of each spec, and plays them beside each other. What they come
// to is bounded, since a number in params multiplies it.
func (p *Plan) beside(specs world.Specs) (_ world.Plan, err error) {
	var plans []world.Plan
	var lists []world.Specs
	var params world.Params
	var of json.RawMessage // what params were read from
	if specs.Len() > MaxDistinct {
		return nil, tooMany(MaxDistinct, "plans of its kind's own")
	}
	episodes, distinct := 0, 0
	for _, spec := range specs.All() {
		// Params that made a list are used again: nothing holds them.
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
	return world.Beside(plans...), nil
}

func tooMany(most int, what string) error {
	return fmt.Errorf("config: the plan makes more than %d %s: lower episodes, or what params make of each", most, what)
}

// worldMatrix says the matrix in the words of package world.
func (p *Plan) worldMatrix() (world.Matrix, error) {
	m := world.Matrix{Kind: p.Kind.Name, Seats: p.Seats, Repetitions: p.Matrix.Repeat}
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
			m.Variants = append(m.Variants, world.Variant{Variation: name, Name: label(p.Matrix.varied(change)), Params: params, Lineup: v.Lineup})
		}
	}
	return m, nil
}

// vary resolves the params with what a variation sets, and then some of them changed.
func (p *Plan) vary(own, change map[string]any) (world.Params, json.RawMessage, error) {
	values := map[string]any{}
	if err := unmarshal(p.ParamsJSON, &values); err != nil {
		return world.Params{}, nil, err
	}
	values, _ = merged(values, own).(map[string]any)
	// A path with dots changes what the whole param was set to, so shorter names go first.
	shape := paramsShape(p.Kind)
	for _, name := range slices.Sorted(maps.Keys(change)) {
		vary(values, shape, name, change[name])
	}
	return decodeParams(p.Kind, values)
}

// vary sets a param, or what stands at a path within one, which is copied before.
func vary(values map[string]any, s *shape, name string, value any) {
	head, rest, dotted := strings.Cut(name, ".")
	if !dotted || s == nil || s.free != "" || s.key(name) != nil {
		values[name] = value
		return
	}
	inner, _ := values[head].(map[string]any)
	if inner = maps.Clone(inner); inner == nil {
		inner = map[string]any{}
	}
	vary(inner, s.under(head), rest, value)
	values[head] = inner
}

// seatings lists the ways to put the agents into the seats, at most maxCells and one.
// Without Swap the agents keep their order; without Self each sits once. order is that of the
// kind's seats.
func (m *Matrix) seatings(order []string) []map[string]string {
	var all []map[string]string
	if m.Rotate != "" || len(m.Lineups) > 0 {
		all = m.rotated(order)
		for _, seat := range slices.Sorted(maps.Keys(m.Lineup)) {
			all = m.seatIn(seat, all)
		}
		return all
	}
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
	for _, seat := range slices.Sorted(maps.Keys(m.Lineup)) {
		all = m.seatIn(seat, all)
	}
	return all
}

// seatIn tries each of a seat's own agents with each of the lineups.
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

// combinations lists every choice of one value for each param; the last by name changes
// fastest. Without params it is one that changes nothing.
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

// varied leaves out what has one value only, and so tells no cells apart.
func (m *Matrix) varied(change map[string]any) map[string]any {
	change = maps.Clone(change)
	maps.DeleteFunc(change, func(name string, _ any) bool { return len(m.Params[name]) < 2 })
	return change
}

// label names a combination, as "messages=4, mode=standard".
func label(change map[string]any) string {
	parts := make([]string, 0, len(change))
	for _, name := range slices.Sorted(maps.Keys(change)) {
		b, err := json.Marshal(change[name])
		if err != nil {
			b = fmt.Append(nil, change[name]) // not reached: it came from JSON
		}
		parts = append(parts, name+"="+strings.Trim(string(b), `"`))
	}
	return strings.Join(parts, ", ")
}
