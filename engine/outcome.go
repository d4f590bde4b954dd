package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"parley/journal"
	"parley/world"
)

// end ends the episode of s, which is its first strand or one that panicked.
func (r *run) end(s *strand, o world.Outcome, stack string) {
	ep := s.episode
	data, err := json.Marshal(o.Data)
	if err != nil {
		o.Failed, data = "outcome: "+err.Error(), nil
	}
	o.Data = json.RawMessage(data)
	e := &journal.Ended{Episode: ep.number, Attempt: ep.attempt, Outcome: o, At: time.Now(), Stack: stack}
	e.Play, e.Chance = s.play(o)
	r.mu.Lock()
	for s := range ep.strands {
		defer s.Stop() // after a panic others may still wait for something
	}
	ep.strands = nil
	r.flying++ // until it is durable
	r.mu.Unlock()
	r.rec.write(e, func(kept bool) {
		if kept {
			r.release(ep.number, ep.attempt, true)
			r.watch(Event{Ended: e})
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.flying--
		delete(r.live, ep)
		if kept {
			r.count(*e)
		}
		r.wake.Broadcast()
	})
}

// count takes in an episode that ended.
func (r *run) count(e journal.Ended) {
	r.ended++
	r.outcome = append(r.outcome, e)
	unit := world.Unit{}
	if !e.Chance && e.Play != (journal.Digest{}) {
		if r.plays[e.Play] == 0 {
			r.plays[e.Play] = len(r.plays) + 1
		}
		unit.Play = r.plays[e.Play]
	}
	r.played = append(r.played, world.Played{Episode: e.Episode, Spec: r.stage.At(e.Episode - r.first), Outcome: e.Outcome, Unit: unit})
}

func (r *run) result() Result {
	slices.SortFunc(r.outcome, func(a, b journal.Ended) int { return a.Episode - b.Episode })
	h := sha256.New()
	res := Result{
		State: r.state, Reason: r.reason, Cause: r.cause, Episodes: r.first + r.stage.Len(), Ended: len(r.outcome),
		Asked: r.asked, Replayed: int(r.replayed.Load()), FailedCalls: r.fails,
	}
	if r.head.Cut {
		res.Lost = r.head.Lost
	}
	for _, e := range r.outcome {
		if e.Outcome.Failed != "" {
			res.Failed++
		}
		b, err := json.Marshal(e.Outcome)
		if err != nil {
			b = []byte(err.Error())
		}
		fmt.Fprintf(h, "%d %s\n", e.Episode, b)
	}
	res.Digest = hex.EncodeToString(h.Sum(nil))
	return res
}
