package lease

import (
	"maps"
	"math"
	"sync"
	"time"

	"parley/internal/ask/dispatch/limiter"
)

// Limits are the limits of a worker. A dispatch.Dispatcher implements it.
type Limits interface {
	Demands() map[string]limiter.Demand
	Share(parts map[string]limiter.Part)
}

// LimitsMember keeps the limits of a worker within its shares. It may be used from several goroutines.
type LimitsMember struct {
	limits Limits

	mu sync.Mutex
	reporter
	sent    [4]time.Time // when the last reports were made, by seq
	since   uint64       // reports up to this one were made under another keeper, if there was one
	workers int
	until   time.Time // the shares are valid before
	parts   map[string]Part
	held    time.Time // nothing is sent since then; zero: it is
}

// NewLimitsMember returns the member of a worker's session, which has no share yet.
func NewLimitsMember(worker string, limits Limits) *LimitsMember {
	return &LimitsMember{reporter: reporter{worker: worker}, limits: limits}
}

// Report returns a report, which must be sent at once. Call it every Interval, and when Apply says so.
func (m *LimitsMember) Report() LimitsReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	r := LimitsReport{Header: m.report(), Accounts: map[string]Need{}}
	m.sent[m.seq%uint64(len(m.sent))] = now
	for name, d := range m.limits.Demands() {
		n := Need{Demand: d}
		if now.Before(m.until) {
			n.Held = m.parts[name].Share
		}
		r.Accounts[name] = n
	}
	return r
}

// sentAt returns when a report was made; ok is false if that was long ago or never.
func (m *LimitsMember) sentAt(seq uint64) (t time.Time, ok bool) {
	if seq == 0 || seq > m.seq || m.seq-seq >= uint64(len(m.sent)) {
		return t, false
	}
	return m.sent[seq%uint64(len(m.sent))], true
}

// Expired returns how long ago the report was made that the shares were for, if they have expired. Otherwise, and before the first
// grant, it is 0.
func (m *LimitsMember) Expired() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); m.epoch > 0 && !now.Before(m.until) {
		return now.Sub(m.until) + Lease
	}
	return 0
}

// Apply applies a grant. It reports whether a share became smaller: then others wait for the next
// report, which should be sent at once.
func (m *LimitsMember) Apply(g LimitsGrant) (confirm bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.sentAt(g.Seq)
	if until := at.Add(Lease); !ok || !m.isNew(g.Header) || !time.Now().Before(until) {
		return false
	}
	first := m.epoch == 0
	if m.reporter.apply(g.Header) {
		m.since = 0
		if !first {
			m.since = m.seq
		}
	}
	parts := make(map[string]Part, len(g.Accounts))
	maps.Copy(parts, g.Accounts)
	for name, was := range m.parts {
		p := parts[name]
		if g.Seq <= m.since {
			// The report may have said more than is in force by now, and another keeper knows that.
			p.Share = math.Min(p.Share, was.Share)
			parts[name] = p
		}
		confirm = confirm || p.Share < was.Share
	}
	if !time.Now().Before(m.until) {
		confirm = false // they had expired
	}
	m.workers, m.until = g.Workers, at.Add(Lease)
	m.parts = parts
	m.set()
	return confirm
}

// Unanswered notes that nobody is there to answer a report: the hub works, and the keeper is gone. Do
// not call it when an answer is merely late. The shares in force stay valid, up to an equal part.
func (m *LimitsMember) Unanswered(seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.sentAt(seq)
	until := at.Add(Lease)
	if !ok || !time.Now().Before(m.until) || !until.After(m.until) {
		return
	}
	m.until = until
	for name, p := range m.parts {
		p.Share = math.Min(p.Share, 1/float64(max(1, m.workers)))
		m.parts[name] = p
	}
	m.set()
}

// Hold sends nothing, although the shares stay this member's, or uses them again.
func (m *LimitsMember) Hold(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case on == !m.held.IsZero():
		return
	case on:
		m.held = time.Now()
	default:
		m.held = time.Time{}
	}
	m.set()
}

// set tells the limits.
func (m *LimitsMember) set() {
	until := m.until
	if !m.held.IsZero() && m.held.Before(until) {
		until = m.held
	}
	parts := make(map[string]limiter.Part, len(m.parts))
	for name, p := range m.parts {
		parts[name] = limiter.Part{Share: p.Share, Until: until, Rates: p.Rates}
	}
	m.limits.Share(parts)
}
