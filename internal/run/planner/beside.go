package planner

import (
	"errors"

	"parley/world"
)

// Beside plays several plans at the same time: a stage is the next stage of each plan that has one, in order.
func Beside(plans ...world.Plan) world.Plan {
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
	plan  world.Plan
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
		} else if failed, ok := p.plan.(world.FailingPlan); ok {
			b.errs = append(b.errs, failed.Err())
		}
	}
	b.open = open
	return world.Join(parts...)
}

// Err returns why plans failed, or nil.
func (b *beside) Err() error { return errors.Join(b.errs...) }
