package engine

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"parley/journal"
	"parley/llm"
)

// lane is the asks of one provider: a busy one must not keep others waiting.
type lane struct {
	provider string
	asks     queue[*call]  // may be sent
	next     queue[*call]  // of the next wave
	sent     map[int]*call // with Models, by position
	pulled   int
}

// submit hands calls to whoever makes them; s waits for them.
func (r *run) submit(ctx context.Context, s *strand, calls []*call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.missing = len(calls)
	for _, c := range calls {
		if c.act != nil {
			if r.stopping {
				continue
			}
			r.acting++
			r.asked++
			r.hand(ctx, c)
			continue
		}
		provider, _ := llm.SplitModel(c.req.Model)
		l := r.lanes[provider]
		r.queued++
		if r.Wave {
			l.next.push(c, s.episode.number)
		} else {
			l.asks.push(c, s.episode.number)
		}
	}
	r.wake.Broadcast()
}

// requests is what Models pulls from for a lane: it waits until there is something to
// ask, and ends when the run does.
func (r *run) requests(l *lane, yield func(*llm.Request) bool) {
	for {
		r.mu.Lock()
		for !r.stopping && !r.maySend(l) {
			r.wake.Wait()
		}
		if r.stopping {
			r.mu.Unlock()
			return
		}
		c := l.asks.pop()
		l.sent[l.pulled] = c
		l.pulled++
		r.queued--
		r.flying++
		r.asked++
		if l.asks.len() == 0 {
			r.wake.Broadcast() // time to begin another episode
		}
		r.mu.Unlock()
		if !yield(c.sent()) {
			r.untaken()
			return
		}
	}
}

// waves asks one wave after the other, each as a whole.
func (r *run) waves(ctx context.Context) {
	for {
		calls := r.takeWave()
		if len(calls) == 0 {
			return
		}
		reqs := make([]*llm.Request, len(calls))
		for i, c := range calls {
			reqs[i] = c.sent()
		}
		r.Batches.Wave(ctx, reqs, func(i int, res llm.Result) {
			c := calls[i]
			calls[i], reqs[i] = nil, nil // a wave may be long, and most of it answered
			r.came(ctx, c, res.Response, res.Err)
		})
	}
}

// takeWave waits until there is a wave and takes all of it, oldest first; none when the run
// stops.
func (r *run) takeWave() []*call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []*call
	for {
		if r.stopping {
			return nil
		}
		for _, l := range r.lanes {
			for l.asks.len() > 0 {
				calls = append(calls, l.asks.pop())
			}
		}
		if len(calls) > 0 {
			break
		}
		r.wake.Wait()
	}
	slices.SortStableFunc(calls, func(a, b *call) int { return a.at.Episode - b.at.Episode })
	r.queued -= len(calls)
	r.flying += len(calls)
	r.asked += len(calls)
	return calls
}

// untaken notes that the last request was not taken: its context ended first.
func (r *run) untaken() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying--
	r.asked--
	r.wake.Broadcast()
}

// maySend says whether an ask of l may go out.
func (r *run) maySend(l *lane) bool {
	return l.asks.len() > 0 && (r.Calls <= 0 || r.flying < r.Calls || r.flying-r.stuck(l) < r.Calls)
}

// nudge has everybody who waits look again.
func (r *run) nudge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake.Broadcast()
}

// stuck counts the calls of providers that cannot be reached, as seen by an ask of l: they keep
// nobody waiting who asks somebody else.
func (r *run) stuck(l *lane) (n int) {
	if r.Away == nil || r.Away(l.provider) {
		return 0
	}
	for name, other := range r.lanes {
		if other != l && len(other.sent) > 0 && r.Away(name) {
			n += len(other.sent)
		}
	}
	return n
}

// answered takes what came of the i-th request.
func (r *run) answered(ctx context.Context, l *lane, i int, res llm.Result) {
	r.mu.Lock()
	c := l.sent[i]
	delete(l.sent, i)
	r.mu.Unlock()
	r.came(ctx, c, res.Response, res.Err)
}

