package dispatch

import (
	"context"
	"fmt"
	"math"
	"sync"

	"parley/internal/queue"
	"parley/llm"
)

// Budget is an amount of money that calls draw on and do not exceed. Before a call is
// made the most it can cost is set aside; when it ended, what it did cost is spent and
// the rest given back.
//
// A call that does not fit beside the calls in flight waits for them to end, since
// most cost less than they might; one that does not fit although nothing is in flight
// is refused. So the last cent that can be spent safely is spent, and not one more. Only a
// server that gives more than it was asked for can make calls cost more: see conduct.
type Budget struct {
	// Expose, where it is set, is told before more may be in flight than ever before: the
	// most that calls in flight can cost is now up to worst. It must make that durable, so
	// that a process that is killed knows later what it may owe. Its error refuses the call.
	Expose func(worst llm.Money) error

	mu       sync.Mutex
	exposed  llm.Money // the most that Expose was told
	limit    llm.Money // 0: no limit
	spent    llm.Money
	reserved llm.Money // for calls that go live: what Expose is told of
	batched  llm.Money // for calls that go over a batch API, whose marks tell of them
	risk     llm.Money // of batches that earlier processes left, which no call accounts for yet
	queue    queue.Queue[*waiter]
	crowd    queue.Queue[*waiter] // those of the queue that there is room for once fewer calls are alone
	alone    int                  // calls that are out and may cost more than is set aside for them
	closed   bool
}

// NewBudget returns a budget of limit, of which spent is gone already. A limit of 0
// is no limit: the budget only counts.
func NewBudget(limit, spent llm.Money) *Budget {
	b := &Budget{limit: max(0, limit), spent: max(0, spent)}
	track := func(w *waiter, i int) { w.index = i }
	b.queue.Track, b.crowd.Track = track, track
	return b
}

// Spent returns what is spent for good, and what is set aside for calls in flight and open
// batches.
func (b *Budget) Spent() (spent, reserved llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent, b.reserved.Plus(b.batched).Plus(b.risk)
}

// Limit returns the limit, 0 for none.
func (b *Budget) Limit() llm.Money {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit
}

// want is a call that something is to be set aside for.
type want struct {
	prices  *priceList
	req     *llm.Request // as it is first sent
	batched bool         // it goes over a batch API
	call    *call
}

// terms are those of the call's first attempt. What its fallbacks may cost if they do not keep
// the limit counts too: an attempt at one of them cannot wait.
func (w want) terms() terms {
	t := w.prices.look(w.req.Model).terms(w.req, w.batched)
	for _, model := range w.req.Fallbacks {
		if e := w.prices.look(model); e.ok {
			t = t.beside(e.terms(w.req, false))
		}
	}
	return t
}

// hold is what is set aside for a call.
type hold struct {
	amount llm.Money
	alone  bool // it is one of the few calls that may cost more
}

// waiter is a call that waits for room.
type waiter struct {
	want
	index   int  // in its queue; -1 when it has left
	crowded bool // it stands in crowd
	ready   chan struct{}
	back    func() // says that it does not wait any more
	got     hold
	err     error
}

// reserve sets aside what w says, waiting for room if there may yet be some.
func (b *Budget) reserve(ctx context.Context, w want) (hold, error) {
	b.mu.Lock()
	if b.limit == 0 {
		defer b.mu.Unlock()
		if b.closed {
			return hold{}, drainError()
		}
		return hold{}, nil // attempts say themselves what they need
	}
	if b.queue.Len() == 0 {
		if h, ok, _ := b.room(w.terms()); ok {
			defer b.mu.Unlock()
			return h, b.give(h, w.batched)
		}
	}
	d := &waiter{want: w, ready: make(chan struct{}), back: w.call.aside()}
	b.queue.Push(d, d.req.Order)
	b.pump()
	b.mu.Unlock()
	select {
	case <-d.ready:
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		q := &b.queue
		if d.crowded {
			q = &b.crowd
		}
		if d.index >= 0 {
			q.Remove(d.index)
			d.back()
			b.pump()
			return hold{}, llm.ContextError(ctx)
		}
	}
	return d.got, d.err
}

