package dispatch

import (
	"context"
	"time"

	"parley/internal/batch/office"
	"parley/llm"
)

// park is one attempt of a call over a batch API: it takes the place of limit and meter. It
// draws on the call's account at the batch's rates, waits for its line, and counts.
type park struct {
	counter *office.Counter
	guess   *estimator
	prices  *tariff
	stats   *Stats
	notices *notices
}

// tokenMargin is by how much prompts are taken to be longer than is guessed, where a limit
// on waiting tokens is kept.
const tokenMargin = 1.15

// parks says whether a call goes over the batch API of its model.
func (l *lanes) parks(c *call) bool {
	if c.seat == nil || !c.seat.Batches(c.req.Model) {
		return false
	}
	name, _ := llm.SplitModel(c.req.Model)
	lane, err := l.lane(name)
	return err == nil && lane.park != nil
}

// ask parks the call, or asks live where that is what is to be.
func (p *park) ask(ctx context.Context, c *call, live func() (*llm.Response, error)) (*llm.Response, error) {
	req, s := c.req, c.seat
	t := p.tab(c)
	if !s.Parks(p.counter, req) {
		if !t.affords() {
			return nil, t.account.noRoom()
		}
		return live()
	}
	w, err := p.counter.Desk.Weigh(req)
	if err != nil {
		return nil, err
	}
	size := sizeOf(req)
	input, _ := p.guess.tokens(req, size)
	parcel := office.Parcel{Counter: p.counter, Request: req, Weight: w, Tokens: int(input * tokenMargin), Worst: t.parked}
	for {
		if !t.begin() {
			return nil, t.account.noRoom()
		}
		f := s.Park(ctx, parcel)
		paid := t.end(req, &f)
		p.notices.settled(t.known, req, t.held, paid)
		switch {
		case !f.Live:
			p.count(req, f, paid, t.known.ok)
			if f.Err != nil {
				return nil, f.Err
			}
			p.guess.learn(req, size, f.Response.Usage)
			f.Response.Dropped = w.Dropped
			f.Response.Trail.Latency, f.Response.Trail.FirstByte = f.Took, f.Took
			return f.Response, nil
		case t.affords():
			return live()
		case parcel.Insist:
			return nil, t.account.noRoom()
		}
		parcel.Insist = true // alone in a batch it costs half
	}
}

// tab is what an attempt is charged to. The most it can cost is zero where no budget is
// kept, and parked is for the marks all the same.
type tab struct {
	known        *entry
	account      *account
	parked, live llm.Money
	held         llm.Money // set aside for the line
}

func (p *park) tab(c *call) *tab {
	t := &tab{known: p.prices.look(c.req.Model), account: c.account}
	if !t.known.ok {
		return t
	}
	t.parked = t.known.terms(c.req, true).worst
	if t.account.bounded() {
		t.held, t.live = t.parked, t.known.terms(c.req, false).worst
	}
	return t
}

func (t *tab) begin() bool {
	_, ok := t.account.begin(terms{worst: t.held})
	return ok
}

// affords makes room for the attempt at live prices.
func (t *tab) affords() bool { return t.account.goLive(t.live) }

// end settles what the line cost, and what it may have. An answer that cannot be accepted
// becomes an error.
func (t *tab) end(req *llm.Request, f *office.Fate) (c charge) {
	if f.Response != nil || f.Err != nil {
		one := attempt{req: req, price: t.known.price, batched: true}
		if f.Asked {
			one.worst = t.held
		}
		if c, f.Err = one.settle(f.Response, f.Err); f.Err != nil {
			f.Response = nil
		}
		if t.held > 0 {
			t.known.observe(req, f.Response, c)
		}
	}
	t.account.end(t.held, c)
	return c
}

// count counts an attempt that a provider had.
func (p *park) count(req *llm.Request, f office.Fate, c charge, priced bool) {
	if !f.Asked {
		return
	}
	p.stats.count(req.Model, func(m *ModelStats) {
		m.Attempts++
		m.Batched++
		m.charge(c, priced)
		if f.Err != nil {
			m.failed(f.Err)
			return
		}
		m.refusedSince = time.Time{}
		m.Usage = m.Usage.Plus(f.Response.Usage)
	})
}
