package planfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley/internal/run/planner"
	"parley/world"
)

// World makes the plan that the engine plays, a new one for each run or resume: the plan of the file,
// or the plan that the kind makes of it. It cannot fail for a Plan that was loaded.
func (p *Plan) World() (world.Plan, error) {
	plan, err := p.Asked()
	if err != nil || p.Until != nil || !p.Kind.Plans() {
		return plan, err
	}
	return planner.OfKind(p.Kind, plan.Next(nil), p.Seed)
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

// worldMatrix converts the matrix to that of package world.
func (p *Plan) worldMatrix() (planner.Matrix, error) {
	m := planner.Matrix{Kind: p.Kind.Name, Seats: p.Seats, Repetitions: p.Matrix.Repeat}
	for _, seating := range p.Matrix.Seatings(p.Seats) {
		lineup := maps.Clone(p.Lineup)
		if lineup == nil {
			lineup = map[string]string{}
		}
		maps.Copy(lineup, seating)
		m.Lineups = append(m.Lineups, lineup)
	}
	for _, v := range p.Matrix.Variants() {
		_, params, err := p.vary(v)
		if err != nil {
			return m, fmt.Errorf("config: plan.matrix: %w", err)
		}
		m.Variants = append(m.Variants, planner.Variant{Variation: v.Name, Name: p.Matrix.CellLabel(v.Change), Params: params, Lineup: v.Lineup})
	}
	return m, nil
}

// vary resolves params with the changes of a variation and then those of a combination.
func (p *Plan) vary(v Variant) (world.Params, json.RawMessage, error) {
	values := map[string]any{}
	if err := unmarshal(p.ParamsJSON, &values); err != nil {
		return world.Params{}, nil, err
	}
	values, _ = merge(values, v.Params).(map[string]any)
	// A path with dots changes a part of a whole param, so shorter names are applied first.
	shape := paramsShape(p.Kind)
	for _, name := range slices.Sorted(maps.Keys(v.Change)) {
		matrixSet(values, shape, name, v.Change[name])
	}
	return decodeParams(p.Kind, values)
}