// room says what can be set aside for t now. Where there is room for what a server is to cost
// that keeps the limit, but not for one that may not keep it, as many calls go at a time as
// t.width says: the most that is spent too much is one answer of each. crowded means that so
// many such calls are out.
func (b *Budget) room(t terms) (h hold, ok, crowded bool) {
	if most := max(t.worst, t.wide); b.fits(most) {
		return hold{amount: most}, true, false
	}
	if !t.unproven() || !b.fits(t.worst) {
		return hold{}, false, false
	}
	full := t.width > 0 && b.alone >= t.width
	return hold{amount: t.worst, alone: true}, !full, full
}

// give sets h aside.
func (b *Budget) give(h hold, batched bool) error {
	if err := b.grant(h.amount, batched); err != nil {
		return err
	}
	if h.alone {
		b.alone++
	}
	return nil
}

// tryReserve sets worst aside if there is room now.
func (b *Budget) tryReserve(worst llm.Money, batched bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fits(worst) && b.grant(worst, batched) == nil
}

// grant sets worst aside. What is exposed grows in large steps, so that it is seldom told.
func (b *Budget) grant(worst llm.Money, batched bool) error {
	if batched {
		b.batched = b.batched.Plus(worst)
		return nil
	}
	if now := b.reserved.Plus(worst); b.Expose != nil && b.limit > 0 && now > b.exposed {
		step := min(max(now.Times(2), b.limit/64), b.limit)
		if err := b.Expose(step); err != nil {
			return &llm.Error{Kind: llm.KindBudget, Message: "what this call may cost cannot be recorded: " + err.Error(), Err: err}
		}
		b.exposed = step
	}
	b.reserved = b.reserved.Plus(worst)
	return nil
}

// fits says whether worst can be set aside. Even without a limit no more is set aside than
// Money holds, so that what is given back later is what was set aside.
func (b *Budget) fits(worst llm.Money) bool {
	limit := b.limit
	if limit == 0 {
		limit = math.MaxInt64
	}
	return !b.closed && (worst == 0 && b.limit == 0 ||
		worst <= limit.Minus(b.spent).Minus(b.reserved).Minus(b.batched).Minus(b.risk))
}

// settle gives back what was set aside and spends cost.
func (b *Budget) settle(reserved, cost llm.Money, batched bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if batched {
		b.batched = b.batched.Minus(reserved)
	} else {
		b.reserved = b.reserved.Minus(reserved)
	}
	b.spent = b.spent.Plus(max(0, cost))
	b.pump()
}

// addRisk adds to what is at risk, or takes from it.
func (b *Budget) addRisk(more llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.risk = max(0, b.risk.Plus(more))
	b.pump()
}

// adoptRisk sets worst aside for a call that accounts from now on for what was at risk. There is
// always room: the money is as good as spent.
func (b *Budget) adoptRisk(risk, worst llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.risk = max(0, b.risk.Minus(risk))
	b.batched = b.batched.Plus(worst)
	b.pump()
}

// toLive moves what was set aside for a batch to what is set aside for live calls.
func (b *Budget) toLive(amount llm.Money) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.grant(amount, false); err != nil {
		return err
	}
	b.batched = b.batched.Minus(amount)
	return nil
}

// close gives back what a call leaves.
func (b *Budget) close(free llm.Money, batched, alone bool) {
	if alone {
		b.mu.Lock()
		b.alone--
		b.mu.Unlock()
	}
	b.settle(free, 0, batched)
}

// pump lets in whoever fits, in order: first those that waited to be alone.
func (b *Budget) pump() {
	for b.crowd.Len() > 0 {
		served, crowded := b.serve(&b.crowd)
		if crowded {
			break
		}
		if !served {
			return
		}
	}
	for b.queue.Len() > 0 {
		served, crowded := b.serve(&b.queue)
		switch {
		case crowded:
			d := b.queue.Pop()
			d.crowded = true
			b.crowd.Push(d, d.req.Order)
		case !served:
			return
		}
	}
}

