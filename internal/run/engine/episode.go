package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/run/planner"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// episode is an episode that is being played.
type episode struct {
	number   int
	attempt  int
	spec     world.Spec
	kind     world.Kind
	params   world.Params
	draw     planner.Draw
	session  string
	recorded *recorded            // what the journal has of this attempt, without turns that were replayed
	earlier  earlierReplies       // of earlier attempts, if the episode had failed
	strands  map[*strand]struct{} // strands that have begun and not ended
	// busy is whether a strand is being played: no two are at once. Strands that are ready
	// meanwhile wait in parked.
	busy     bool
	parked   []*strand
	hasReply bool // a call of this process was answered: if the episode is played outside, it has begun there
	// givenUp is whether an act of it was canceled: the next player ends it.
	givenUp atomic.Bool
}

// strand is a strand of an episode and what it waits for.
type strand struct {
	*world.Strand
	episode *episode
	parent  *strand
	replies []world.Reply // filled as they arrive
	missing int           // replies or forks that it waits for
	number  int           // among the strands of its fork
	// pending are the calls of its turn that were not made yet. rec is what is recorded of the
	// turn.
	pending []*call
	rec     *recordedTurn
	budget
	fingerprint
}

// begin prepares an episode of the run, with what is recorded of it, and returns its first strand.
// If the kind ends the goroutine, another player continues.
func (r *run) begin(ctx context.Context, st step, players *sync.WaitGroup) (*strand, error) {
	n := st.number
	ep := &episode{number: n, spec: st.spec, kind: r.Kind.Of(st.spec), draw: st.draw, recorded: &recorded{}, strands: map[*strand]struct{}{}}
	lineup := world.Lineup{}
	for seat, name := range ep.spec.Lineup {
		a, ok := r.agentOf(ep, name)
		if !ok {
			return nil, fmt.Errorf("episode %d: seat %s: no agent %q", n, seat, name)
		}
		lineup[seat] = a
	}
	if last, failed := r.head.Ended.Of(n); failed {
		ep.attempt = last.Attempt + 1
	}
	if p, begun := r.head.Playing[n]; begun {
		ep.attempt = p.Attempt
		if ep.kind.Restarts() {
			r.release(n, ep.attempt, false)
			ep.attempt++
		} else {
			rec, err := r.replay.take(ctx, n)
			if err != nil {
				return nil, err
			}
			ep.recorded = rec
		}
	}
	if ep.attempt > 0 && len(r.Begun.Again) > 0 {
		var err error
		if ep.earlier, err = r.replay.earlier(ctx, n, ep.attempt); err != nil {
			return nil, err
		}
	}
	ep.session = r.session(n, ep.attempt)
	w, err := r.world(ep, lineup, func(w world.World) {
		st.strand = r.first(ep, w)
		players.Go(func() { r.work(ctx, players, st) })
	})
	if err != nil {
		return nil, fmt.Errorf("episode %d: %w", n, err)
	}
	r.watch(Event{Began: &Began{n, ep.attempt}})
	return r.first(ep, w), nil
}

// agentOf returns an agent as it plays in an episode.
func (r *run) agentOf(ep *episode, name string) (world.Agent, bool) {
	a, ok := r.agents[name]
	if system, other := ep.spec.Systems[name]; other {
		a.System = system
	}
	return a, ok
}

// first returns the first strand of an episode.
func (r *run) first(ep *episode, w world.World) *strand {
	s := &strand{Strand: world.Begin(w, world.Deal{Seed: r.Begun.Seed, Number: ep.spec.Deal}), episode: ep, budget: budget{left: r.budgets.each}}
	ep.strands[s] = struct{}{}
	return s
}

// world makes the world of an episode. If the kind panics, the world panics too, so that only the
// episode fails. If it ends the goroutine, exited gets such a world.
func (r *run) world(ep *episode, lineup world.Lineup, exited func(world.World)) (w world.World, err error) {
	returned := false
	defer func() {
		switch v := recover(); {
		case v != nil:
			w, err = panicking(v), nil
		case !returned:
			exited(panicking("the kind called runtime.Goexit, or Fatal of a test"))
		}
	}()
	ep.params, err = ep.kind.Read(ep.spec.Params)
	if err == nil {
		w, err = ep.kind.World(ep.params, lineup)
	}
	returned = true
	return w, err
}

func panicking(v any) world.World {
	return world.Func(func(*world.Table) world.Outcome { panic(v) })
}

// play runs a strand until it has to wait, for calls or forks, or has ended.
func (r *run) play(ctx context.Context, s *strand) error {
	for {
		switch {
		case s.episode.givenUp.Load():
			r.giveUp(s.episode)
			return nil
		case s.parent == nil && s.exhausted:
			r.leave(ctx, s.episode)
			r.end(s, world.Outcome{Failed: s.short}, "")
			return nil
		case r.budgets.refused(s):
			r.sched.block(s)
			return nil
		case len(s.pending) > 0: // of the current turn
			if waits, err := r.proceed(s); waits || err != nil {
				return err
			}
			continue
		}
		replies := s.replies
		s.replies = nil
		s.answered(replies)
		t := s.Next(replies)
		switch {
		case t.Abort != nil:
			return fmt.Errorf("episode %d: %w", s.episode.number, t.Abort)
		case t.Panic != "":
			r.leave(ctx, s.episode)
			r.end(s, world.Outcome{Failed: "panic: " + t.Panic}, t.Stack)
			return nil
		case t.Done && s.parent == nil:
			r.note(s, t)
			r.end(s, t.Outcome, "")
			return nil
		case t.Done:
			r.note(s, t)
			r.sched.join(s)
			return nil
		case len(t.Forks) > 0:
			r.note(s, t)
			r.sched.fork(s, t.Forks)
			return nil
		}
		waits, err := r.ask(ctx, s, t)
		if waits || err != nil {
			return err
		}
	}
}

