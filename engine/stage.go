package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"parley/journal"
	"parley/world"
)

// advance asks the plan for the next stage, or finds that the run is complete. The plan
// runs under the lock: nothing else is going on.
func (r *run) advance() {
	slices.SortFunc(r.played, func(a, b world.Played) int { return a.Episode - b.Episode })
	r.first += r.stage.Len()
	r.stage = r.Plan.Next(r.played)
	r.next, r.ended, r.played = 0, 0, nil
	if n := r.stage.Len(); n == 0 || n > world.MaxEpisodes-r.first {
		r.planned()
		return
	}
	st := &journal.Staged{Stage: r.stages, First: r.first, Specs: r.stage}
	r.stages++
	if i := slices.IndexFunc(r.head.Stages, func(s journal.Staged) bool { return s.First == r.first }); i >= 0 {
		if err := sameStage(r.Kind, r.head.Stages[i], *st); err != nil {
			r.err = err
			r.stopLocked(journal.Failed, errorOf(err))
		}
	} else {
		r.rec.write(st, nil)
	}
	r.watch(Event{Staged: st})
	r.wake.Broadcast()
}

// sameStage makes sure that the plan still asks for what the journal says it did. Params
// that are outside of play may have changed.
func sameStage(kind world.Kind, was, is journal.Staged) error {
	if was.Specs.Len() != is.Specs.Len() {
		return fmt.Errorf("engine: %w: the plan now asks for %d episodes from %d on, and asked for %d", ErrDiverged, is.Specs.Len(), is.First, was.Specs.Len())
	}
	ids := world.NewCellIDs(kind)
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
