package batch

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"parley/llm"
)

// Wave is many calls made together. Their items are gathered until no more can come.
//
// A call is moving, or it has an item pending, or it is aside: it waits for something outside of
// this wave. When no call is moving, the pending items are sent.
type Wave struct {
	batcher   *Batcher
	counts    map[string]int // of its requests, by model
	due       time.Time      // the user's deadline; zero: none
	ready     chan struct{}  // something may be sent
	over      chan struct{}  // every call has ended
	followers sync.WaitGroup
	fewer     *sync.Cond // with the batcher's lock: fewer are moving

	// Guarded by the batcher.
	open    int // calls that have not ended
	moving  int // calls that may still add an item, and batches whose results are being read
	pool    []*pending
	claimed []*openBatch
}

// Begin begins a wave of requests. The caller must call Serve, and End of each Call.
func (o *Batcher) Begin(reqs []*llm.Request) *Wave {
	w := &Wave{
		batcher: o, counts: map[string]int{}, open: len(reqs), moving: len(reqs),
		ready: make(chan struct{}, 1), over: make(chan struct{}),
	}
	for _, r := range reqs {
		w.counts[r.Model]++
	}
	w.fewer = sync.NewCond(&o.mu)
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

// Serve sends the pending items whenever no call is moving, until every call has ended.
func (w *Wave) Serve(ctx context.Context) {
	defer w.followers.Wait()
	for {
		select {
		case <-w.ready:
			w.send(ctx)
		case <-w.over:
			return
		}
	}
}

// Call is one call of a wave. It must be used by one goroutine at a time.
type Call struct {
	wave   *Wave
	req    *llm.Request
	call   string // the call's part of its lines' ids
	tries  int
	failed bool // a line of it failed
	took   []*slot
}

// Call returns the call of a request.
func (w *Wave) Call(req *llm.Request) *Call {
	return &Call{wave: w, req: req, call: CallPart(req)}
}

// Adopt reports whether an earlier process left lines of this call at risk. From then on the call,
// which may cost worst, accounts for them, and released less is at risk.
func (s *Call) Adopt(worst llm.Money) (released llm.Money, ok bool) {
	return s.wave.batcher.adoptRisk(s.call, worst)
}

// Batches reports whether calls to a model are sent over its batch API in this wave.
func (s *Call) Batches(model string) bool {
	w, rule := s.wave, s.wave.batcher.rule
	switch {
	case rule.Route == Live, !w.due.IsZero() && !time.Now().Before(w.due):
		return false
	case rule.Route == Batch:
		return true
	}
	return w.counts[model] >= rule.Min && (rule.Deadline == 0 || rule.Deadline >= autoTime)
}

// UsesBatch reports whether req is sent over the batch API now: an open batch has it already, or it
// will be sent in one. A call whose line failed is asked live after some attempts, and with auto at
// once.
func (s *Call) UsesBatch(c *Queue, req *llm.Request) bool {
	o := s.wave.batcher
	o.mu.Lock()
	claimed := o.claim(s.stem(req)) != nil
	o.mu.Unlock()
	if claimed {
		return true
	}
	again := s.tries < maxTries && (o.rule.Route == Batch || !s.failed)
	return again && !c.isDisabled() && s.Batches(req.Model)
}

func (s *Call) stem(req *llm.Request) string {
	if req == s.req {
		return s.call
	}
	return batchStem(s.call, req)
}

// Item is a request that a call sends in a batch.
type Item struct {
	Queue   *Queue
	Request *llm.Request
	Weight  Weight
	Tokens  int       // of the prompt, estimated
	Worst   llm.Money // the most that the line can cost
	// Insist sends it over the batch API even alone.
	Insist bool
}

// Answered is the result of an item.
type Answered struct {
	Live     bool // ask it live
	Response *llm.Response
	Err      *llm.Error
	Asked    bool          // a provider processed it, and Response or Err is the result
	Again    bool          // this process got the same result before, and it was paid for then
	Took     time.Duration // since the batch began
}

// pending is an item that waits.
type pending struct {
	Item
	call   *Call
	stem   string
	slot   *slot // once it is in a batch
	result chan Answered
	gone   bool // its call does not wait any more
}

// wake gives the call its result. The batcher is locked.
func (p *pending) wake(f Answered) {
	p.call.wave.moving++
	p.result <- f
}

// Ask sends p in a batch and waits for its result.
func (s *Call) Ask(ctx context.Context, p Item) Answered {
	w, o := s.wave, s.wave.batcher
	me := &pending{Item: p, call: s, stem: s.stem(p.Request), result: make(chan Answered, 1)}
	o.mu.Lock()
	if o.draining {
		o.mu.Unlock()
		return Answered{Err: DrainError()}
	}
	s.tries++
	if c := o.claim(me.stem); c != nil {
		c.by, me.slot = me, c
		c.openBatch.waiting++
		if c.openBatch.queue == nil {
			c.openBatch.queue = p.Queue
		}
		w.claimed = append(w.claimed, c.openBatch)
	} else {
		w.pool = append(w.pool, me)
		o.pending++
	}
	w.stops()
	o.mu.Unlock()
	f := me.wait(ctx)
	s.failed = s.failed || f.Asked && f.Err != nil
	return f
}

func (p *pending) wait(ctx context.Context) Answered {
	select {
	case f := <-p.result:
		return f
	case <-ctx.Done():
	}
	w := p.call.wave
	w.batcher.mu.Lock()
	defer w.batcher.mu.Unlock()
	select {
	case f := <-p.result: // it arrived at the same moment
		return f
	default:
	}
	p.gone = true
	if s := p.slot; s != nil {
		s.by, p.slot = nil, nil
		s.openBatch.waiting--
	}
	w.moving++
	return Answered{Err: llm.ContextError(ctx)}
}

// DrainError returns the error of a call that a drain refuses.
func DrainError() *llm.Error {
	return &llm.Error{Kind: llm.KindCanceled, Message: "draining: nothing new is sent"}
}

// Aside notes that the call waits for something outside of this wave: another call, room in the
// budget, a live answer. The function it returns notes that the call continues; any goroutine may
// call it.
func (s *Call) Aside() (back func()) {
	w := s.wave
	w.batcher.mu.Lock()
	defer w.batcher.mu.Unlock()
	w.stops()
	return func() {
		w.batcher.mu.Lock()
		defer w.batcher.mu.Unlock()
		w.moving++
	}
}

// stops notes that one of the wave is not moving any more. The batcher is locked.
func (w *Wave) stops() {
	w.moving--
	w.fewer.Broadcast()
	w.wakeSender()
}

func (w *Wave) wakeSender() {
	if w.moving > 0 || len(w.pool)+len(w.claimed) == 0 {
		return
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// End ends a call. settled means that its answer is durable, or that it will not be asked again:
// its batches need not keep the answer. Otherwise its lines are there for the call that asks again,
// unless the process ends. Lines that were refused are of no use to it.
func (s *Call) End(ctx context.Context, settled bool) {
	o, w := s.wave.batcher, s.wave
	var all []*openBatch
	o.mu.Lock()
	for _, line := range s.took {
		switch t := line.openBatch; {
		case settled, line.refused:
			t.held--
			all = append(all, t)
		case !o.draining && ctx.Err() == nil:
			line.giveBack()
		}
	}
	o.mu.Unlock()
	o.closeDone(ctx, all)
	o.mu.Lock()
	defer o.mu.Unlock()
	w.stops()
	if w.open--; w.open == 0 {
		close(w.over)
	}
}

// send sends the items that wait: to the batches that have them already, in new ones, or live.
func (w *Wave) send(ctx context.Context) {
	o := w.batcher
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.moving > 0 {
		return
	}
	pool, claimed := w.pool, w.claimed
	w.pool, w.claimed = nil, nil
	o.pending -= len(pool)
	pool = slices.DeleteFunc(pool, func(p *pending) bool { return p.gone })
	for _, t := range claimed {
		w.follow(ctx, t)
	}
	if err := o.refusal(); err != nil {
		for _, p := range pool {
			p.wake(Answered{Err: err})
		}
		return
	}
	for _, group := range byModel(pool) {
		w.sendModel(ctx, group)
	}
}

// sendModel sends the items that wait for one model.
func (w *Wave) sendModel(ctx context.Context, group []*pending) {
	o, c, model := w.batcher, group[0].Queue, group[0].Request.Model
	batches, live := c.shape(model, group)
	for _, lines := range batches {
		if c.isDisabled() || len(lines) < o.rule.Min || len(lines) < 2 {
			insisting := slices.DeleteFunc(slices.Clone(lines), func(p *pending) bool { return !p.Insist })
			live = append(live, slices.DeleteFunc(lines, func(p *pending) bool { return p.Insist })...)
			if lines = insisting; len(lines) == 0 {
				continue
			}
		}
		w.follow(ctx, o.add(c, lines))
	}
	for _, p := range live {
		p.wake(Answered{Live: true})
	}
}

// follow follows a batch, unless another goroutine does or no call waits for it.
func (w *Wave) follow(ctx context.Context, t *openBatch) {
	if t.following || t.waiting == 0 {
		return
	}
	t.following = true
	w.followers.Go(func() { w.run(ctx, t) })
}

// byModel groups items by provider and model, each group in order of service.
func byModel(pool []*pending) [][]*pending {
	slices.SortStableFunc(pool, func(a, b *pending) int {
		return cmp.Or(cmp.Compare(a.Request.Model, b.Request.Model), cmp.Compare(a.Request.Order, b.Request.Order))
	})
	var out [][]*pending
	for i, p := range pool {
		if i == 0 || p.Request.Model != pool[i-1].Request.Model {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}
