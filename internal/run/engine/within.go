package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Within records the calls that programs make while they answer asks. They are calls of the ask's episode, in a strand that
// no world has: see journal.ProgramStrand. A world does not see them, so the digest of a run does not depend on them.
type Within struct {
	run *run

	mu   sync.Mutex
	open map[callAt]*Asked
}

// callAt is where a call is in a run.
type callAt struct {
	turn  journal.Turn
	index int
}

// inner is what the calls of a program add up to.
type inner struct {
	bill
	calls int
	price llm.Request // has the model and the tier that they are priced with
}

// add adds the bill of a call.
func (n *inner) add(b bill) {
	n.input, n.output = llm.AddTokens(n.input, b.input), llm.AddTokens(n.output, b.output)
	n.cost = n.cost.Plus(b.cost)
	n.calls++
}

// begin opens the ask c for calls.
func (w *Within) begin(c *call) *Asked {
	a := &Asked{within: w, c: c}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[callAt{c.at, c.index}] = a
	return a
}

// end closes an ask: no more calls of it are recorded.
func (w *Within) end(a *Asked) {
	w.mu.Lock()
	delete(w.open, callAt{a.c.at, a.c.index})
	w.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

// Ask returns the ask of a program that is open at the moment.
func (w *Within) Ask(at journal.Turn, index int) (*Asked, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.open[callAt{at, index}]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("call %s%d:%d of episode %d is not an open question to a program", at.Strand, at.Turn, index, at.Episode)
}

// Asked is an ask that a program is answering. It may be used from several goroutines.
type Asked struct {
	within *Within
	c      *call

	mu      sync.Mutex
	aside   llm.Money      // for calls that are open
	waiting []*llm.Request // for room in the budget of the episode, in the order in which they came
	fresh   bool           // calls of this process are recorded
	over    bool
}

// Sample distinguishes equal asks at different points of a run: see llm.Request.
func (a *Asked) Sample() int { return a.c.req.Sample }

// Past returns the calls that are recorded of the ask, also those of earlier tries.
func (a *Asked) Past(ctx context.Context) ([]journal.Entry, error) {
	a.mu.Lock()
	none := a.c.inner.calls == 0 && !a.fresh
	a.mu.Unlock()
	if none {
		return nil, nil
	}
	all, err := journal.Episode(ctx, a.within.run.Journal, a.c.at.Episode)
	if err != nil {
		return nil, err
	}
	strand, out := journal.ProgramStrand(a.c.at, a.c.index), []journal.Entry(nil)
	for _, e := range all {
		var at journal.Turn
		switch e := e.(type) {
		case *journal.Turned:
			at = e.Turn
		case *journal.Replied:
			at = e.Turn
		}
		if at.Strand == strand && at.Attempt == a.c.at.Attempt {
			out = append(out, e)
		}
	}
	return out, nil
}

// Begin waits until a call may be sent, and completes req with what the run decides: its place in the queue, its session, and the
// most that it may cost. end must be called when the call is recorded, or will not be. An error is an *llm.Error.
func (a *Asked) Begin(ctx context.Context, req *llm.Request) (end func(), err error) {
	r := a.within.run
	room := func() (bool, error) { return true, nil }
	if b := r.budgets; b.each > 0 {
		worst, err := b.prices.Worst(req)
		if err != nil {
			return nil, &llm.Error{Kind: llm.KindBudget, Message: "a budget for each episode: " + err.Error(), Err: err}
		}
		room = func() (bool, error) { return a.reserve(req, worst) }
		defer a.queue(req)()
	}
	req.Order, req.Session = a.c.req.Order, a.c.req.Session
	if err := r.sched.enter(ctx, room); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		a.aside -= req.MaxCost
		a.mu.Unlock()
		r.sched.leave()
	}), nil
}

// queue makes req wait for its turn, until leave is called.
func (a *Asked) queue(req *llm.Request) (leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, req)
	return func() {
		a.mu.Lock()
		a.waiting = slices.DeleteFunc(a.waiting, func(q *llm.Request) bool { return q == req })
		more := len(a.waiting) > 0
		a.mu.Unlock()
		if more {
			a.within.run.sched.wakeAll()
		}
	}
}

