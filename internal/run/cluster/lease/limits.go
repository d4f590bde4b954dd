package lease

import (
	"parley/internal/ask/dispatch/limiter"
)

// LimitsReport is what a worker tells the keeper of limits.
type LimitsReport struct {
	Header
	// Accounts has every account that the worker uses, by name.
	Accounts map[string]Need `json:"accounts,omitzero"`
}

// Need is what a worker needs of an account.
type Need struct {
	limiter.Demand
	// Held is the share that is in force.
	Held float64 `json:"held,omitzero"`
}

// LimitsGrant is the answer to a report. A report may have several: the keeper answers the last report of a
// worker again when the share changes.
type LimitsGrant struct {
	Header
	// Workers is how many there are, this one included.
	Workers  int             `json:"workers"`
	Accounts map[string]Part `json:"accounts,omitzero"`
}

// Part is a worker's part of an account.
type Part struct {
	Share float64 `json:"share"`
	// Rates are the account's limits, as far as any worker knows them.
	Rates limiter.Units `json:"rates,omitzero"`
}
