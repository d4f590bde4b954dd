package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"parley/llm"
	"parley/world"
)

// Entry is one fact of a run. The types in this file are all there are.
type Entry interface{ entry() }

// Begun is the first entry of every run. It is written again when a process changes how the run is
// played, or plays a larger plan: the last one counts.
type Begun struct {
	Version int    // of the format
	Run     string // the run's id
	Tool    string // the program that wrote it, such as parley 0.1.0
	At      time.Time

	Kind        string
	KindVersion int
	// Nested is the other kind whose episodes the kind plays, if there is one: see part.Nester.
	Nested        string `json:",omitempty"`
	NestedVersion int    `json:",omitempty"`
	Seed          uint64
	Agents        []world.Agent
	// Fork is where the run was forked from, or nil.
	Fork *Origin
	// Plan is the resolved plan file: how the run was set up.
	Plan json.RawMessage
	// Grown lists each time that the run was given a larger plan, in order.
	Grown []Growth `json:",omitempty"`
	// Cells renames cells of recorded episodes: from the recorded name to the name in Plan,
	// whichever plan the cell was recorded with. A cell is named by what varies, and in a larger
	// plan more may vary.
	Cells map[string]string `json:",omitempty"`
	// Code is the code that is not part of the program, such as a world in Python, as the last process
	// played it. Edited lists each time that a process continued with changed code, in order.
	Code   []Code   `json:",omitempty"`
	Edited []Growth `json:",omitempty"`
	// Again lists each time that episodes which had failed were to be played again, in order.
	Again []Again `json:",omitempty"`
	// Measures are the scores that the kind declares for this plan, for readers that do not have the kind: each once, with
	// the bounds that hold in all cells.
	Measures []world.Measure `json:",omitempty"`
	// Prices are the prices at the beginning, by model: null for one without a price. Workers get those of now.
	Prices map[string]json.RawMessage `json:",omitempty"`
}

// KindAmong returns the kind of the run if it is among kinds in the version that was played, with the kind whose episodes it plays. Otherwise
// it returns the zero kind.
func (b *Begun) KindAmong(kinds []world.Kind) world.Kind {
	if b == nil {
		return world.Kind{}
	}
	find := func(name string, version int) (world.Kind, bool) {
		i := slices.IndexFunc(kinds, func(k world.Kind) bool { return k.Name == name && k.Version == version })
		if i < 0 {
			return world.Kind{}, false
		}
		return kinds[i], true
	}
	k, _ := find(b.Kind, b.KindVersion)
	if nested, ok := find(b.Nested, b.NestedVersion); ok && k.Name != "" {
		k = k.With(nested)
	}
	return k
}

// Code is code that a plan names.
type Code struct {
	Name     string `json:"name"`     // as in the plan: auction.py:Auction
	Language string `json:"language"` // and its version: python 3.11.7
	// Files are the SHA-256 of the files that it consists of, by their path in the folder of the first.
	Files map[string]string `json:"files,omitempty"`
}

// Growth is the moment when a run was given a larger plan, or changed code.
type Growth struct {
	At time.Time `json:"at"`
	// Episodes is how many were recorded by then.
	Episodes int `json:"episodes"`
}

// Again is the moment when the failed episodes of a run were to be played again. Another attempt at each begins. It
// uses the replies of earlier attempts to what it asks as they did, but for errors.
type Again struct {
	At time.Time `json:"at"`
	// Episodes is how many there were.
	Episodes int `json:"episodes"`
	// Through is the entry up to which their ends are: one that fails again is not among them.
	Through int `json:"through"`
	// Edited means that the code of the run had changed.
	Edited bool `json:"edited,omitempty"`
}

func (a Again) String() string {
	s := fmt.Sprintf("%d episodes", a.Episodes)
	if a.Episodes == 1 {
		s = "1 episode"
	}
	if a.Edited {
		s += ", with other code than before"
	}
	return s
}

// Origin is the point that a run was forked from.
type Origin struct {
	File    string `json:"file"`
	Run     string `json:"run"`
	Episode int    `json:"episode"`
	Turn    int    `json:"turn"` // the first that is played again
}

// Opened says that a process began to play. The Closed before it says how the previous process
// ended; without one, it was killed.
type Opened struct {
	At time.Time
	// Lost is how many calls had no recorded reply when the previous process was killed or aborted; they are made
	// again. Cost is the most that they can have cost.
	Lost int
	Cost llm.Money
}

// Closed says that a process ended properly.
type Closed struct {
	At     time.Time
	State  State
	Reason Reason
	// Lost counts calls that were cut off, and that the provider may bill. They are made again. What they cost is not
	// known: what was exposed stays owed.
	Lost int `json:",omitempty"`
}

// State is how a process ended.
type State string

// The states. A run whose last process was killed has none.
const (
	Complete State = "complete" // everything that the plan asked for was played
	Stopped  State = "stopped"  // by the user or a budget: it can be resumed
	Failed   State = "failed"   // something is wrong that a resumed run will meet again
)

// Staged is a stage of the plan: its episodes are numbered from First.
type Staged struct {
	Stage, First int
	Specs        world.Specs
}

