package engine

import (
	"context"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// People asks people.
type People interface {
	// Ask puts a question to a person and waits for the answer. It fails with llm.KindTimeout at
	// the deadline, and with llm.KindCanceled after Drain.
	Ask(ctx context.Context, q Question) (*llm.Response, error)
	// Drain withdraws all open questions. They are asked again when the run is resumed.
	Drain()
}

// Question is a question to a person.
type Question struct {
	Turn               journal.Turn
	Index              int // of the call in its turn
	Seat, Agent, Label string
	Request            *llm.Request
	Offer              *world.Offer
	Deadline           time.Duration // 0: none
}

// toPerson makes c a question to the person a.
func (r *run) toPerson(c *call, a world.Agent, ask *world.Call) {
	c.person, c.ask = &a, ask
	if f, ok := r.agents[a.Fallback]; ok && f.Model != "" && !f.Human() {
		late := f.Request(ask.Ask)
		late.Order, late.Session = c.req.Order, c.req.Session
		c.late = &late
	}
}

// billed returns the request that a call may have to pay for. A person costs nothing, and the
// fallback of a person may. It returns nil if nothing can be paid for.
func (c *call) billed() *llm.Request {
	if c.late != nil || c.person != nil {
		return c.late
	}
	return c.req
}

// question asks a person. If the person does not answer in time, the fallback does.
func (r *run) question(ctx context.Context, c *call) {
	if r.People == nil {
		r.onReply(ctx, c, nil, &llm.Error{Kind: llm.KindBadRequest, Message: "agent " + c.agent + " is a person, and this run cannot ask people: play it into a run file"})
		return
	}
	q := Question{Turn: c.at, Index: c.index, Seat: c.seat, Agent: c.agent, Label: c.label, Request: c.req, Offer: c.ask.Offer, Deadline: c.person.Deadline}
	resp, err := r.People.Ask(ctx, q)
	if c.late != nil && llm.KindOf(err) == llm.KindTimeout {
		r.sched.fallBack(c)
		return
	}
	r.onReply(ctx, c, resp, err)
}

// fallBack asks a model what a person has not answered.
func (s *scheduler) fallBack(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done(c)
	s.asked--
	c.req, c.person = c.late, nil
	s.enqueue(c)
	s.wake.Broadcast()
}
