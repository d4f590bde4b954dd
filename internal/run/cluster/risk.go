package cluster

import (
	"time"

	"parley/internal/run/cluster/chain"
	"parley/internal/run/cluster/share"
	"parley/journal"
)

// record is what the log shows of the calls of a worker's session.
type record struct {
	lots  int       // that it has claimed, and neither finished nor given back
	open  bool      // it may have sent calls that nobody recorded, whatever it finishes
	lost  time.Time // when it counted as lost; zero: it is there
	calls int       // that it left in flight, as far as others claimed its lots
}

// settled reports whether all calls of the session are recorded: a lot is done when all its calls are.
func (r *record) settled() bool { return r.lots == 0 && !r.open }

// claims notes that a worker claims a lot. Whoever had the lot may have left calls. So may a session that began before this process, which
// does not know all that it claimed. The lock is held.
func (p *play) claims(from int, c *chain.Claim, before bool) {
	if c.Alone && p.claimed[from] == c.Session {
		return // the next episode of the same lot
	}
	if !before {
		p.run.Lost(p.leftInFlight(from, c))
	}
	p.gives(from, true)
	r := p.records[c.Session]
	if r == nil && len(p.records) < share.MaxWorkers {
		r = &record{open: before}
		p.records[c.Session] = r
	}
	if r != nil {
		r.lots++
	}
	p.claimed[from] = c.Session
}

// leftInFlight returns how many calls whoever had a lot left in flight, given who claims it now. Of the calls without a reply, many may have waited for
// money or limits, so there are no more than its worker last reported for all its lots. The lock is held.
func (p *play) leftInFlight(from int, c *chain.Claim) int {
	r := p.records[p.claimed[from]]
	reported, known := p.tally.InFlight(p.claimed[from])
	if r == nil || !known {
		return c.Lost
	}
	n := min(c.Lost, max(0, reported-r.calls))
	if p.claimed[from] != c.Session {
		r.calls += n
	}
	return n
}

// gives notes that whoever has a lot plays it no more. open means that it may have left calls. The lock is held.
func (p *play) gives(from int, open bool) {
	if r := p.records[p.claimed[from]]; r != nil {
		r.lots--
		r.open = r.open || open
	}
	delete(p.claimed, from)
}

// leaves notes that the worker that has a lot may have left calls, if e is the end of an episode that failed: it does not wait for
// its calls.
func (p *play) leaves(from int, e journal.Entry) {
	if end, ok := e.(*journal.Ended); !ok || end.Outcome.Failed == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.records[p.claimed[from]]; r != nil {
		r.open = true
	}
}

// settleLost takes back the risk of lost workers whose calls are all recorded. It waits until they can send nothing more even if they are
// back: they get no more shares, and an old one does not last so long.
func (p *play) settleLost(lost []string) error {
	var settled []string
	p.mu.Lock()
	for _, session := range lost {
		if r := p.records[session]; r != nil {
			r.lost = time.Now()
		}
	}
	for session, r := range p.records {
		if !r.lost.IsZero() && time.Since(r.lost) > 2*share.Lease && r.settled() {
			settled = append(settled, session)
			delete(p.records, session)
		}
	}
	p.mu.Unlock()
	for _, session := range settled {
		if err := p.money.Settled(session); err != nil {
			return err
		}
	}
	return nil
}
