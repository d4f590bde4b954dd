package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// episode is an episode that is being played.
type episode struct {
	number  int
	attempt int
	spec    world.Spec
	draw    draw
	lineup  world.Lineup
	// recorded is what the journal has of this attempt. A turn is removed when it is replayed.
	recorded recorded
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

// begin prepares episode n of the run, with what is recorded of it.
func (r *run) begin(ctx context.Context, n int, spec world.Spec, d draw) (*strand, error) {
	ep := &episode{number: n, spec: spec, draw: d, lineup: world.Lineup{}, strands: map[*strand]struct{}{}}
	for seat, name := range spec.Lineup {
		a, ok := r.agents[name]
		if !ok {
			return nil, fmt.Errorf("engine: episode %d: seat %s: no agent %q", n, seat, name)
		}
		ep.lineup[seat] = a
	}
	if p, begun := r.head.Playing[n]; begun {
		ep.attempt = p.Attempt
		if r.Kind.External() {
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
	w, err := r.world(ep)
	if err != nil {
		return nil, fmt.Errorf("engine: episode %d: %w", n, err)
	}
	s := &strand{Strand: world.Begin(w, world.Deal{Seed: r.Begun.Seed, Number: spec.Deal}), episode: ep, budget: budget{left: r.budgets.each}}
	ep.strands[s] = struct{}{}
	return s, nil
}

// world makes the world of an episode. If the kind panics, the world panics too, so that only the
// episode fails. It runs on a separate goroutine, which the kind may end, and whose stack is not
// kept.
func (r *run) world(ep *episode) (w world.World, err error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		returned := false
		defer func() {
			v := recover()
			if v == nil && !returned {
				v = "the kind called runtime.Goexit, or Fatal of a test"
			}
			if v != nil {
				w, err = world.Func(func(*world.Table) world.Outcome { panic(v) }), nil
			}
		}()
		var params world.Params
		if params, err = r.Kind.Read(ep.spec.Params); err == nil {
			w, err = r.Kind.World(params, ep.lineup)
		}
		returned = true
	})
	wg.Wait()
	return w, err
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
	if a, ok := r.Actor.(world.Leaver); ok {
		a.Leave(ctx, ep.number)
	}
}

func (r *run) turn(s *strand, t world.Turn) journal.Turn {
	return journal.Turn{Episode: s.episode.number, Attempt: s.episode.attempt, Strand: s.Path, Turn: t.Number}
}

// note records the notes of a turn without calls, unless they are already recorded.
func (r *run) note(s *strand, t world.Turn) {
	at := r.turn(s, t)
	if rec := s.episode.recorded[at]; len(t.Notes) > 0 && !rec.turned() {
		r.rec.Write(nil, &journal.Turned{Turn: at, Notes: t.Notes})
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
	rec := s.episode.recorded[at]
	delete(s.episode.recorded, at)
	digest, err := r.digestOf(calls)
	if err != nil {
		r.leave(ctx, s.episode)
		r.end(s, world.Outcome{Failed: err.Error()}, "")
		return true, nil
	}
	s.asked(digest, calls)
	if rec.turned() && rec.diverged(digest, len(calls)) {
		return false, &DivergedError{Turn: at, What: r.replay.difference(ctx, at, calls, rec)}
	}
	if !rec.turned() {
		r.rec.Write(nil, &journal.Turned{Turn: at, Digest: digest, Calls: len(calls), Notes: t.Notes})
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
// have none.
func (r *run) recall(s *strand, calls []*call) (open []*call) {
	for _, c := range calls {
		switch {
		case s.rec.has(c.index):
			s.replies[c.index] = *s.rec.replies[c.index]
			r.replay.replies.Add(1)
			if c.index < len(s.rec.bills) {
				r.budgets.charge(s, c, s.rec.bills[c.index])
			}
		case c.bot != nil:
			s.replies[c.index] = r.bot(c)
		default:
			c.strand = s
			open = append(open, c)
		}
	}
	return open
}

// call is one call of a turn, complete with the parameters of its agent.
type call struct {
	strand  *strand
	at      journal.Turn
	index   int
	seat    string
	label   string
	agent   string
	req     *llm.Request
	act     *world.Act
	bot     world.Bot
	ask     world.Call
	maxCost llm.Money // 0: no limit
}

// complete assigns each call of a turn to the agent in its seat.
func (r *run) complete(ep *episode, at journal.Turn, calls []world.Call) ([]*call, error) {
	out := make([]*call, len(calls))
	for i, c := range calls {
		a, ok := ep.lineup[c.Seat]
		if !ok {
			return nil, fmt.Errorf("engine: episode %d: the world asks seat %q, which has no agent", ep.number, c.Seat)
		}
		out[i] = &call{at: at, index: i, seat: c.Seat, label: c.Label, agent: a.Name, ask: c}
		switch {
		case c.Act != nil:
			out[i].act = c.Act
		case a.Bot != "":
			bot, ok := r.Kind.Bots()[a.Bot]
			if !ok {
				return nil, fmt.Errorf("engine: agent %s: %s has no bot %q", a.Name, r.Kind.Name, a.Bot)
			}
			out[i].bot = bot
		default:
			req := a.Request(c.Ask)
			req.Sample = r.sample(ep.draw, at, i)
			req.Order = int64(ep.number)
			if r.Released != nil {
				req.Session = r.session(ep.number, ep.attempt)
			}
			out[i].req = &req
		}
	}
	return out, nil
}

// sample returns a number that differs for equal requests at different points of a run. It is the
// same whenever the same point is reached, whatever the episode's number.
func (r *run) sample(d draw, at journal.Turn, index int) int {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 96), r.Begun.Seed)
	b = append(b, d.cell[:]...)
	for _, n := range []int{d.deal, d.nth, at.Attempt, at.Turn, index} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = append(b, at.Strand...)
	if f := r.Begun.Fork; f != nil {
		b = fmt.Appendf(b, " fork of %s %d %d", f.Run, f.Episode, f.Turn) // a fork draws anew
	}
	h := sha256.Sum256(b)
	return int(binary.BigEndian.Uint32(h[:4]) >> 1)
}

// bot asks a bot, and records its answer for readers.
func (r *run) bot(c *call) (reply world.Reply) {
	defer func() {
		if v := recover(); v != nil {
			e := broken("the bot panicked: %v", v)
			r.rec.Write(nil, r.replied(c, nil, e))
			reply = world.Reply{Failed: e.Kind}
		}
	}()
	reply = c.bot(c.ask)
	resp := &llm.Response{Text: reply.Text, JSON: reply.JSON, Finish: reply.Finish}
	r.rec.Write(nil, r.replied(c, resp, nil))
	return reply
}

// broken returns the error of a part of the kind that panicked.
func broken(format string, args ...any) *llm.Error {
	return &llm.Error{Kind: llm.KindServer, Final: true, Message: fmt.Sprintf(format, args...)}
}

// digestOf returns a digest of what a turn asks. It fails if a call has a value that JSON, and so
// the journal, cannot hold.
func (r *run) digestOf(calls []*call) (sum journal.Digest, err error) {
	// Every turn of a resumed run is digested: a cryptographic hash would cost as much as the rest.
	b, _ := r.scratch.Get().(*[]byte)
	if b == nil {
		b = new([]byte)
	}
	*b = (*b)[:0]
	for _, c := range calls {
		if *b, err = c.digested(*b); err != nil {
			return sum, fmt.Errorf("the world asks seat %s something that cannot be written as JSON: %w", c.seat, err)
		}
	}
	sum = xxh3.Hash128(*b).Bytes()
	r.scratch.Put(b)
	return sum, nil
}

// digested appends what the digest of a turn covers of a call. It leaves out the sample number,
// which differs in every episode.
func (c *call) digested(b []byte) (_ []byte, err error) {
	b = append(strconv.AppendQuote(b, c.seat), ' ')
	b = append(strconv.AppendQuote(b, c.label), ' ')
	switch {
	case c.req != nil:
		sample := c.req.Sample
		c.req.Sample = 0
		b, err = c.req.AppendDigested(b)
		c.req.Sample = sample
		return b, err
	case c.act != nil:
		b = append(strconv.AppendQuote(append(b, "act "...), c.act.Name), ' ')
		b = append(strconv.AppendInt(b, int64(len(c.act.Body)), 10), ' ')
		return append(b, c.act.Body...), nil
	default:
		return c.ask.Ask.AppendDigested(b)
	}
}
