package cluster

import (
	"parley/internal/run/cluster/allot"
	"parley/internal/run/cluster/share"
)

// Status is how a run is divided among its workers.
type Status struct {
	Run  string `json:"run"`
	Lots Lots   `json:"lots"`
	// Workers is how many workers there are.
	Workers int `json:"workers"`
	// Lag is how many messages of the log are not in the run file yet.
	Lag uint64 `json:"lag"`
	// Accounts is how the limits of each account are divided, by name.
	Accounts map[string]share.Account `json:"accounts"`
	// Money is how the budget is divided. Nil: there is none.
	Money *allot.Sums `json:"money,omitempty"`
}

// Lots counts lots: those that wait for a worker, those that one plays, and those that are done since this process began.
type Lots struct {
	Waiting int `json:"waiting"`
	Leased  int `json:"leased"`
	Done    int `json:"done"`
}

// status returns how the run is divided.
func (p *play) status() Status {
	s := Status{Run: p.run.Begun().Run, Accounts: p.shares.Accounts()}
	if p.money != nil {
		sums := p.money.Sums()
		s.Money = &sums
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Lots = Lots{Waiting: max(0, p.waiting()), Leased: len(p.claimed), Done: p.done}
	s.Workers = len(p.workers)
	if p.last > p.taken {
		s.Lag = p.last - p.taken
	}
	return s
}
