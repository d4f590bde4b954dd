package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"parley/internal/run/planner"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

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
	late    *llm.Request // what is asked of the fallback of a person
	ask     *world.Call  // the call as the world made it; nil for models and acts
	maxCost llm.Money    // 0: no limit
	// answerer is the person or the program that is asked. Nil: it is neither.
	answerer *world.Agent
	inner    *inner // what the calls of a program add up to; nil: no program is asked
	earlier         // what attempts before the run was paused have cost, and what they have of the answer
}

// modelCall is a call of a model, with its request beside it: they live equally long.
type modelCall struct {
	call
	request llm.Request
}

// complete assigns each call of a turn to the agent in its seat. A request gets its sample number
// when it is sent.
func (r *run) complete(ep *episode, at journal.Turn, calls []world.Call) ([]*call, error) {
	out := make([]*call, len(calls))
	for i := range calls {
		c := &calls[i]
		name, ok := ep.spec.Lineup[c.Seat]
		a, _ := r.agentOf(ep, name)
		if !ok && (c.Act == nil || c.Seat != "") {
			return nil, fmt.Errorf("episode %d: the world asks seat %q, which has no agent", ep.number, c.Seat)
		}
		var made *call
		switch {
		case c.Act != nil:
			made = &call{}
		case a.Bot != "":
			made = &call{ask: c}
			if made.bot, ok = ep.kind.Bots()[a.Bot]; !ok {
				return nil, fmt.Errorf("agent %s: %s has no bot %q", a.Name, ep.kind.Name, a.Bot)
			}
		default:
			m := &modelCall{request: a.Request(c.Ask)}
			m.request.Sample, m.request.Order, m.request.Session = 0, int64(ep.number), ep.session
			m.req = &m.request
			made = &m.call
			if a.Human() || a.Program != nil {
				r.toAnswerer(made, a, c)
			}
		}
		out[i] = made
		made.at, made.index, made.seat, made.label, made.agent, made.act = at, i, c.Seat, c.Label, a.Name, c.Act
	}
	return out, nil
}

// sample returns a number that differs for equal requests at different points of a run. It is the
// same whenever the same point is reached, whatever the episode's number.
func (r *run) sample(d planner.Draw, at journal.Turn, index int) int {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 96), r.Begun.Seed)
	b = append(b, d.Cell[:]...)
	for _, n := range []int{d.Deal, d.Nth, at.Attempt, at.Turn, index} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = append(b, at.Strand...)
	if f := r.Begun.Fork; f != nil {
		b = fmt.Appendf(b, " fork of %s %d %d", f.Run, f.Episode, f.Turn) // a fork draws other numbers
	}
	h := sha256.Sum256(b)
	return int(binary.BigEndian.Uint32(h[:4]) >> 1)
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

// digested appends what the digest of a turn covers of a call. It comes before the request gets its
// sample number, which differs in every episode.
func (c *call) digested(b []byte) ([]byte, error) {
	b = append(strconv.AppendQuote(b, c.seat), ' ')
	b = append(strconv.AppendQuote(b, c.label), ' ')
	switch {
	case c.req != nil && c.answerer != nil && c.answerer.Program != nil: // its command may be corrected, and it is the same agent
		req := *c.req
		req.Model = c.agent
		return req.AppendDigested(b)
	case c.req != nil:
		return c.req.AppendDigested(b)
	case c.act != nil:
		b = append(strconv.AppendQuote(append(b, "act "...), c.act.Name), ' ')
		b = append(strconv.AppendInt(b, int64(len(c.act.Body)), 10), ' ')
		return append(b, c.act.Body...), nil
	default:
		return c.ask.Ask.AppendDigested(b)
	}
}

// sent returns the request with its cost limit, the beginning of its answer and the version of its model, which are not recorded.
func (r *run) sent(c *call) *llm.Request {
	model := r.versionOf(c.req.Model, c)
	if c.maxCost == 0 && c.begun == nil && model == c.req.Model {
		return c.req
	}
	req := *c.req
	req.Model, req.MaxCost, req.Begun = model, c.maxCost, c.begun
	if c.maxCost > 0 { // what attempts before the run was paused have cost, and what they have of the answer count; 0 would mean that there is no limit
		req.MaxCost = max(1, c.maxCost.Minus(c.paid))
	}
	return &req
}

// versionOf returns the version of a model that answers a call.
func (r *run) versionOf(model string, c *call) string {
	if r.Version == nil || model == "" {
		return model
	}
	return r.Version(model, c.strand.episode.spec)
}

// bot asks a bot, and records its answer for readers.
func (r *run) bot(c *call) (reply world.Reply) {
	defer func() {
		if v := recover(); v != nil {
			e := brokenError("the bot panicked: %v", v)
			r.rec.Write(nil, r.replied(c, nil, e))
			reply = world.Reply{Failed: e.Kind}
		}
	}()
	reply = c.bot(*c.ask)
	resp := &llm.Response{Text: reply.Text, JSON: reply.JSON, Finish: reply.Finish}
	r.rec.Write(nil, r.replied(c, resp, nil))
	return reply
}

// brokenError returns the error of a bot or an actor that panicked or broke its promises.
func brokenError(format string, args ...any) *llm.Error {
	return &llm.Error{Kind: llm.KindServer, Final: true, Message: fmt.Sprintf(format, args...)}
}

