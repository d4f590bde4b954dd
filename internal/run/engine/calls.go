package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// requests yields the asks of a provider to Models: it waits for the next ask, and ends when the
// run does.
func (r *run) requests(l *providerQueue, yield func(*llm.Request) bool) {
	for c := r.sched.pull(l); c != nil; c = r.sched.pull(l) {
		if !yield(c.sent()) {
			r.sched.untaken()
			return
		}
	}
}

// waves asks one wave after the other.
func (r *run) waves(ctx context.Context) {
	for calls := r.sched.pullWave(); len(calls) > 0; calls = r.sched.pullWave() {
		reqs := make([]*llm.Request, len(calls))
		for i, c := range calls {
			reqs[i] = c.sent()
		}
		r.Batches.Wave(ctx, reqs, func(i int, res llm.Result) {
			c := calls[i]
			calls[i], reqs[i] = nil, nil // release it: a wave may be large
			r.sched.landed()
			r.onReply(ctx, c, res.Response, res.Err)
		})
	}
}

// actPool is the goroutines that carry out acts and ask people. None waits for another: if no goroutine is idle,
// a new one is started. Goroutines are reused, which saves growing their stacks again.
type actPool struct {
	act  func(*call)
	todo chan *call // for idle goroutines
	wg   sync.WaitGroup
}

// start carries out c.
func (p *actPool) start(c *call) {
	select {
	case p.todo <- c:
	default:
		p.wg.Go(func() {
			p.act(c)
			for c := range p.todo {
				p.act(c)
			}
		})
	}
}

// close ends the goroutines and waits for them.
func (p *actPool) close() {
	close(p.todo)
	p.wg.Wait()
}

func (r *run) act(ctx context.Context, c *call) {
	if r.Actor == nil && c.act.Do == nil {
		r.onReply(ctx, c, nil, &llm.Error{Kind: llm.KindBadRequest, Message: "no actor is configured to carry out acts"})
		return
	}
	var resp *llm.Response
	var err error
	returned := false
	defer func() {
		v := recover()
		switch {
		case v != nil:
			resp, err = nil, broken("the actor panicked: %v", v)
		case !returned:
			resp, err = nil, broken("the actor called runtime.Goexit")
		case resp == nil && err == nil:
			err = broken("the actor returned neither a response nor an error")
		}
		r.onReply(ctx, c, resp, err)
	}()
	if c.act.Do != nil {
		resp, err = r.do(ctx, c)
	} else {
		resp, err = r.Actor.Act(ctx, c.at, c.index, c.seat, *c.act)
	}
	returned = true
}

// do carries out an act that the world brings itself.
func (r *run) do(ctx context.Context, c *call) (*llm.Response, error) {
	key := fmt.Sprintf("%s.%d.%d.%s%d.%d", r.Begun.Run, c.at.Episode, c.at.Attempt, c.at.Strand, c.at.Turn, c.index)
	result, err := c.act.Do(ctx, key)
	if err == nil {
		return &llm.Response{JSON: result, Finish: llm.FinishStop}, nil
	}
	if raised, ok := errors.AsType[*world.CodeError](err); ok {
		return nil, &llm.Error{Kind: llm.KindRaised, Final: true, Message: strings.ToValidUTF8(raised.Text, "\uFFFD")}
	}
	if _, known := errors.AsType[*llm.Error](err); !known {
		err = broken("%v", err)
	}
	return nil, err
}

// onReply records the result of a call and, once that is durable, gives it to the strand. An error
// that means that nothing was asked stops the run instead: the call is made again when the run is
// resumed.
func (r *run) onReply(ctx context.Context, c *call, resp *llm.Response, err error) {
	if calledOff(ctx, c, err) && r.sched.giveUp(c) {
		return
	}
	if errors.Is(err, ErrHeld) && ctx.Err() == nil && !r.stop.stopped.Load() {
		r.sched.requeue(c, llm.AsError(err))
		return
	}
	if e, ok := stops(ctx, c, err); ok {
		if fault := llm.AsError(err); c.act == nil && (ctx.Err() != nil && fault.Uncertain || errors.Is(err, ErrHeld) && fault.Metadata.Cost > 0) {
			r.cutOff.Add(1)
		}
		if fault := llm.AsError(err); ctx.Err() == nil && fault.Kind != llm.KindCanceled {
			e.cause = r.replied(c, nil, fault)
		}
		r.stop.stop(e) // first: a strand that waits for the call must not count as stuck
		r.sched.withdraw(c)
		return
	}
	var e *llm.Error
	if err != nil {
		e = llm.AsError(err)
	}
	rep := r.replied(c, resp, e)
	addCost(rep, c.paid)
	r.sched.settle(c)
	r.rec.Write(func(err error) {
		if err != nil {
			r.sched.deliver(c, nil, r.arrival)
			return
		}
		r.watch(Event{Replied: rep})
		r.budgets.charge(c.strand, c, billOf(rep))
		r.sched.deliver(c, rep, r.arrival)
	}, rep)
}

// calledOff reports whether an act was canceled before anything was done. If the run is closing,
// its episode is given up, and the next process begins it again.
func calledOff(ctx context.Context, c *call, err error) bool {
	return c.act != nil && ctx.Err() == nil && llm.KindOf(err) == llm.KindCanceled
}

// stops reports whether an error is about the run and not only about the call, and how the run then
// ends.
func stops(ctx context.Context, c *call, err error) (_ ending, ok bool) {
	e := llm.AsError(err)
	if e == nil {
		return ending{}, false
	}
	stopped := func(by journal.ReasonKind, detail string) (ending, bool) {
		return ending{state: journal.Stopped, reason: journal.Reason{Kind: by, Detail: detail}}, true
	}
	switch {
	case ctx.Err() != nil:
		return stoppedBy(ctx), true
	case errors.Is(e, llm.ErrMaxCost): // the episode's own
		return ending{}, false
	case e.Kind == llm.KindBudget:
		return stopped(journal.ByBudget, e.Message)
	case e.Kind == llm.KindCanceled:
		return stopped(journal.ByCall, e.Message)
	case e.Kind == llm.KindQuota, e.Kind == llm.KindAuth, e.Kind == llm.KindTransport && !e.Uncertain:
		// Out of credit, refused, or unreachable: nothing was asked, and the next call would fail
		// too.
		return stopped(journal.ByCall, e.Error())
	case c.act == nil && e.Status == http.StatusNotFound:
		// There is no such model or address: every call to it would fail, and the calls of other
		// agents would be wasted.
		return stopped(journal.ByCall, e.Error())
	case e.Kind == llm.KindBadRequest && e.Status == 0:
		end := failedWith(e)
		end.err = err
		return end, true
	default:
		return ending{}, false
	}
}

func (r *run) replied(c *call, resp *llm.Response, err *llm.Error) *journal.Replied {
	return &journal.Replied{
		Turn: c.at, Index: c.index, Seat: c.seat, Label: c.label, Agent: c.agent,
		Request: c.req, Act: c.act, Response: resp, Error: err, At: time.Now(),
	}
}
