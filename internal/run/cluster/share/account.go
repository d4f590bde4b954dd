package share

import "parley/internal/ask/dispatch/limiter"

// Account is how an account is divided.
type Account struct {
	// Rates are the account's limits a minute, as far as any worker knows them.
	Rates limiter.Units `json:"rates,omitzero"`
	// Shares are the last ones that were granted, by worker.
	Shares map[string]float64 `json:"shares"`
	// Waiting is how many calls waited, by the last reports.
	Waiting int `json:"waiting"`
}

// Accounts returns how each account is divided, by name.
func (k *Keeper) Accounts() map[string]Account {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[string]Account{}
	for _, w := range k.workers {
		for name, need := range w.needs {
			a, ok := all[name]
			if !ok {
				a = Account{Rates: k.rates(name), Shares: map[string]float64{}}
			}
			a.Waiting += need.Waiting
			if n := len(w.grants); n > 0 {
				a.Shares[w.name] = w.grants[n-1].parts[name].Share
			}
			all[name] = a
		}
	}
	return all
}
