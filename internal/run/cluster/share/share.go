// Package share divides the limits of providers' accounts among the workers of a run.
//
// A Member reports every second how much of each account its worker uses and needs. The Keeper, of
// which there is one, answers with the part that the worker may use: its share. They exchange Report
// and Grant; how these travel is the caller's business. They may be lost, late, doubled and out of
// order.
//
// It promises that the shares of an account never add up to more than 1, messages in flight included:
// a share grows only after others have confirmed that theirs shrank, or these have expired. A share
// is valid for Lease, measured by the member from the report that it answers. The keeper counts on it
// for expiry, measured from the grant. Only intervals are measured, so clocks may differ.
//
// If the keeper is gone (see Member.Unanswered), a worker continues with what it has, but at most with
// its equal part. A worker that is cut off has no share after Lease.
//
// Grants also carry what all workers together have learned about an account: its limits, and how many
// tokens models take. So a worker that joins begins with what the others know.
package share

import (
	"time"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/dispatch/tokens"
)

const (
	// Interval is how often a member reports.
	Interval = time.Second
	// Lease is how long a share is valid, from the report that asked for it.
	Lease = 3 * time.Second
	// expiry is how long the keeper counts on a share, from its grant. It is longer than Lease, so
	// that clocks may run at different speeds.
	expiry = 4 * time.Second
	// MaxWorkers is how many workers may have a share at once. Others get none.
	MaxWorkers = 4096
)

// Message is what Report and Grant have in common.
type Message[Account any] struct {
	// Worker is the name of the worker's session. A worker that starts again has another.
	Worker string `json:"worker"`
	// Seq numbers the reports of a session from 1. A grant has that of the report that it answers.
	Seq uint64 `json:"seq"`
	// Epoch is the keeper's: a keeper that replaces another has a higher one. Number numbers the grants of
	// a worker and an epoch from 1. A report has those of the last grant that is in force: later ones with lower numbers are
	// ignored.
	Epoch  uint64 `json:"epoch,omitzero"`
	Number uint64 `json:"number,omitzero"`
	// Accounts has every account that the worker uses, by name.
	Accounts map[string]Account `json:"accounts,omitzero"`
	// Guesses are what the sender knows of the tokens that models take, by model.
	Guesses map[string]tokens.Guess `json:"guesses,omitzero"`
}

// Report is what a worker tells the keeper.
type Report = Message[Need]

// Need is what a worker needs of an account.
type Need struct {
	limiter.Demand
	// Held is the share that is in force.
	Held float64 `json:"held,omitzero"`
}

// Grant is the answer to a report. A report may have several: the keeper answers the last report of a
// worker again when the share changes.
type Grant struct {
	Message[Part]
	// Workers is how many there are, this one included.
	Workers int `json:"workers"`
}

// Part is a worker's part of an account.
type Part struct {
	Share float64 `json:"share"`
	// Rates are the account's limits, as far as any worker knows them.
	Rates limiter.Units `json:"rates,omitzero"`
}
