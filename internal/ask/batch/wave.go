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
func (b *Batcher) Begin(reqs []*llm.Request) *Wave {
	w := &Wave{
		batcher: b, counts: map[string]int{}, open: len(reqs), moving: len(reqs),
		ready: make(chan struct{}, 1), over: make(chan struct{}),
	}
	for _, r := range reqs {
		w.counts[r.Model]++
	}
	w.fewer = sync.NewCond(&b.mu)
	if d := b.policy.Deadline; d > 0 {
		w.due = time.Now().Add(d)
	}
	if len(reqs) == 0 {
		close(w.over)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waves++
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
func (c *Call) Adopt(worst llm.Money) (released llm.Money, ok bool) {
	return c.wave.batcher.adoptRisk(c.call, worst)
}

// Batches reports whether calls to a model are sent over its batch API in this wave.
func (c *Call) Batches(model string) bool {
	w, policy := c.wave, c.wave.batcher.policy
	switch {
	case policy.Route == Live, !w.due.IsZero() && !time.Now().Before(w.due):
		return false
	case policy.Route == Batch:
		return true
	}
	return w.counts[model] >= policy.Least() && (policy.Deadline == 0 || policy.Deadline >= autoTime)
}

// UsesBatch reports whether req is sent over the batch API now: an open batch has it already, or it
// will be sent in one. A call whose line failed is asked live after some attempts, and with auto at
// once.
func (c *Call) UsesBatch(q *Queue, req *llm.Request) bool {
	b := c.wave.batcher
	b.mu.Lock()
	claimed := b.claim(c.stem(req)) != nil
	b.mu.Unlock()
	if claimed {
		return true
	}
	again := c.tries < maxTries && (b.policy.Route == Batch || !c.failed)
	return again && !q.isDisabled() && c.Batches(req.Model)
}

func (c *Call) stem(req *llm.Request) string {
	if req == c.req {
		return c.call
	}
	return stemOf(c.call, req)
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

// Ask sends an item in a batch and waits for its result.
func (c *Call) Ask(ctx context.Context, item Item) Answered {
	w, b := c.wave, c.wave.batcher
	p := &pending{Item: item, call: c, stem: c.stem(item.Request), result: make(chan Answered, 1)}
	b.mu.Lock()
	if b.draining {
		b.mu.Unlock()
		return Answered{Err: DrainError()}
	}
	c.tries++
	if line := b.claim(p.stem); line != nil {
		line.by, p.slot = p, line
		line.openBatch.waiting++
		if line.openBatch.queue == nil {
			line.openBatch.queue = item.Queue
		}
		w.claimed = append(w.claimed, line.openBatch)
	} else {
		w.pool = append(w.pool, p)
		b.pending++
	}
	w.stops()
	b.mu.Unlock()
	f := p.wait(ctx)
	c.failed = c.failed || f.Asked && f.Err != nil
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
func (c *Call) Aside() (back func()) {
	w := c.wave
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
func (c *Call) End(ctx context.Context, settled bool) {
	b, w := c.wave.batcher, c.wave
	var all []*openBatch
	b.mu.Lock()
	for _, line := range c.took {
		switch t := line.openBatch; {
		case settled, line.refused:
			t.held--
			all = append(all, t)
		case !b.draining && ctx.Err() == nil:
			line.giveBack()
		}
	}
	b.mu.Unlock()
	b.closeDone(ctx, all)
	b.mu.Lock()
	defer b.mu.Unlock()
	w.stops()
	if w.open--; w.open == 0 {
		close(w.over)
	}
}

// send sends the items that wait: to the batches that have them already, in new ones, or live.
func (w *Wave) send(ctx context.Context) {
	b := w.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.moving > 0 {
		return
	}
	pool, claimed := w.pool, w.claimed
	w.pool, w.claimed = nil, nil
	b.pending -= len(pool)
	pool = slices.DeleteFunc(pool, func(p *pending) bool { return p.gone })
	for _, t := range claimed {
		w.follow(ctx, t)
	}
	if err := b.refusal(); err != nil {
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
	b, q, model := w.batcher, group[0].Queue, group[0].Request.Model
	batches, live := q.shape(model, group)
	for _, lines := range batches {
		if q.isDisabled() || len(lines) < b.policy.Least() || len(lines) < 2 {
			insisting := slices.DeleteFunc(slices.Clone(lines), func(p *pending) bool { return !p.Insist })
			live = append(live, slices.DeleteFunc(lines, func(p *pending) bool { return p.Insist })...)
			if lines = insisting; len(lines) == 0 {
				continue
			}
		}
		w.follow(ctx, b.add(q, lines))
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