// reserve sets aside what a call may cost of what the ask may. It returns false if there may be room when other calls of the program, or
// those that came before this one, have ended.
func (a *Asked) reserve(req *llm.Request, worst llm.Money) (ok bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest := a.c.maxCost.Minus(a.within.run.budgets.innerCost(a.c.inner))
	left := rest.Minus(a.aside)
	switch {
	case a.waiting[0] != req:
		return false, nil
	case worst > rest || rest <= 0:
		return false, &llm.Error{
			Kind: llm.KindBudget, Err: llm.ErrMaxCost,
			Message: fmt.Sprintf("the budget of this episode does not suffice: %v is left, and this call sets aside %v: raise episode_budget, or limit the output of the program's calls", max(0, rest), worst),
		}
	case worst > left || left <= 0:
		return false, nil
	}
	req.MaxCost = worst.Plus((left - worst) / 4) // a part of what is left is for further attempts
	a.aside = a.aside.Plus(req.MaxCost)
	return true, nil
}

// Agent returns the agent that is asked. Its model has the version that the calls of the episode meet.
func (a *Asked) Agent() world.Agent {
	agent := *a.c.answerer
	agent.Model = a.within.run.versionOf(agent.Model, a.c)
	return agent
}

// AboutRun reports whether a failure of a call is about the run, such as a wrong key or a used up budget: the next call would fail too, and
// the run should stop.
func AboutRun(e *llm.Error) bool {
	_, stops := endOf(&call{}, e)
	return stops && e.Kind != llm.KindCanceled && e.Kind != llm.KindBadRequest
}

// Paused reports whether a call failed since the run is paused. It can be begun again: Begin waits for the end of the pause.
func (a *Asked) Paused(err error) bool {
	return errors.Is(err, ErrHeld) && !a.within.run.stop.stopped.Load()
}

// Keep makes a call durable. Number is that of its turn in the strand of the program: each call has another.
func (a *Asked) Keep(number int, digest journal.Digest, notes []world.Note, rep *journal.Replied) error {
	r, at := a.within.run, a.c.at
	at.Strand, at.Turn = journal.ProgramStrand(a.c.at, a.c.index), number
	rep.Turn, rep.Index, rep.Seat, rep.Agent = at, 0, a.c.seat, a.c.agent
	a.mu.Lock()
	over := a.over
	a.fresh = true
	a.mu.Unlock()
	if over {
		return errors.New("the question that the program answers is over")
	}
	if err := r.keep(&journal.Turned{Turn: at, Digest: digest, Calls: 1, Notes: notes}, rep); err != nil {
		return err
	}
	a.mu.Lock()
	a.c.inner.add(billOf(rep))
	a.mu.Unlock()
	r.sched.count(rep)
	r.watch(Event{Replied: rep})
	return nil
}

// Repeated notes that a recorded call answered one of the program.
func (a *Asked) Repeated() { a.within.run.repeated.Add(1) }

// innerCost returns what the calls of a program are charged.
func (b budgets) innerCost(n *inner) llm.Money {
	return max(n.cost, b.prices.List(&n.price, llm.Usage{Input: n.input, Output: n.output}))
}

// enter waits until a call of a program may be sent: the run is not paused, not too many calls are in flight, and there is room for it. leave
// must be called when it is durable, or will not be recorded.
func (s *scheduler) enter(ctx context.Context, room func() (bool, error)) error {
	stop := context.AfterFunc(ctx, s.wakeAll)
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case ctx.Err() != nil:
			return llm.ContextError(ctx)
		case s.stop.stopped.Load():
			return &llm.Error{Kind: llm.KindCanceled, Message: "the run stops"}
		case s.held || s.full(0):
		default:
			if ok, err := room(); err != nil {
				return err
			} else if ok {
				s.flying++
				return nil
			}
		}
		s.wake.Wait()
	}
}

// leave gives back the place that enter took.
func (s *scheduler) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying--
	s.saved(0)
	s.wake.Broadcast()
}
