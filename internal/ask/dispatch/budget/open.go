package budget

import (
	"context"
	"fmt"

	"parley/llm"
)

// Want is a call that needs an account.
type Want struct {
	Request *llm.Request
	Sent    *llm.Request // Request as it is first sent
	Batched bool         // it goes over a batch API
	Wave    Wave         // nil: the call is not part of a wave

	lacks *Terms // what an attempt after the first needs; nil: it is the first
}

// Wave is the wave that a call is part of.
type Wave interface {
	// Adopt reports whether an earlier process left the call in a batch. From then on the call, which
	// can cost worst there, accounts for the risk that is returned.
	Adopt(worst llm.Money) (risk llm.Money, ok bool)
	// Aside notes that the call waits for others, until back is called.
	Aside() (back func())
}

func (w Want) aside() (back func()) {
	if w.Wave != nil {
		return w.Wave.Aside()
	}
	return func() {}
}

// terms returns those of the call's next attempt. For the first, what its fallbacks may cost if they exceed the
// limit counts too, so that an attempt at one of them need not wait.
func (w Want) terms(prices *Prices) Terms {
	if w.lacks != nil {
		return *w.lacks
	}
	t := prices.Look(w.Sent.Model).Terms(w.Sent, w.Batched)
	for _, model := range w.Sent.Fallbacks {
		if m := prices.Look(model); m.OK {
			t = t.beside(m.Terms(w.Sent, false))
		}
	}
	return t
}

// Open returns the account of a call, with what its first attempt can cost. It waits for room if
// there may be some later. A call in a batch that an earlier process left needs no room: that was
// reserved before.
func (b *Budget) Open(ctx context.Context, prices *Prices, w Want) (*Account, error) {
	req := w.Request
	m := prices.Look(req.Model)
	limited := b.Limit() > 0
	if !m.OK && limited {
		return nil, prices.Unknown(req.Model)
	}
	if limited || req.MaxCost > 0 {
		if err := prices.unpriced(req); err != nil {
			return nil, err
		}
	}
	if w.Wave != nil {
		var worst llm.Money
		if limited {
			worst = m.Terms(w.Sent, true).Worst
		}
		if risk, ok := w.Wave.Adopt(worst); ok {
			free := max(risk, worst) // several of its attempts may be in the batch
			b.adoptRisk(risk, free)
			return &Account{budget: b, free: free, batched: true, adopted: true, wave: w.Wave, maxCost: req.MaxCost}, nil
		}
	}
	h, err := b.reserve(ctx, prices, w)
	if err != nil {
		return nil, hinted(err, req, m)
	}
	return &Account{budget: b, free: h.amount, trusted: h.trusted, unlimited: h.unlimited, batched: w.Batched, wave: w.Wave, maxCost: req.MaxCost}, nil
}

// hinted adds what would make room, if the request does not limit its output or the model does not
// keep to the limit.
func hinted(err error, req *llm.Request, m *Model) error {
	was := llm.AsError(err)
	if was.Kind != llm.KindBudget {
		return err
	}
	c := *was
	switch {
	case m.conduct.output.Load() > 0:
		c.Message += fmt.Sprintf("; %s has given longer answers than it was asked for, so the longest that is possible is paid for in advance", req.Model)
	case req.MaxTokens <= 0:
		c.Message += "; a limit on output tokens (max_tokens) would lower what it may cost"
	}
	return &c
}

// Shortage says that calls wait for room.
type Shortage struct {
	Calls  int       `json:"calls"`
	Model  string    `json:"model"`  // of the first
	Amount llm.Money `json:"amount"` // that is set aside for it
	// Exceeds means that the model's server is not known to stop at max_tokens.
	Exceeds bool `json:"exceeds,omitempty"`
	// Room is how many such calls the budget has room for at once. 0: not known, since it is a part of a larger one.
	Room int `json:"room,omitempty"`
}

// Shortage says how many calls wait for room. Calls is 0 if none does.
func (b *Budget) Shortage() (s Shortage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, q := b.queue.Len()+b.crowd.Len(), &b.crowd
	if n == 0 {
		return s
	}
	if b.crowd.Len() == 0 {
		q = &b.queue
	}
	d := q.Head()
	t := d.terms(d.prices)
	s = Shortage{Calls: n, Model: d.Sent.Model}
	s.Amount, s.Exceeds = t.Aside()
	if b.part == nil {
		s.Room = t.AtOnce(b.left().Plus(b.reserved))
	}
	return s
}
