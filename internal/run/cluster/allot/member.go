package allot

import (
	"context"
	"sync"

	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// Member keeps the budget of a worker in step with the keeper. It may be used from several goroutines.
type Member struct {
	worker string
	budget *budget.Budget
	short  chan struct{}

	mu     sync.Mutex
	seq    uint64
	epoch  uint64
	number uint64
	given  llm.Money // by the keeper of this epoch

	exposed llm.Money     // what the worker may send
	wanted  llm.Money     // what it says, which is more while it waits for the keeper
	since   uint64        // the first ask that says so
	heard   uint64        // the last ask whose exposure is durable
	noRoom  uint64        // the last ask for whose exposure the budget has no room
	news    chan struct{} // closed when heard changes
}

// NewMember returns the member of a worker's session, which has nothing yet of a budget with this limit.
func NewMember(worker string, limit llm.Money) *Member {
	m := &Member{worker: worker, short: make(chan struct{}, 1), news: make(chan struct{})}
	m.budget = budget.NewPart(limit, m.askNow)
	m.budget.Expose = m.expose
	return m
}

func (m *Member) askNow() {
	select {
	case m.short <- struct{}{}:
	default:
	}
}

// expose changes what the worker may send. It waits until the keeper knows of more; less can be said later.
func (m *Member) expose(ctx context.Context, worst llm.Money) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted, m.since = worst, m.seq+1
	if worst > m.exposed {
		m.askNow()
		for m.heard < m.since {
			news := m.news
			m.mu.Unlock()
			select {
			case <-news:
			case <-ctx.Done():
			}
			m.mu.Lock()
			switch {
			case ctx.Err() != nil:
				m.wanted = m.exposed
				return context.Cause(ctx)
			case m.heard < m.since && m.noRoom >= m.since:
				m.wanted = m.exposed
				return budget.ErrPartFull
			}
		}
	}
	m.exposed = worst
	return nil
}

// Budget returns the worker's budget. Call its Recorded for every call that is recorded, but only once the
// keeper's Spent includes it.
func (m *Member) Budget() *budget.Budget { return m.budget }

// Short is sent to when a call needs more than the worker has. Then ask at once.
func (m *Member) Short() <-chan struct{} { return m.short }

// Ask returns an ask. Call it every Interval, and when Short or Apply says so.
func (m *Member) Ask() Ask {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seq++
	return Ask{Worker: m.worker, Seq: m.seq, Epoch: m.epoch, Given: m.given, Stake: m.budget.Stake(), Exposed: m.wanted}
}

// Apply applies a grant. It reports whether the keeper waits for the next ask.
func (m *Member) Apply(g Grant) (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case g.Epoch < m.epoch || g.Epoch == m.epoch && g.Number <= m.number:
		return false
	case g.Epoch > m.epoch:
		m.epoch, m.given, again = g.Epoch, 0, true
	}
	m.number = g.Number
	if g.Seq > m.heard || g.NoRoom > m.noRoom {
		m.heard, m.noRoom = max(m.heard, g.Seq), max(m.noRoom, g.NoRoom)
		close(m.news)
		m.news = make(chan struct{})
	}
	if g.Limit > 0 {
		m.budget.SetLimit(g.Limit)
	}
	if more := g.Given.Minus(m.given); more > 0 {
		m.given = g.Given
		m.budget.Grow(more)
	}
	if g.Recall {
		m.budget.GiveBack()
		again = true
	}
	if g.Exhausted {
		m.budget.Exhaust()
		again = true
	}
	return again
}
