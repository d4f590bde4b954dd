// Package allot divides the budget of a run among its workers.
//
// A worker spends only what it was allotted: its dispatcher's budget is a part (see budget.NewPart) that a
// Member keeps in step with the Keeper, of which there is one. They exchange Ask and Grant; how these travel
// is the caller's business. They may be lost, late, doubled and out of order.
//
// It promises that what is recorded as spent and what calls that are not recorded can cost never exceed the limit, and that the
// second is durable before a call is sent: whoever is killed, no more is at risk than calls which were really open can
// cost. What a worker was allotted beside that is not at risk, so it need not be durable. What a worker does not need is recalled
// when another needs it. A call is refused for money only when nothing is in flight anywhere. What a lost
// worker had in flight stays at risk, unless the caller knows that it is recorded; the rest of its allotment is free again.
package allot

import (
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// Interval is how often a member asks, even if it needs nothing.
const Interval = time.Second

// Ask is what a worker tells the keeper.
type Ask struct {
	// Worker is the name of the worker's session. A worker that starts again has another.
	Worker string `json:"worker"`
	// Seq numbers the asks of a session from 1.
	Seq uint64 `json:"seq"`
	// Epoch is that of the last keeper that answered, and Given what it has given so far: grants of
	// earlier keepers are ignored from now on.
	Epoch uint64    `json:"epoch,omitzero"`
	Given llm.Money `json:"given,omitzero"`
	// Stake is what the worker may still spend, and what it needs.
	Stake budget.Stake `json:"stake"`
	// Exposed is the most of it that calls in flight, or not recorded yet, can cost. The worker sends more only when a
	// grant says that it is durable.
	Exposed llm.Money `json:"exposed,omitzero"`
}

// Grant is the answer to an ask.
type Grant struct {
	Worker string `json:"worker"`
	// Epoch is the keeper's: a keeper that replaces another has a higher one.
	Epoch uint64 `json:"epoch"`
	// Number numbers the grants of a worker and an epoch from 1.
	Number uint64 `json:"number"`
	// Seq is that of the last ask whose Exposed is durable.
	Seq uint64 `json:"seq,omitzero"`
	// Given is all that the keeper has given the worker since its epoch began.
	Given llm.Money `json:"given,omitzero"`
	// Recall means that the worker must give back what no call has set aside.
	Recall bool `json:"recall,omitzero"`
	// Exhausted means that there is no more, and that nothing is in flight that could give some back.
	Exhausted bool `json:"exhausted,omitzero"`
	// NoRoom is the Seq of an ask whose Exposed exceeds the budget, while no other worker has anything in flight that could change that.
	NoRoom uint64 `json:"no_room,omitzero"`
	// Lost means that the session counts as lost, and gets nothing more: the worker must begin another.
	Lost bool `json:"lost,omitzero"`
	// Limit is that of the whole budget.
	Limit llm.Money `json:"limit"`
}
