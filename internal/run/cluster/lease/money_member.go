package lease

import (
	"context"
	"sync"

	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// MoneyMember keeps the budget of a worker in step with the keeper. It may be used from several goroutines.
type MoneyMember struct {
	budget *budget.Budget
	short  chan struct{}

	mu sync.Mutex
	reporter
	given llm.Money // by the keeper of this epoch

	exposed llm.Money     // what the worker may send
	wanted  llm.Money     // what it says, which is more while it waits for the keeper
	since   uint64        // the first report that says so
	heard   uint64        // the last report whose exposure is durable
	noRoom  uint64        // the last report for whose exposure the budget has no room
	news    chan struct{} // closed when heard changes
}

// NewMoneyMember returns the member of a worker's session, which has nothing yet of a budget with this limit.
func NewMoneyMember(worker string, limit llm.Money) *MoneyMember {
	m := &MoneyMember{reporter: reporter{worker: worker}, short: make(chan struct{}, 1), news: make(chan struct{})}
	m.budget = budget.NewPart(limit, m.askNow)
	m.budget.Expose = m.expose
	return m
}

func (m *MoneyMember) askNow() {
	select {
	case m.short <- struct{}{}:
	default:
	}
}

// expose changes what the worker may send. It waits until the keeper knows of more; less can be said later.
func (m *MoneyMember) expose(ctx context.Context, worst llm.Money) error {
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
func (m *MoneyMember) Budget() *budget.Budget { return m.budget }

// Short is sent to when a call needs more than the worker has. Then report at once.
func (m *MoneyMember) Short() <-chan struct{} { return m.short }

// Report returns a report. Call it every Interval, and when Short or Apply says so.
func (m *MoneyMember) Report() MoneyReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	return MoneyReport{Header: m.report(), Given: m.given, Stake: m.budget.Stake(), Exposed: m.wanted}
}

// Apply applies a grant. It reports whether the keeper waits for the next report.
func (m *MoneyMember) Apply(g MoneyGrant) (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isNew(g.Header) {
		return false
	}
	if m.reporter.apply(g.Header) {
		m.given, again = 0, true
	}
	if g.Durable > m.heard || g.NoRoom > m.noRoom {
		m.heard, m.noRoom = max(m.heard, g.Durable), max(m.noRoom, g.NoRoom)
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