// requests yields the asks of a provider to Models: it waits for the next ask, and ends when the
// run does.
func (r *run) requests(q *providerQueue, yield func(*llm.Request) bool) {
	for c := r.sched.pull(q); c != nil; c = r.sched.pull(q) {
		if !yield(r.sent(c)) {
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
			reqs[i] = r.sent(c)
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
			resp, err = nil, brokenError("the actor panicked: %v", v)
		case !returned:
			resp, err = nil, brokenError("the actor called runtime.Goexit")
		case resp == nil && err == nil:
			err = brokenError("the actor returned neither a response nor an error")
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
		err = brokenError("%v", err)
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
	if e, ok := stopsRun(ctx, c, err); ok {
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

// refusal is why a call does not fit a budget: see budget.RefusalError.
type refusal interface {
	error
	Text(limit, set string) string
}

// stopsRun reports whether an error is about the run and not only about the call, and how the run then
// ends.
func stopsRun(ctx context.Context, c *call, err error) (_ ending, ok bool) {
	if err != nil && ctx.Err() != nil {
		return stoppedBy(ctx), true
	}
	return endOf(c, err)
}

// endOf returns the end of the run that a failure of a call means, if it is about the run.
func endOf(c *call, err error) (_ ending, ok bool) {
	e := llm.AsError(err)
	if e == nil {
		return ending{}, false
	}
	stopped := func(by journal.ReasonKind, detail string) (ending, bool) {
		return ending{state: journal.Stopped, reason: journal.Reason{Kind: by, Detail: detail}}, true
	}
	switch {
	case errors.Is(e, llm.ErrMaxCost): // the episode's own
		return ending{}, false
	case e.Kind == llm.KindBudget:
		if r, ok := errors.AsType[refusal](e.Err); ok && (c.answerer == nil || c.answerer.Program == nil) { // a program decides itself how much it asks for
			return stopped(journal.ByBudget, r.Text("max_tokens", "agents."+c.agent+".max_tokens, in a new run file,"))
		}
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
	case e.Kind == llm.KindBadRequest && e.Status == 0 && c.answerer != nil && c.answerer.Program != nil:
		return stopped(journal.ByCall, e.Message) // it cannot be started, so no other question to it could be answered
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

// Answerer asks people, or programs.
type Answerer interface {
	// Ask puts a question and waits for the answer. It fails with llm.KindTimeout at the deadline of a person, and with
	// llm.KindCanceled after Drain.
	Ask(ctx context.Context, q Question) (*llm.Response, error)
	// Drain withdraws all open questions. They are asked again when the run is resumed.
	Drain()
}

// Question is a question to a person or a program.
type Question struct {
	Turn               journal.Turn
	Index              int // of the call in its turn
	Seat, Agent, Label string
	Request            *llm.Request
	Offer              *world.Offer
	Deadline           time.Duration  // 0: none
	Program            *world.Program // nil: a person is asked
	Model              string         // answers what the program asks
	Work               *world.Work    // for a program
}

// toAnswerer makes c a question to the person or program a.
func (r *run) toAnswerer(c *call, a world.Agent, ask *world.Call) {
	c.answerer, c.ask = &a, ask
	if a.Program != nil {
		c.inner = &inner{price: llm.Request{Model: a.Model, Tier: a.Tier, Fallbacks: a.Fallbacks}}
	}
	if f, ok := r.agents[a.Fallback]; ok && f.Model != "" && !f.Human() {
		late := f.Request(ask.Ask)
		late.Order, late.Session = c.req.Order, c.req.Session
		c.late = &late
	}
}

// billed returns the request that a call may have to pay for. A person costs nothing, and the
// fallback of a person may. What a program asks its model is paid for by calls of its own. It returns nil if nothing can be paid for.
func (c *call) billed() *llm.Request {
	if c.late != nil || c.answerer != nil {
		return c.late
	}
	return c.req
}

// question asks a person or a program. If a person does not answer in time, the fallback does.
func (r *run) question(ctx context.Context, c *call) {
	q := Question{
		Turn: c.at, Index: c.index, Seat: c.seat, Agent: c.agent, Label: c.label, Request: c.req, Offer: c.ask.Offer, Deadline: c.answerer.Deadline,
		Program: c.answerer.Program, Work: c.ask.Work,
	}
	to, why := r.People, "is a person, and this run cannot ask people: play it into a run file"
	if q.Program != nil {
		to, why, q.Model = r.Programs, "is a program, and this run cannot start programs", c.answerer.Model
	}
	if to == nil {
		r.onReply(ctx, c, nil, &llm.Error{Kind: llm.KindBadRequest, Message: "agent " + c.agent + " " + why})
		return
	}
	resp, err := r.answer(ctx, to, q, c)
	if c.late != nil && llm.KindOf(err) == llm.KindTimeout {
		r.sched.fallBack(c)
		return
	}
	r.onReply(ctx, c, resp, err)
}

// answer asks a person or a program. The calls of a program are recorded until it has answered.
func (r *run) answer(ctx context.Context, to Answerer, q Question, c *call) (*llm.Response, error) {
	if c.inner != nil {
		defer r.within.end(r.within.begin(c))
	}
	return to.Ask(ctx, q)
}

// fallBack asks a model what a person has not answered.
func (s *scheduler) fallBack(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done(c)
	c.req, c.answerer = c.late, nil
	s.enqueue(c)
	s.wake.Broadcast()
}
