package dispatch

import (
	"context"
	"fmt"
	"math"
	"sync"

	"parley/llm"
)

// Budget is an amount of money that calls draw on and never exceed. Before a call is
// made the most it can cost is set aside; when it ended, what it did cost is spent and
// the rest given back.
//
// A call that does not fit beside the calls in flight waits for them to end, since
// most cost less than they might; one that does not fit although nothing is in flight
// is refused. So the last cent that can be spent safely is spent, and not one more.
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
	parked   llm.Money // for calls that go over a batch API, whose marks tell of them
	risk     llm.Money // of batches that earlier sittings left, which no call answers for yet
	queue    line[*drawer]
	closed   bool
}

// NewBudget returns a budget of limit, of which spent is gone already. A limit of 0
// is no limit: the budget only counts.
func NewBudget(limit, spent llm.Money) *Budget {
	return &Budget{limit: max(0, limit), spent: max(0, spent)}
}

// Spent returns what is spent for good, and what is set aside for calls in flight and open
// batches.
func (b *Budget) Spent() (spent, reserved llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent, b.reserved.Plus(b.parked).Plus(b.risk)
}

// Limit returns the limit, 0 for none.
func (b *Budget) Limit() llm.Money {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit
}

// drawer is a call that waits for room.
type drawer struct {
	place
	worst llm.Money
	parks bool
	ready chan struct{}
	back  func() // says that it does not wait any more
	err   error
}

// reserve sets worst aside, waiting for room if there may yet be some.
func (b *Budget) reserve(ctx context.Context, worst llm.Money, parks bool, order int64) error {
	b.mu.Lock()
	if b.queue.len() == 0 && b.fits(worst) {
		err := b.grant(worst, parks)
		b.mu.Unlock()
		return err
	}
	d := &drawer{place: place{order: order}, worst: worst, parks: parks, ready: make(chan struct{}), back: aside(ctx)}
	b.queue.push(d)
	b.pump()
	b.mu.Unlock()
	select {
	case <-d.ready:
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.queue.leave(d) {
			d.back()
			b.pump()
			return llm.ContextError(ctx)
		}
	}
	return d.err
}

// tryReserve sets worst aside if there is room now.
func (b *Budget) tryReserve(worst llm.Money, parks bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fits(worst) && b.grant(worst, parks) == nil
}

// grant sets worst aside. What is exposed grows in large steps, so that it is seldom told.
func (b *Budget) grant(worst llm.Money, parks bool) error {
	if parks {
		b.parked = b.parked.Plus(worst)
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
		worst <= limit.Minus(b.spent).Minus(b.reserved).Minus(b.parked).Minus(b.risk))
}

// settle gives back what was set aside and spends cost.
func (b *Budget) settle(reserved, cost llm.Money, parks bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if parks {
		b.parked = b.parked.Minus(reserved)
	} else {
		b.reserved = b.reserved.Minus(reserved)
	}
	b.spent = b.spent.Plus(max(0, cost))
	b.pump()
}

// hazard adds to what is at risk, or takes from it.
func (b *Budget) hazard(more llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.risk = max(0, b.risk.Plus(more))
	b.pump()
}

// fund sets worst aside for a call that answers from now on for what was at risk. There is
// always room: the money is as good as spent.
func (b *Budget) fund(risk, worst llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.risk = max(0, b.risk.Minus(risk))
	b.parked = b.parked.Plus(worst)
	b.pump()
}

// unpark makes of what was set aside for a batch something for a live call.
func (b *Budget) unpark(amount llm.Money) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.grant(amount, false); err != nil {
		return err
	}
	b.parked = b.parked.Minus(amount)
	return nil
}

// pump lets in whoever fits, in order. With nothing in flight nobody's room will grow,
// so whoever does not fit then is refused.
func (b *Budget) pump() {
	for b.queue.len() > 0 {
		d := b.queue.head()
		switch {
		case b.fits(d.worst):
			d.err = b.grant(d.worst, d.parks)
		case b.closed:
			d.err = &llm.Error{Kind: llm.KindCanceled, Message: "draining: nothing new is sent"}
		case b.reserved == 0 && b.parked == 0:
			d.err = b.refusal(d.worst)
		default:
			return
		}
		b.queue.pop()
		d.back()
		close(d.ready)
	}
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
	next   llm.Model
	purse  *Budget
	prices *tariff
	parks  func(ctx context.Context, model string) bool // whether a call goes over a batch API
	asked  func(req *llm.Request) *llm.Request          // as it is sent: see schemas
}

