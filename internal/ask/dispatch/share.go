package dispatch

import (
	"maps"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/dispatch/tokens"
	"parley/llm"
)

// accounts calls each with the limiters of all open lanes, and a name that is the same in every process
// that uses the same account.
func (l *lanes) accounts(each func(name string, lim *limiter.Limiter)) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for name, lane := range l.byName {
		for _, e := range lane.endpoints {
			for _, g := range e.groups {
				each(name+" "+e.address+" "+g.pattern, g.limit.Limiter)
			}
		}
	}
}

// guesses calls each with the estimators of all open lanes, by provider.
func (l *lanes) guesses(each func(provider string, guess *tokens.Estimator)) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for name, lane := range l.byName {
		each(name, lane.guess)
	}
}

// Demands returns how much of each account that was opened is used and needed, by its name.
func (d *Dispatcher) Demands() map[string]limiter.Demand {
	all := map[string]limiter.Demand{}
	d.lanes.accounts(func(name string, lim *limiter.Limiter) { all[name] = lim.Demand() })
	return all
}

// Share sets the part of each account that may be used. Accounts that are not named keep theirs.
func (d *Dispatcher) Share(parts map[string]limiter.Part) {
	d.lanes.accounts(func(name string, lim *limiter.Limiter) {
		if p, ok := parts[name]; ok {
			lim.Share(p)
		}
	})
}

// Full reports whether so many calls wait at every account that was opened that more cannot help.
func (d *Dispatcher) Full() bool {
	all, full := 0, 0
	d.lanes.accounts(func(_ string, lim *limiter.Limiter) {
		all++
		if lim.Waiting() >= ahead {
			full++
		}
	})
	return all > 0 && full == all
}

// Guesses returns what is known of the tokens that models take, by model.
func (d *Dispatcher) Guesses() map[string]tokens.Guess {
	all := map[string]tokens.Guess{}
	d.lanes.guesses(func(_ string, guess *tokens.Estimator) { maps.Copy(all, guess.Known()) })
	return all
}

// Adopt takes over what other processes know of the tokens that models take.
func (d *Dispatcher) Adopt(known map[string]tokens.Guess) {
	d.lanes.guesses(func(provider string, guess *tokens.Estimator) {
		own := maps.Clone(known)
		maps.DeleteFunc(own, func(model string, _ tokens.Guess) bool {
			name, _ := llm.SplitModel(model)
			return name != provider
		})
		guess.Adopt(own)
	})
}