// leave notifies the actor that an episode ends although its world has not.
func (r *run) leave(ctx context.Context, ep *episode) {
	if a, ok := r.Actor.(part.EpisodeReleaser); ok {
		a.ReleaseEpisode(ctx, ep.number)
	}
}

func (r *run) turn(s *strand, t world.Turn) journal.Turn {
	return journal.Turn{Episode: s.episode.number, Attempt: s.episode.attempt, Strand: s.Path, Turn: t.Number}
}

// note records the notes of a turn without calls, unless they are already recorded.
func (r *run) note(s *strand, t world.Turn) {
	if len(t.Notes) == 0 {
		return
	}
	at := r.turn(s, t)
	if !s.episode.recorded.take(at).turned() {
		r.turned(&journal.Turned{Turn: at, Notes: t.Notes})
	}
}

// ask prepares the calls of a turn. It reports whether there are calls to wait for; if not,
// s.replies is complete.
func (r *run) ask(ctx context.Context, s *strand, t world.Turn) (waits bool, err error) {
	at := r.turn(s, t)
	calls, err := r.complete(s.episode, at, t.Calls)
	if err != nil {
		return false, err
	}
	rec := s.episode.recorded.take(at)
	digest, err := r.digestOf(calls)
	if err != nil {
		r.leave(ctx, s.episode)
		r.end(s, world.Outcome{Failed: err.Error()}, "")
		return true, nil
	}
	s.asked(digest, calls)
	if rec.turned() && rec.diverged(digest, len(calls)) {
		return false, r.diverged(ctx, at, calls, rec)
	}
	if !rec.turned() {
		r.turned(&journal.Turned{Turn: at, Digest: digest, Calls: len(calls), Notes: t.Notes})
	}
	s.replies = make([]world.Reply, len(calls))
	s.pending, s.rec = calls, rec
	return r.proceed(s)
}

// proceed makes the pending calls of a turn that have no reply yet, as many as can be paid for.
func (r *run) proceed(s *strand) (waits bool, err error) {
	for len(s.pending) > 0 && !r.budgets.refused(s) {
		n, err := r.budgets.afford(s)
		if err != nil {
			return false, err
		}
		if n == 0 {
			r.sched.block(s)
			return true, nil
		}
		now := s.pending[:n]
		s.pending = s.pending[n:]
		if open := r.recall(s, now); len(open) > 0 {
			for _, c := range r.sched.submit(s, open) {
				r.acts.start(c)
			}
			return true, nil
		}
	}
	return false, nil
}

// recall gives a strand the replies that are recorded and those of bots. It returns the calls that
// have none, in the memory of calls.
func (r *run) recall(s *strand, calls []*call) (open []*call) {
	open = calls[:0]
	for _, c := range calls {
		switch {
		case s.rec.has(c.index):
			was := &s.rec.replies[c.index]
			s.episode.recorded.recallInner(c)
			s.replies[c.index] = was.reply
			r.replay.replies.Add(1)
			r.budgets.charge(s, c, was.bill)
		case c.bot != nil:
			s.replies[c.index] = r.bot(c)
		default:
			if was := s.episode.earlier.to(c, s.episode.kind.Restarts()); was != nil {
				s.replies[c.index] = r.copied(c, was)
				continue
			}
			c.strand = s
			s.episode.recorded.recallInner(c)
			for _, req := range []*llm.Request{c.req, c.late} {
				if req != nil {
					req.Sample = r.sample(s.episode.draw, c.at, c.index)
				}
			}
			open = append(open, c)
		}
	}
	return open
}

// end ends the episode of s, which is its first strand or one that panicked.
func (r *run) end(s *strand, o world.Outcome, stack string) {
	ep := s.episode
	data, err := marshal(o.Data)
	if err != nil {
		o.Failed, data = "outcome: "+err.Error(), nil
	}
	if o.Failed == "" {
		if err := r.checkScores(ep, o.Scores); err != nil {
			o.Failed, o.Scores = err.Error(), nil
		}
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

// checkScores refuses scores outside of what the kind declares: an interval that stays within the bounds would be wrong. The kind
// may panic.
func (r *run) checkScores(ep *episode, scores []world.Score) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kind %s: Measures panicked: %v", ep.kind.Name, p)
		}
	}()
	if len(scores) == 0 {
		return nil
	}
	declared := ep.kind.Measures(ep.params)
	for _, s := range scores {
		i := slices.IndexFunc(declared, func(m world.Measure) bool { return m.Name == s.Name })
		if i < 0 || declared[i].Holds(s.Value) {
			continue
		}
		return fmt.Errorf("episode %d: the score %s is %g, and its declared range is %s: correct the world or the range", ep.number, scoreOf(s), s.Value, declared[i].Bounds)
	}
	return nil
}

// scoreOf names a score: points, or points of first.
func scoreOf(s world.Score) string {
	if s.Seat == "" {
		return s.Name
	}
	return s.Name + " of " + s.Seat
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