// serve lets in or refuses the first of a queue, if it need not wait. With nothing in flight
// nobody's room will grow, so whoever does not fit then is refused.
func (b *Budget) serve(q *queue.Queue[*waiter]) (served, crowded bool) {
	d := q.Head()
	t := d.terms()
	h, ok, crowded := b.room(t)
	switch {
	case b.closed:
		d.err = drainError()
	case ok:
		d.got, d.err = h, b.give(h, d.batched)
	case crowded:
		return false, true
	case b.reserved == 0 && b.batched == 0:
		d.err = b.refusal(t.worst)
	default:
		return false, false
	}
	q.Pop()
	d.back()
	close(d.ready)
	return true, false
}

func drainError() *llm.Error {
	return &llm.Error{Kind: llm.KindCanceled, Message: "draining: nothing new is sent"}
}

func (b *Budget) refusal(worst llm.Money) *llm.Error {
	return &llm.Error{Kind: llm.KindBudget, Message: fmt.Sprintf(
		"this call may cost up to %v; %v of the budget of %v is spent", worst, b.spent, b.limit)}
}

// drain refuses whoever waits and whoever comes.
func (b *Budget) drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.pump()
}

// budget is the outermost layer: it opens an account for a call, which every attempt
// inside draws on.
type budget struct {
	next    layer
	budget  *Budget
	prices  *priceList
	batched func(c *call) bool                  // whether a call goes over a batch API
	asked   func(req *llm.Request) *llm.Request // as it is sent: see schemas
}

// ask sets aside the most the first attempt can cost, asks, and spends what it cost.
func (b *budget) ask(ctx context.Context, c *call) (*llm.Response, error) {
	a, err := b.open(ctx, c)
	if err != nil {
		return nil, err
	}
	c.account = a
	resp, err := b.next.ask(ctx, c)
	cost, estimated := a.close()
	if err != nil {
		e := *llm.AsError(err)
		e.Metadata.Cost, e.Metadata.Estimated = cost, estimated
		return nil, &e
	}
	resp.Metadata.Cost, resp.Metadata.Estimated = cost, estimated
	return resp, nil
}

// open sets aside what the first attempt can cost. A call whose line is in a batch that an
// earlier process left needs no room: it has been made for it.
func (b *budget) open(ctx context.Context, c *call) (*account, error) {
	req := c.req
	e := b.prices.look(req.Model)
	if !e.ok && b.budget.Limit() > 0 {
		return nil, b.prices.unknown(req.Model)
	}
	if b.budget.Limit() > 0 || req.MaxCost > 0 {
		if err := b.prices.unpriced(req); err != nil {
			return nil, err
		}
	}
	sent := b.asked(req)
	w := want{prices: b.prices, req: sent, batched: b.batched(c), call: c}
	if s := c.inWave; s != nil {
		var batched llm.Money
		if b.budget.Limit() > 0 {
			batched = e.terms(sent, true).worst
		}
		if risk, ok := s.Adopt(batched); ok {
			free := max(risk, batched) // several of its attempts may be out
			b.budget.adoptRisk(risk, free)
			return &account{budget: b.budget, free: free, batched: true, most: req.MaxCost}, nil
		}
	}
	h, err := b.budget.reserve(ctx, w)
	if err != nil {
		return nil, hinted(err, req, e)
	}
	return &account{budget: b.budget, free: h.amount, alone: h.alone, batched: w.batched, most: req.MaxCost}, nil
}

// hinted says what would make room, where the request leaves the most expensive part open or the
// model does not keep to it.
func hinted(err error, req *llm.Request, e *entry) error {
	was := llm.AsError(err)
	if was.Kind != llm.KindBudget {
		return err
	}
	c := *was
	switch {
	case e.conduct.output.Load() > 0:
		c.Message += fmt.Sprintf("; %s has given longer answers than it was asked for, so the longest that is possible is paid for in advance", req.Model)
	case req.MaxTokens <= 0:
		c.Message += "; a limit on output tokens (max_tokens) would lower what it may cost"
	}
	return &c
}