// Ask sets aside the most the first attempt can cost, asks, and spends what it cost.
func (b *budget) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	a, err := b.open(ctx, req)
	if err != nil {
		return nil, err
	}
	resp, err := b.next.Ask(context.WithValue(ctx, accountKey{}, a), req)
	cost, estimated := a.close()
	if err != nil {
		e := *llm.AsError(err)
		e.Trail.Cost, e.Trail.Estimated = cost, estimated
		return nil, &e
	}
	resp.Trail.Cost, resp.Trail.Estimated = cost, estimated
	return resp, nil
}

// open sets aside what the first attempt can cost. A call whose line is in a batch that an
// earlier sitting left needs no room: it has been made for it.
func (b *budget) open(ctx context.Context, req *llm.Request) (*account, error) {
	parks := b.parks(ctx, req.Model)
	worst, err := b.worst(req, parks)
	if err != nil {
		return nil, err
	}
	if s := seatOf(ctx); s != nil {
		batched, err := b.worst(req, true)
		if err != nil {
			return nil, err
		}
		if risk, ok := s.Fund(batched); ok {
			free := max(risk, batched) // several of its attempts may be out
			b.purse.fund(risk, free)
			return &account{purse: b.purse, free: free, parks: true, most: req.Most}, nil
		}
	}
	if err := b.purse.reserve(ctx, worst, parks, req.Order); err != nil {
		return nil, hinted(err, req)
	}
	return &account{purse: b.purse, free: worst, parks: parks, most: req.Most}, nil
}

// hinted says what would make room, where the request leaves the dearest part open.
func hinted(err error, req *llm.Request) error {
	e := llm.AsError(err)
	if e.Kind != llm.KindBudget || req.MaxTokens > 0 {
		return err
	}
	c := *e
	c.Message += "; a limit on output tokens (max_tokens) would lower what it may cost"
	return &c
}

func (b *budget) worst(req *llm.Request, batched bool) (llm.Money, error) {
	if b.purse.Limit() == 0 {
		return 0, nil
	}
	p, ok := b.prices.find(req.Model)
	if !ok {
		return 0, b.prices.unknown(req.Model)
	}
	return worstOf(p, b.asked(req), batched), nil
}

// account is one call's share of a budget. Several attempts of the call may draw on it
// at once.
type account struct {
	purse *Budget
	mu    sync.Mutex
	free  llm.Money // set aside and not in use by an attempt
	parks bool      // it was set aside for a batch
	cost  llm.Money
	guess bool // an attempt was charged by an estimate

	most  llm.Money // that the call may cost; 0: no limit of its own
	out   llm.Money // in use by attempts
	short bool      // most has kept an attempt from being made
}

type accountKey struct{}

func accountOf(ctx context.Context) *account {
	a, _ := ctx.Value(accountKey{}).(*account)
	return a
}

// bounded says whether what attempts can cost has to be known.
func (a *account) bounded() bool { return a != nil && (a.purse.Limit() > 0 || a.most > 0) }

// allows says whether an attempt stays within what the call itself may cost.
func (a *account) allows(worst llm.Money) bool {
	if a.most > 0 && worst > a.most.Minus(a.cost).Minus(a.out) {
		a.short = true
		return false
	}
	return true
}

// noRoom is why an attempt was not begun.
func (a *account) noRoom() *llm.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.short {
		return &llm.Error{Kind: llm.KindBudget, Message: fmt.Sprintf("another attempt might cost more than the %v that this call may", a.most), Err: llm.ErrMost}
	}
	return &llm.Error{Kind: llm.KindBudget, Message: "the budget has no room for another attempt"}
}

// begin takes worst for an attempt, setting more aside if the account has too little.
func (a *account) begin(worst llm.Money) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.allows(worst) {
		return false
	}
	if more := worst - a.free; more > 0 {
		if !a.purse.tryReserve(more, a.parks) {
			return false
		}
		a.free = worst
	}
	a.free -= worst
	a.out = a.out.Plus(worst)
	return true
}

// goLive makes room for an attempt at live prices, if there is some.
func (a *account) goLive(worst llm.Money) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.allows(worst) {
		return false
	}
	if a.parks {
		if a.purse.unpark(a.free) != nil {
			return false
		}
		a.parks = false
	}
	if more := worst - a.free; more > 0 {
		if !a.purse.tryReserve(more, false) {
			return false
		}
		a.free = worst
	}
	return true
}

// end returns what an attempt that took worst was not charged.
func (a *account) end(worst llm.Money, c charge) {
	cost := c.total()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cost = a.cost.Plus(cost)
	a.guess = a.guess || c.verdict == usageMissing && cost > 0
	a.out -= worst
	spare := max(0, worst-cost)
	a.free = a.free.Plus(spare)
	a.purse.settle(worst-spare, cost, a.parks)
}

// close gives back all that was not used. It returns what the call cost, and whether some of
// that is an estimate.
func (a *account) close() (cost llm.Money, estimated bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.purse.settle(a.free, 0, a.parks)
	a.free = 0
	return a.cost, a.guess
}
