package journal

import (
	"encoding/json"
	"time"

	"parley/llm"
	"parley/world"
)

// Entry is one fact of a run. The set is closed: the types in this file.
type Entry interface{ entry() }

// Begun is the first entry of every run. It is written again when a sitting changes how the
// run is played, or plays a larger plan: the last one counts.
type Begun struct {
	Version int    // of the format
	Run     string // the run's id
	Tool    string // what wrote it, as parley 0.1.0
	At      time.Time

	Kind        string
	KindVersion int
	Seed        uint64
	Agents      []world.Agent
	// Fork is where the run was forked from, or nil.
	Fork *Origin
	// Plan is the resolved plan file: what there is to know about how the run was set up.
	Plan json.RawMessage
	// Grown is each time that the run was given a larger plan, in order.
	Grown []Growth `json:",omitempty"`
	// Cells renames cells of episodes that were recorded before: recorded name to the name in
	// Plan, whichever plan it was recorded with. A cell is named by what varies, and in a larger
	// plan more may.
	Cells map[string]string `json:",omitempty"`
}

// Growth is a larger plan.
type Growth struct {
	At time.Time `json:"at"`
	// Episodes is how many were recorded by then.
	Episodes int `json:"episodes"`
}

// Origin is the place that a run was forked from.
type Origin struct {
	File    string `json:"file"`
	Run     string `json:"run"`
	Episode int    `json:"episode"`
	Turn    int    `json:"turn"` // the first that is played anew
}

// Opened says that somebody began to play on. How the sitting before ended is told by
// the Closed before it, or by there being none.
type Opened struct {
	At time.Time
	// Lost is how many calls were in flight when the sitting before was cut off; they are
	// asked again. Cost is the most they can have cost.
	Lost int
	Cost llm.Money
}

// Closed says that a sitting ended in good order.
type Closed struct {
	At     time.Time
	State  State
	Reason Reason
}

// State is how a sitting ended.
type State string

// The states. A run that was cut off is in none of them.
const (
	Complete State = "complete" // everything the plan asked for was played
	Stopped  State = "stopped"  // by the user or a budget: it can be played on
	Failed   State = "failed"   // something is wrong that playing on will meet again
)

// Staged is a stage of the plan: its episodes are numbered from First.
type Staged struct {
	Stage, First int
	Specs        world.Specs
}

// Turn names a turn of a strand of an attempt at an episode.
type Turn = world.TurnID

// Turned says what a strand did up to its next rest. It is written before the turn's
// calls are made.
type Turned struct {
	Turn
	// Digest is of the calls: a fold that comes to other calls here has diverged.
	Digest Digest
	Calls  int
	Notes  []world.Note
}

// Digest tells two turns apart.
type Digest [16]byte

// Replied is a call and what came of it.
type Replied struct {
	Turn
	Index int // of the call in its turn

	Seat, Label, Agent string
	// Request is what was asked, complete; nil for an act or a bot's call.
	Request *llm.Request
	Act     *world.Act
	// Response is the answer, or nil where Error is set. An act's and a bot's has a Text or
	// a JSON and nothing else.
	Response *llm.Response
	Error    *llm.Error
	At       time.Time // when the reply came
	// Copied means that the reply was taken from another run when this one was forked.
	Copied bool
}

// Ended is the end of an episode.
type Ended struct {
	Episode, Attempt int
	Outcome          world.Outcome // its Data is a json.RawMessage
	At               time.Time
	// Stack is where the world panicked, if it did.
	Stack string
	// Play identifies what was asked, answered and scored: episodes with the same Play were
	// played word for word alike. Zero: it was not recorded.
	Play Digest
	// Chance means that two independent episodes may come to the same Play, since little of it
	// was written by a model. Without it, the second of two is a copy of the first, as from a
	// model at temperature 0 or a server that ignores the temperature.
	Chance bool
}

// Exposed raises the bound on what is in flight: calls, and the most they can cost. It is
// durable before the bound is used, so that a run that was cut off knows what it may owe.
type Exposed struct {
	Calls int
	Worst llm.Money
}

// Batched is a step in the life of a batch at a provider. It is durable before the next step
// is taken, so that a batch is found again after a crash and never paid for twice.
type Batched struct {
	At   time.Time
	Step Step
	Key  string // ours: it names the batch

	// Of BatchIntended: who is asked, for which lines, and what all of them, and the dearest
	// of them, can cost.
	Provider, Model  string
	Lines            []string
	Worst, WorstLine llm.Money

	File  string // of BatchUploaded
	Batch string // of BatchCreated: the provider's name for it
	Why   string // of BatchClosed
}

// Step is how far a batch has come.
type Step string

// The steps, in order. A batch may be closed after any of them.
const (
	BatchIntended Step = "intended" // about to be sent: from now on it may exist
	BatchUploaded Step = "uploaded" // its file is there
	BatchCreated  Step = "created"  // it has a name at the provider
	BatchClosed   Step = "closed"   // nothing more is to be had from it
)

func (*Begun) entry()   {}
func (*Opened) entry()  {}
func (*Closed) entry()  {}
func (*Staged) entry()  {}
func (*Turned) entry()  {}
func (*Replied) entry() {}
func (*Ended) entry()   {}
func (*Exposed) entry() {}
func (*Batched) entry() {}
