package lease

import (
	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// MoneyReport is what a worker tells the keeper of the budget.
type MoneyReport struct {
	Header
	// Given is what the keeper of the epoch has given so far.
	Given llm.Money `json:"given,omitzero"`
	// Stake is what the worker may still spend, and what it needs.
	Stake budget.Stake `json:"stake"`
	// Exposed is the most of it that calls in flight, or not recorded yet, can cost. The worker sends more only when a
	// grant says that it is durable.
	Exposed llm.Money `json:"exposed,omitzero"`
}

// MoneyGrant is the answer to a report.
type MoneyGrant struct {
	Header
	// Durable is the Seq of the last report whose Exposed is durable.
	Durable uint64 `json:"durable,omitzero"`
	// Given is all that the keeper has given the worker since its epoch began.
	Given llm.Money `json:"given,omitzero"`
	// Recall means that the worker must give back what no call has set aside.
	Recall bool `json:"recall,omitzero"`
	// Exhausted means that there is no more, and that nothing is in flight that could give some back.
	Exhausted bool `json:"exhausted,omitzero"`
	// NoRoom is the Seq of a report whose Exposed exceeds the budget, while no other worker has anything in flight that could change that.
	NoRoom uint64 `json:"no_room,omitzero"`
	// Lost means that the session counts as lost, and gets nothing more: the worker must begin another.
	Lost bool `json:"lost,omitzero"`
	// Limit is that of the whole budget.
	Limit llm.Money `json:"limit"`
}