// hand gives an act to an idle goroutine, or to a new one: one that has grown its stack once
// is worth keeping.
func (r *run) hand(ctx context.Context, c *call) {
	select {
	case r.todo <- c:
	default:
		r.acts.Go(func() {
			r.act(ctx, c)
			for c := range r.todo {
				r.act(ctx, c)
			}
		})
	}
}

func (r *run) act(ctx context.Context, c *call) {
	if r.Actor == nil {
		r.came(ctx, c, nil, &llm.Error{Kind: llm.KindBadRequest, Message: "there is nobody to carry out acts"})
		return
	}
	resp, err := r.Actor.Act(ctx, c.at, c.index, c.seat, *c.act)
	r.came(ctx, c, resp, err)
}

// came records what came of a call and, once that is durable, gives it to the strand. What
// is no answer, since nothing was asked, stops the run instead: it is asked when the run
// is played on.
func (r *run) came(ctx context.Context, c *call, resp *llm.Response, err error) {
	if r.unbegun(ctx, c, err) {
		return
	}
	if reason, state := stops(ctx, c, err); state != "" {
		r.mu.Lock()
		r.landed(c)
		r.asked--
		if state == journal.Failed && r.err == nil && !r.stopping {
			r.err = err
		}
		if e := llm.AsError(err); !r.stopping && ctx.Err() == nil && e.Kind != llm.KindCanceled {
			r.cause = r.replied(c, nil, e)
		}
		r.stopLocked(state, reason)
		r.wake.Broadcast()
		r.mu.Unlock()
		return
	}
	var e *llm.Error
	if err != nil {
		e = llm.AsError(err)
	}
	rep := r.replied(c, resp, e)
	r.rec.write(rep, func(kept bool) {
		if kept {
			r.watch(Event{Replied: rep})
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.landed(c)
		if kept && e != nil {
			r.fails++
		}
		s := c.strand
		if kept && s.episode.strands != nil {
			i := c.index
			if r.arrival {
				i = len(s.replies) - s.missing
			}
			s.replies[i] = rep.Reply()
			s.episode.heard = true
			r.charge(s, c, billOf(rep))
			if s.missing--; s.missing == 0 {
				r.ready.push(s, s.episode.number)
			}
		}
		r.wake.Broadcast()
	})
}

// landed notes that a call is in flight no more.
func (r *run) landed(c *call) {
	if c.act != nil {
		r.acting--
	} else {
		r.flying--
	}
}

// stops says whether an error is about the run and not about the call.
func stops(ctx context.Context, c *call, err error) (reason journal.Reason, state journal.State) {
	e := llm.AsError(err)
	if e == nil {
		return reason, ""
	}
	switch {
	case ctx.Err() != nil:
		return causeOf(ctx), journal.Stopped
	case errors.Is(e, llm.ErrMost): // the episode's own
		return reason, ""
	case e.Kind == llm.KindBudget:
		return journal.Reason{Kind: journal.ByBudget, Detail: e.Message}, journal.Stopped
	case e.Kind == llm.KindCanceled:
		return journal.Reason{Kind: journal.ByCall, Detail: e.Message}, journal.Stopped
	case e.Kind == llm.KindQuota, e.Kind == llm.KindAuth, e.Kind == llm.KindTransport && !e.Uncertain:
		// Out of credit, refused, or not to be reached: nothing was asked, and the next call
		// would fare no better.
		return journal.Reason{Kind: journal.ByCall, Detail: e.Error()}, journal.Stopped
	case c.act == nil && e.Status == http.StatusNotFound:
		// There is no such model, or no such address: everything that is asked there would fail,
		// and the others at the table would be paid for nothing.
		return journal.Reason{Kind: journal.ByCall, Detail: e.Error()}, journal.Stopped
	case e.Kind == llm.KindBadRequest && e.Status == 0:
		return errorOf(e), journal.Failed
	default:
		return reason, ""
	}
}

func (r *run) replied(c *call, resp *llm.Response, err *llm.Error) *journal.Replied {
	return &journal.Replied{
		Turn: c.at, Index: c.index, Seat: c.seat, Label: c.label, Agent: c.agent,
		Request: c.req, Act: c.act, Response: resp, Error: err, At: time.Now(),
	}
}
