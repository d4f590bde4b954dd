package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley/internal/run/planner"
	"parley/journal"
	"parley/world"
)

// agenda is what the plan asks for, stage by stage, and the outcomes. Episodes are numbered by
// position. Each is taken once, in order, and the plan is asked for a stage only when all episodes
// of the previous one have ended. The scheduler's lock guards it.
type agenda struct {
	kind world.Kind
	plan world.Plan
	head *journal.Head // what earlier processes recorded
	past past

	stage  world.Specs
	first  int // number of the stage's first episode
	next   int // in the stage: to be taken next
	ended  int // of the stage
	stages int
	draws  *planner.Draws
	fixed  bool           // the plan does not depend on outcomes
	played []world.Played // of the stage; only one if the plan is fixed

	changes  []journal.Steered      // recorded changes that the plan was not given yet
	lot      *Lot                   // the only episodes to play; nil: all
	early    map[int]early          // ends of episodes that were not taken yet
	outcomes digest                 // of the run
	plays    map[journal.Digest]int // numbers the plays whose repetitions are copies
}

func newAgenda(kind world.Kind, plan world.Plan, lot *Lot, head *journal.Head, read readFunc) *agenda {
	a := &agenda{kind: kind, plan: plan, lot: lot, head: head, past: past{read: read}, draws: planner.NewDraws(kind), outcomes: newDigest(maxWaiting), plays: map[journal.Digest]int{}}
	if p, ok := plan.(world.FixedPlan); ok {
		a.fixed = p.Fixed()
	}
	for _, s := range head.Steered {
		if s.Verb == journal.SteerChange {
			a.changes = append(a.changes, s)
		}
	}
	if lot != nil {
		a.first, a.stages = lot.First, lot.Stage
		a.outcomes.next = lot.First
	}
	return a
}

// more reports whether the stage has episodes that were not taken.
func (a *agenda) more() bool { return a.next < a.stage.Len() }

// number returns the number of the episode that is taken next.
func (a *agenda) number() int { return a.first + a.next }

// done reports whether all episodes of the stage have ended.
func (a *agenda) done() bool { return !a.more() && a.ended == a.stage.Len() }

// take returns the next episode. For one that ended before this process began, it counts the
// outcome and returns false. For one that the lot skips, it returns false too.
func (a *agenda) take() (st step, ok bool, err error) {
	n, spec := a.number(), a.stage.At(a.next)
	a.next++
	st = step{begins: true, number: n, spec: spec, draw: a.draws.Of(spec)}
	if a.lot != nil {
		st.draw.Nth = a.lot.nth(n - a.lot.First)
		if a.lot.Skip != nil && a.lot.Skip(n) {
			a.ended++
			return st, false, nil
		}
	}
	if e, ok := a.early[n]; ok {
		delete(a.early, n)
		a.count(e.ended, e.line)
		return st, false, nil
	}
	if a.head.Ended.Has(n) {
		e, err := a.past.take(n)
		if err == nil {
			a.count(e, outcomeLine(e))
		}
		return st, false, err
	}
	return st, true, nil
}

// count adds the outcome of an episode. line is its line in the digest.
func (a *agenda) count(e *journal.Ended, line []byte) {
	a.ended++
	a.outcomes.add(e, line)
	if a.fixed && len(a.played) > 0 {
		return
	}
	unit := world.Unit{}
	if !e.Chance && e.Play != (journal.Digest{}) {
		if a.plays[e.Play] == 0 {
			a.plays[e.Play] = len(a.plays) + 1
		}
		unit.Play = a.plays[e.Play]
	}
	a.played = append(a.played, world.Played{Episode: e.Episode, Spec: a.stage.At(e.Episode - a.first), Outcome: e.Outcome, Unit: unit})
}

// advance asks the plan for the next stage; nil means that the plan is complete. recorded reports
// whether the journal already has the stage.
func (a *agenda) advance() (st *journal.Staged, recorded bool, err error) {
	slices.SortFunc(a.played, func(x, y world.Played) int { return x.Episode - y.Episode })
	if err := a.catchUp(); err != nil {
		return nil, false, err
	}
	a.first += a.stage.Len()
	a.stage = a.plan.Next(a.played)
	a.next, a.ended, a.played = 0, 0, nil
	switch n := a.stage.Len(); {
	case n == 0:
		if p, ok := a.plan.(world.FailingPlan); ok {
			err = p.Err()
		}
		return nil, false, err
	case n > world.MaxEpisodes-a.first:
		a.stage = world.Specs{}
		return nil, false, fmt.Errorf("engine: the plan asks for more than %d episodes", world.MaxEpisodes)
	}
	st = &journal.Staged{Stage: a.stages, First: a.first, Specs: a.stage}
	a.stages++
	if i := slices.IndexFunc(a.head.Stages, func(s journal.Staged) bool { return s.First == a.first }); i >= 0 {
		return st, true, sameStage(a.kind, a.head.Stages[i], *st)
	}
	return st, false, nil
}

// catchUp gives the plan the recorded changes that it was given before the next stage.
func (a *agenda) catchUp() error {
	for len(a.changes) > 0 && a.changes[0].Stage <= a.stages {
		change := a.changes[0]
		a.changes = a.changes[1:]
		plan, ok := a.plan.(world.ChangingPlan)
		if !ok {
			return fmt.Errorf("engine: %w: a change of the plan before stage %d is recorded, and the plan cannot be changed", ErrDiverged, change.Stage)
		}
		if err := plan.Change(change.Change); err != nil {
			return fmt.Errorf("engine: %w: the change of the plan before stage %d: %w", ErrDiverged, change.Stage, err)
		}
	}
	return nil
}

// change gives the plan a new change, and returns the number of the stage that it comes before.
func (a *agenda) change(raw json.RawMessage) (stage int, err error) {
	plan, ok := a.plan.(world.ChangingPlan)
	if !ok {
		return 0, errors.New("this plan cannot be changed while it is played")
	}
	if a.stages < len(a.head.Stages) {
		return 0, errors.New("the resumed run has not reached the point where it was stopped yet: try again in a moment")
	}
	if err := a.catchUp(); err != nil {
		return 0, err
	}
	return a.stages, plan.Change(raw)
}

// sameStage checks that the plan still asks for what the journal has recorded. Params that do not
// affect play may have changed.
func sameStage(kind world.Kind, was, is journal.Staged) error {
	if was.Specs.Len() != is.Specs.Len() {
		return fmt.Errorf("engine: %w: the plan now asks for %d episodes from %d on, and asked for %d", ErrDiverged, is.Specs.Len(), is.First, was.Specs.Len())
	}
	ids := planner.NewCellIDs(kind)
	i := is.Specs.Diff(was.Specs, func(now, then world.Spec) bool {
		return now.Deal == then.Deal && now.Cell == then.Cell && ids.Of(now) == ids.Of(then)
	})
	if i >= 0 {
		return fmt.Errorf("engine: %w: the plan's episode %d is now %s, and was %s", ErrDiverged, is.First+i, asJSON(is.Specs.At(i)), asJSON(was.Specs.At(i)))
	}
	return nil
}

func asJSON(spec world.Spec) []byte {
	b, err := json.Marshal(spec)
	if err != nil {
		return fmt.Append(nil, err)
	}
	return b
}
