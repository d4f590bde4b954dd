package planner

import (
	"encoding/json"
	"fmt"

	"parley/world"
)

// MaxDistinct is the largest number of plans, and of specs that differ in more than their deal, that
// a kind may make of a plan: they are held in memory.
const MaxDistinct = 1_000_000

// OfKind returns the plans that a kind makes of each spec, as one. A uniform kind is asked only once
// for each cell.
func OfKind(kind world.Kind, specs world.Specs, seed uint64) (world.Plan, error) {
	var blocks []world.Block
	for b := range specs.Blocks() {
		made := world.Block{Rounds: b.Rounds}
		for _, g := range b.Groups {
			params, err := kind.Read(g.Spec.Params)
			if err != nil {
				return nil, fmt.Errorf("planner: %w", err)
			}
			if !kind.Uniform(params) {
				return eachOfKind(kind, specs, seed)
			}
			plan, err := kind.Plan(params, g.Spec, seed)
			if err != nil {
				return nil, fmt.Errorf("planner: %w", err)
			}
			list, ok := plan.(world.Specs)
			for l := range list.Blocks() {
				ok = ok && l.Rounds == 1
				made.Groups = append(made.Groups, l.Groups...)
			}
			if !ok {
				return eachOfKind(kind, specs, seed)
			}
		}
		blocks = append(blocks, made)
	}
	all, err := world.Blocks(blocks...)
	if err != nil {
		return nil, tooMany(world.MaxEpisodes, "episodes")
	}
	return all, nil
}

// eachOfKind asks the kind for a plan of every spec, and plays these plans beside each other. The number
// of their episodes is limited, since a number in params multiplies it.
func eachOfKind(kind world.Kind, specs world.Specs, seed uint64) (_ world.Plan, err error) {
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
			if params, err = kind.Read(spec.Params); err != nil {
				return nil, fmt.Errorf("planner: %w", err)
			}
			of = spec.Params
		}
		plan, err := kind.Plan(params, spec, seed)
		if err != nil {
			return nil, fmt.Errorf("planner: %w", err)
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
		case episodes > world.MaxEpisodes:
			return nil, tooMany(world.MaxEpisodes, "episodes")
		case distinct > MaxDistinct:
			return nil, tooMany(MaxDistinct, "episodes that differ in more than their deal")
		}
	}
	if len(lists) == len(plans) {
		return world.Join(lists...), nil
	}
	return Beside(plans...), nil
}

func tooMany(limit int, what string) error {
	return fmt.Errorf("planner: the plan makes more than %d %s: lower episodes, or the params that multiply them", limit, what)
}
