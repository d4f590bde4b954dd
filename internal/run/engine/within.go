package engine

import (
	"context"
	"errors"
	"fmt"
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

	mu    sync.Mutex
	aside llm.Money // for calls that are open
	fresh bool      // calls of this process are recorded
	over  bool
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
	sched := a.within.run.sched
	if err := sched.enter(ctx); err != nil {
		return nil, err
	}
	req.Order, req.Session = a.c.req.Order, a.c.req.Session
	if err := a.reserve(req); err != nil {
		sched.leave(true)
		return nil, err
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		a.aside -= req.MaxCost
		a.mu.Unlock()
		sched.leave(false)
	}), nil
}

// reserve sets aside what a call may cost of what the ask may. Other calls of the program may be open.
func (a *Asked) reserve(req *llm.Request) error {
	b := a.within.run.budgets
	if b.each <= 0 {
		return nil
	}
	worst, err := b.prices.Worst(req)
	if err != nil {
		return &llm.Error{Kind: llm.KindBudget, Message: "a budget for each episode: " + err.Error(), Err: err}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.c.maxCost.Minus(b.innerCost(a.c.inner)).Minus(a.aside)
	if worst > left || left <= 0 {
		why := fmt.Sprintf("the budget of this episode does not suffice: %v is left, and this call sets aside %v", max(0, left), worst)
		if a.aside > 0 {
			why += fmt.Sprintf("; calls in flight set aside %v", a.aside)
		}
		return &llm.Error{Kind: llm.KindBudget, Err: llm.ErrMaxCost, Message: why + ": raise episode_budget, or limit the output of the program's calls"}
	}
	req.MaxCost = worst.Plus((left - worst) / 4) // a part of what is left is for further attempts
	a.aside = a.aside.Plus(req.MaxCost)
	return nil
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
	if rep.Error != nil {
		r.sched.innerFailed(rep.Act != nil)
	}
	r.watch(Event{Replied: rep})
	return nil
}

// Repeated notes that a recorded call answered one of the program.
func (a *Asked) Repeated() { a.within.run.repeated.Add(1) }

// innerCost returns what the calls of a program are charged.
func (b budgets) innerCost(n *inner) llm.Money {
	return max(n.cost, b.prices.List(&n.price, llm.Usage{Input: n.input, Output: n.output}))
}

// enter waits until a call of a program may be sent: the run is not paused, and not too many calls are in flight.
func (s *scheduler) enter(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.wakeAll)
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for ctx.Err() == nil && !s.stop.stopped.Load() && (s.held || s.maxCalls > 0 && s.flying+s.saving >= s.maxCalls) {
		s.wake.Wait()
	}
	switch {
	case ctx.Err() != nil:
		return llm.ContextError(ctx)
	case s.stop.stopped.Load():
		return &llm.Error{Kind: llm.KindCanceled, Message: "the run stops"}
	}
	s.flying++
	s.made.Calls++
	return nil
}

// leave notes that a call of a program is durable, or will not be recorded. unmade means that it was not sent.
func (s *scheduler) leave(unmade bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying--
	if unmade {
		s.made.Calls--
	}
	s.saved(0)
	s.wake.Broadcast()
}

func (s *scheduler) innerFailed(act bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed(act)
}
