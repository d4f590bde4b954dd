// Package planner makes the plans that any kind can be played by: every cell of a matrix, cells until a score is known
// precisely enough, several plans at once, and a plan that continues a recorded run.
//
// What it promises: plans are pure folds over outcomes, as world.Stages demands. All cells have the same deals, and each
// plan gives every cell its first repetition before the second.
//
// It plays nothing (package engine does) and reads no plan files (package planfile does).
package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley/world"
	"parley/world/part"
)

// MaxDistinct is the largest number of plans, and of specs that differ in more than their deal, that
// a kind may make of a plan: they are held in memory.
const MaxDistinct = 1_000_000

// OfKind returns the plans that a kind makes of each spec, as one. A uniform kind is asked only once
// for each cell.
func OfKind(kind world.Kind, specs world.Specs, seed uint64) (world.Stages, error) {
	var blocks []world.Block
	for b := range specs.Blocks() {
		made := world.Block{Rounds: b.Rounds}
		for _, g := range b.Groups {
			params, err := kind.Read(g.Spec.Params)
			if err != nil {
				return nil, err
			}
			if !kind.Uniform(params) {
				return eachOfKind(kind, specs, seed)
			}
			plan, err := kind.Plan(params, g.Spec, seed)
			if err != nil {
				return nil, err
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
func eachOfKind(kind world.Kind, specs world.Specs, seed uint64) (_ world.Stages, err error) {
	var plans []world.Stages
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
				return nil, err
			}
			of = spec.Params
		}
		plan, err := kind.Plan(params, spec, seed)
		if err != nil {
			return nil, err
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
	return fmt.Errorf("the plan makes more than %d %s: lower episodes, or the params that multiply them", limit, what)
}

// Beside plays several plans at the same time: a stage is the next stage of each plan that has one, in order.
func Beside(plans ...world.Stages) world.Stages {
	if len(plans) == 1 {
		return plans[0]
	}
	b := &beside{}
	for _, p := range plans {
		b.open = append(b.open, &besidePlan{plan: p})
	}
	return b
}

// beside is a set of plans in progress.
type beside struct {
	open []*besidePlan // plans that have not ended
	errs []error       // of those that have failed
}

type besidePlan struct {
	plan  world.Stages
	asked int // episodes in the current stage
}

// Next passes each plan its part of the stage and joins what they ask for next.
func (b *beside) Next(last []world.Played) world.Specs {
	var parts []world.Specs
	var open []*besidePlan
	for _, p := range b.open {
		n := min(p.asked, len(last))
		next := p.plan.Next(last[:n:n])
		last = last[n:]
		if p.asked = next.Len(); p.asked > 0 {
			parts = append(parts, next)
			open = append(open, p)
		} else if failed, ok := p.plan.(part.FailingStages); ok {
			b.errs = append(b.errs, failed.Err())
		}
	}
	b.open = open
	return world.Join(parts...)
}

// Transcripts gives every plan that reads transcripts what reads them.
func (b *beside) Transcripts(read func(episode int) ([]world.TranscriptEntry, error)) {
	for _, p := range b.open {
		if t, ok := p.plan.(part.TranscriptStages); ok {
			t.Transcripts(read)
		}
	}
}

// Err returns why plans failed, or nil.
func (b *beside) Err() error { return errors.Join(b.errs...) }

// Measures returns the scores that a kind declares for specs: each once, with the bounds that hold for all of them. Those of a nested
// plan come last.
func Measures(kind world.Kind, stages ...world.Specs) []world.Measure {
	var own, nested []world.Measure
	seen := map[string]bool{}
	for _, specs := range stages {
		for _, spec := range specs.Distinct() {
			if seen[spec.Kind+string(spec.Params)] {
				continue
			}
			seen[spec.Kind+string(spec.Params)] = true
			of := kind.Of(spec)
			params, err := of.Read(spec.Params)
			if err != nil {
				continue // a run file may hold anything
			}
			if of.Name == kind.Name {
				own = JoinMeasures(own, of.Measures(params))
			} else {
				nested = JoinMeasures(nested, of.Measures(params))
			}
		}
	}
	return JoinMeasures(own, nested)
}

// JoinMeasures adds more scores to all. A score of both has the bounds that hold in both.
func JoinMeasures(all, more []world.Measure) []world.Measure {
	at := make(map[string]int, len(all))
	for i, m := range all {
		at[m.Name] = i
	}
	for _, m := range more {
		i, known := at[m.Name]
		if !known {
			at[m.Name] = len(all)
			all = append(all, m)
			continue
		}
		was := &all[i]
		was.Bounds, was.Rivals, was.Seats = was.Join(m.Bounds), was.Rivals || m.Rivals, slices.Clip(was.Seats)
		for _, seat := range m.Seats {
			if !slices.Contains(was.Seats, seat) {
				was.Seats = append(was.Seats, seat)
			}
		}
	}
	return all
}