// Turn identifies a turn of a strand of an attempt at an episode.
type Turn = world.TurnID

// Turned is a turn of a strand. It is written before the turn's calls are made.
type Turned struct {
	Turn
	// Digest is a digest of the calls: a replay that makes other calls has diverged.
	Digest Digest
	Calls  int
	Notes  []world.Note
}

// Digest is a hash.
type Digest [16]byte

// Replied is a call and its result.
type Replied struct {
	Turn
	Index int // of the call in its turn

	Seat, Label, Agent string
	// Request is the complete request; nil for an act or a bot's call.
	Request *llm.Request
	Act     *world.Act
	// Response is the answer, or nil if Error is set. That of an act or a bot has only a Text or a
	// JSON.
	Response *llm.Response
	Error    *llm.Error
	At       time.Time // when the reply arrived
	// Copied means that the reply was copied from another run when this one was forked.
	Copied bool
}

// Ended is the end of an episode.
type Ended struct {
	Episode, Attempt int
	Outcome          world.Outcome // Data is a json.RawMessage
	At               time.Time
	// Stack is where the world panicked, if it did.
	Stack string
	// Play identifies what was asked, answered and scored: episodes with the same Play are
	// identical. Its first half identifies what models were asked first, and is zero if none was asked. Zero: it was not recorded.
	Play Digest
	// Chance means that independent episodes may have the same Play, since a model wrote little of
	// it, unless the run shows that its models have no randomness. Otherwise the second of two is a copy of the first, as from a model at
	// temperature 0 or a server that ignores the temperature.
	Chance bool
}

// Exposed sets the bound on what is in flight or not recorded yet: the most that it can cost. It is
// durable before more is sent, so that it is known what a killed process may owe. A later one
// replaces it.
//
// With a Worker it is an allotment: Worst is what this worker of the run may have spent, or may still
// spend, beyond what is recorded. It replaces the worker's earlier one, and 0 ends it.
type Exposed struct {
	Worst  llm.Money
	Worker string `json:",omitzero"`
}

// Batched is a step in the life of a batch at a provider. It is durable before the next step is
// taken, so that a batch is found again after a crash and never paid for twice.
//
// BatchClosed may become durable only after every answer that was delivered before it, since it
// says that the answers of the batch are recorded.
type Batched struct {
	At   time.Time
	Step Step
	Key  string // our name of the batch

	// Of BatchIntended: the provider and model, the ids of the lines, and the most that all lines,
	// and each of them, can cost.
	Provider, Model  string
	Lines            []string
	Worst, WorstLine llm.Money

	File  string // of BatchUploaded
	Batch string // of BatchCreated: the provider's name of the batch
	Why   string // of BatchClosed
}

// Step is how far a batch has come.
type Step string

// The steps, in order. A batch may be closed after any of them.
const (
	BatchIntended Step = "intended" // about to be sent: from now on it may exist
	BatchUploaded Step = "uploaded" // its file is there
	BatchCreated  Step = "created"  // it has a name at the provider
	BatchClosed   Step = "closed"   // no more results will be read from it
)

// Steered says that somebody changed how the run is played while it was played. Only SteerChange affects what is
// played. A changed plan file is recorded as a Begun.
type Steered struct {
	At   time.Time
	Verb SteerVerb
	By   string // from where, such as ctl
	// Detail has what was set, such as "budget 10 → 20".
	Detail string
	// Change is what the plan was given, with SteerChange, before it was asked for the stage with the number Stage.
	Change json.RawMessage `json:",omitempty"`
	Stage  int             `json:",omitempty"`
}

// Collected says how far the log of a cluster has been collected into the journal: everything up to a
// message of the log is in the journal, with the entries that are appended together with this one. A
// store keeps only the last one, and does not read it back as an entry: Head has it.
type Collected struct {
	// Log is a random number for the log; 0 is none. Through is the number of the message.
	Log, Through int64
}

// String returns what was done, and from where: "set budget $1.00 → $2.00 by ctl".
func (s Steered) String() string {
	if s.Detail == "" {
		return fmt.Sprintf("%s by %s", s.Verb, s.By)
	}
	return fmt.Sprintf("%s %s by %s", s.Verb, s.Detail, s.By)
}

// SteerVerb is what somebody did to a run while it was played.
type SteerVerb string

// The verbs.
const (
	SteerPause  SteerVerb = "pause"  // send no calls for now
	SteerResume SteerVerb = "resume" // send calls again
	SteerDrain  SteerVerb = "drain"  // begin no more episodes
	SteerStop   SteerVerb = "stop"   // send no more calls
	SteerSet    SteerVerb = "set"    // change the budget or a limit
	SteerChange SteerVerb = "change" // change what later stages of the plan play
)

func (*Begun) entry()     {}
func (*Opened) entry()    {}
func (*Closed) entry()    {}
func (*Staged) entry()    {}
func (*Turned) entry()    {}
func (*Replied) entry()   {}
func (*Ended) entry()     {}
func (*Exposed) entry()   {}
func (*Batched) entry()   {}
func (*Steered) entry()   {}
func (*Collected) entry() {}
