package office

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"parley/internal/batch"
	"parley/llm"
)

// Wave is many calls made together: what of them wants a batch is gathered until all that
// can still come has come.
//
// A call is moving, or it is parked, or it stands aside: it waits for something that is not
// of this wave's making. When none is moving, what is parked goes out.
type Wave struct {
	office *Office
	counts map[string]int // of its requests, by model
	due    time.Time      // the user's deadline; zero: none
	ready  chan struct{}  // something may go out
	over   chan struct{}  // every call has ended
	lives  sync.WaitGroup
	slower *sync.Cond // over the office's lock: fewer are moving

	// Guarded by the office.
	open    int // calls that have not ended
	moving  int // of these, those that may yet park, and batches whose results are being read
	pool    []*parked
	claimed []*ticket
}

// Begin begins a wave of requests. Serve must be called, and each call's seat must be ended.
func (o *Office) Begin(reqs []*llm.Request) *Wave {
	w := &Wave{
		office: o, counts: map[string]int{}, open: len(reqs), moving: len(reqs),
		ready: make(chan struct{}, 1), over: make(chan struct{}),
	}
	for _, r := range reqs {
		w.counts[r.Model]++
	}
	w.slower = sync.NewCond(&o.mu)
	if d := o.rule.Deadline; d > 0 {
		w.due = time.Now().Add(d)
	}
	if len(reqs) == 0 {
		close(w.over)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waves++
	return w
}

// Serve sends what is parked whenever it is time, until every call has ended.
func (w *Wave) Serve(ctx context.Context) {
	defer w.lives.Wait()
	for {
		select {
		case <-w.ready:
			w.send(ctx)
		case <-w.over:
			return
		}
	}
}

// Seat is one call's place in a wave. It is used by one goroutine at a time.
type Seat struct {
	wave   *Wave
	req    *llm.Request
	call   string // the first part of its lines' ids
	parks  int
	failed bool // a line of it failed
	took   []*ticket
}

// Seat returns the place of a call.
func (w *Wave) Seat(req *llm.Request) *Seat {
	return &Seat{wave: w, req: req, call: batch.CallPart(req)}
}

// Fund says whether an earlier sitting left lines of this call at risk. From then on the
// call, which may cost worst, answers for them, and what was at risk is less by released.
func (s *Seat) Fund(worst llm.Money) (released llm.Money, ok bool) {
	return s.wave.office.fund(s.call, worst)
}

// Batches says whether calls to a model are to go over its batch API in this wave.
func (s *Seat) Batches(model string) bool {
	w, rule := s.wave, s.wave.office.rule
	switch {
	case rule.Route == Live, !w.due.IsZero() && !time.Now().Before(w.due):
		return false
	case rule.Route == Batch:
		return true
	}
	return w.counts[model] >= rule.Min && (rule.Deadline == 0 || rule.Deadline >= autoTime)
}

// Parks says whether what is asked now is to be parked: an open batch has it, or it is to go
// over the batch API. A call whose line failed is asked live after some tries, and with auto
// at once.
func (s *Seat) Parks(c *Counter, req *llm.Request) bool {
	o := s.wave.office
	o.mu.Lock()
	claimed := o.claim(s.stem(req)) != nil
	o.mu.Unlock()
	if claimed {
		return true
	}
	again := s.parks < parkMost && (o.rule.Route == Batch || !s.failed)
	return again && !c.isShut() && s.Batches(req.Model)
}

func (s *Seat) stem(req *llm.Request) string {
	if req == s.req {
		return s.call
	}
	return batch.Stem(s.call, req)
}

// Parcel is what a call parks.
type Parcel struct {
	Counter *Counter
	Request *llm.Request
	Weight  batch.Weight
	Tokens  int       // of the prompt, about
	Worst   llm.Money // the most the line can cost
	// Insist sends it over the batch API even alone.
	Insist bool
}

// Fate is what came of a parcel.
type Fate struct {
	Live     bool // it is to be asked live
	Response *llm.Response
	Err      *llm.Error
	Asked    bool          // a provider had it, and Response or Err says what came of it
	Took     time.Duration // from the batch's beginning to now
}

// parked is a parcel that waits.
type parked struct {
	Parcel
	seat *Seat
	stem string
	slot *slot // once it is in a batch
	fate chan Fate
	gone bool // its call went away
}

// wake lets the call go on. The office is locked.
func (p *parked) wake(f Fate) {
	p.seat.wave.moving++
	p.fate <- f
}

// Park waits for what becomes of p.
func (s *Seat) Park(ctx context.Context, p Parcel) Fate {
	w, o := s.wave, s.wave.office
	me := &parked{Parcel: p, seat: s, stem: s.stem(p.Request), fate: make(chan Fate, 1)}
	o.mu.Lock()
	if o.draining {
		o.mu.Unlock()
		return Fate{Err: drainError()}
	}
	s.parks++
	if c := o.claim(me.stem); c != nil {
		c.by, me.slot = me, c
		c.ticket.waiting++
		if c.ticket.counter == nil {
			c.ticket.counter = p.Counter
		}
		w.claimed = append(w.claimed, c.ticket)
	} else {
		w.pool = append(w.pool, me)
		o.parked++
	}
	w.still()
	o.mu.Unlock()
	f := me.wait(ctx)
	s.failed = s.failed || f.Asked && f.Err != nil
	return f
}

func (p *parked) wait(ctx context.Context) Fate {
	select {
	case f := <-p.fate:
		return f
	case <-ctx.Done():
	}
	w := p.seat.wave
	w.office.mu.Lock()
	defer w.office.mu.Unlock()
	select {
	case f := <-p.fate: // at the same moment: it is ours all the same
		return f
	default:
	}
	p.gone = true
	if s := p.slot; s != nil {
		s.by, p.slot = nil, nil
		s.ticket.waiting--
	}
	w.moving++
	return Fate{Err: llm.ContextError(ctx)}
}

func drainError() *llm.Error {
	return &llm.Error{Kind: llm.KindCanceled, Message: "draining: nothing new is sent"}
}

// Aside says that the call waits for something that is not of this wave: another call, room
// in the budget, a live answer. The func it returns says that it goes on, and may be called
// by whoever lets it.
func (s *Seat) Aside() (back func()) {
	w := s.wave
	w.office.mu.Lock()
	defer w.office.mu.Unlock()
	w.still()
	return func() {
		w.office.mu.Lock()
		defer w.office.mu.Unlock()
		w.moving++
	}
}

// still notes that one of the wave is not moving any more. The office is locked.
func (w *Wave) still() {
	w.moving--
	w.slower.Broadcast()
	w.nudge()
}

func (w *Wave) nudge() {
	if w.moving > 0 || len(w.pool)+len(w.claimed) == 0 {
		return
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// End ends a call. settled means that its answer is in safe hands, or that it will not be
// asked again: what it took from batches need not be kept for it.
func (s *Seat) End(ctx context.Context, settled bool) {
	o, w := s.wave.office, s.wave
	o.mu.Lock()
	for _, t := range s.took {
		if settled {
			t.held--
		}
	}
	o.mu.Unlock()
	if settled {
		o.closeSpent(ctx, s.took)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	w.still()
	if w.open--; w.open == 0 {
		close(w.over)
	}
}

// send lets out what waits: to the batches that have it already, into new ones, or live.
func (w *Wave) send(ctx context.Context) {
	o := w.office
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.moving > 0 {
		return
	}
	pool, claimed := w.pool, w.claimed
	w.pool, w.claimed = nil, nil
	o.parked -= len(pool)
	pool = slices.DeleteFunc(pool, func(p *parked) bool { return p.gone })
	for _, t := range claimed {
		w.follow(ctx, t)
	}
	if o.draining {
		for _, p := range pool {
			p.wake(Fate{Err: drainError()})
		}
		return
	}
	for _, group := range byModel(pool) {
		w.sendModel(ctx, group)
	}
}

// sendModel sends what waits for one model.
func (w *Wave) sendModel(ctx context.Context, group []*parked) {
	o, c, model := w.office, group[0].Counter, group[0].Request.Model
	batches, live := c.shape(model, group)
	for _, lines := range batches {
		if c.isShut() || len(lines) < o.rule.Min || len(lines) < 2 {
			insisting := slices.DeleteFunc(slices.Clone(lines), func(p *parked) bool { return !p.Insist })
			live = append(live, slices.DeleteFunc(lines, func(p *parked) bool { return p.Insist })...)
			if lines = insisting; len(lines) == 0 {
				continue
			}
		}
		w.follow(ctx, o.book(c, lines))
	}
	for _, p := range live {
		p.wake(Fate{Live: true})
	}
}

// follow sees to a batch, unless somebody does already or nobody waits for it.
func (w *Wave) follow(ctx context.Context, t *ticket) {
	if t.following || t.waiting == 0 {
		return
	}
	t.following = true
	w.lives.Go(func() { w.tend(ctx, t) })
}

// byModel groups what waits by provider and model, each group in order of service.
func byModel(pool []*parked) [][]*parked {
	slices.SortStableFunc(pool, func(a, b *parked) int {
		return cmp.Or(cmp.Compare(a.Request.Model, b.Request.Model), cmp.Compare(a.Request.Order, b.Request.Order))
	})
	var out [][]*parked
	for i, p := range pool {
		if i == 0 || p.Request.Model != pool[i-1].Request.Model {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}
