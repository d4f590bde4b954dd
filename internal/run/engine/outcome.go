package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"parley/journal"
	"parley/world"
)

// end ends the episode of s, which is its first strand or one that panicked.
func (r *run) end(s *strand, o world.Outcome, stack string) {
	ep := s.episode
	data, err := marshal(o.Data)
	if err != nil {
		o.Failed, data = "outcome: "+err.Error(), nil
	}
	o.Data = json.RawMessage(data)
	e := &journal.Ended{Episode: ep.number, Attempt: ep.attempt, Outcome: o, At: time.Now(), Stack: stack}
	e.Play, e.Chance = s.play(o)
	line := outcomeLine(e) // here, and not under the scheduler's lock
	all := r.sched.retire(ep, true)
	r.rec.Write(func(err error) {
		if err != nil {
			r.sched.ended(ep, nil, nil)
			return
		}
		r.release(ep.number, ep.attempt, true)
		r.watch(Event{Ended: e})
		r.sched.ended(ep, e, line)
	}, e)
	stopAll(all) // after a panic, some may still wait
}

// marshal encodes a world's value. The world's own code may panic.
func marshal(v any) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("MarshalJSON panicked: %v", p)
		}
	}()
	return json.Marshal(v)
}

// giveUp removes an episode, as if it had not begun.
func (r *run) giveUp(ep *episode) {
	all := r.sched.retire(ep, false)
	r.release(ep.number, ep.attempt, false)
	stopAll(all)
}

func stopAll(strands []*strand) {
	for _, s := range strands {
		s.Stop()
	}
}

// result returns the result of the run when Run ends.
func (r *run) result(ctx context.Context, end ending) (Result, error) {
	res := Result{
		State: end.state, Reason: end.reason, Cause: end.cause,
		Asked: r.sched.asked, Replayed: int(r.replay.replies.Load()), FailedCalls: r.sched.fails, Acted: r.sched.acted, FailedActs: r.sched.actFails,
	}
	res.Lost = int(r.lost.Load())
	if r.head.Cut {
		res.Lost += r.head.Lost
	}
	a := r.sched.agenda
	res.Episodes, res.Ended, res.Failed = a.first+a.stage.Len(), a.outcomes.ended, a.outcomes.failed
	var err error
	res.Digest, err = a.outcomes.sum(ctx, r.Journal)
	return res, err
}
