package batch

import (
	"slices"
	"time"

	"parley/llm"
)

// Step is a moment in the life of a batch that must be durable before the next step is taken.
type Step string

// The steps, in order. A batch may be closed after any of them.
const (
	Intended      Step = "intended" // about to be sent: from now on it may exist
	batchUploaded Step = "uploaded" // its file is uploaded; Anthropic has none
	Created       Step = "created"  // it has a name at the provider
	Closed        Step = "closed"   // no more results will be read from it
)

// Event is one step of one batch, to be recorded.
//
// A Closed event may become durable only after every answer that was delivered before it, since it
// says that the answers of the batch are recorded.
type Event struct {
	Step Step      `json:"step"`
	Key  string    `json:"key"`
	At   time.Time `json:"at"`

	// Of Intended.
	Provider  string    `json:"provider,omitempty"`
	Model     string    `json:"model,omitempty"` // written provider/model
	Lines     []ID      `json:"lines,omitempty"` // ids
	Worst     llm.Money `json:"worst,omitempty"` // the most that all lines can cost
	WorstLine llm.Money `json:"dearest,omitempty"`

	File  string `json:"file,omitempty"`  // of Uploaded
	Batch string `json:"batch,omitempty"` // of Created
	Why   string `json:"why,omitempty"`   // of Closed
}

// Open is a batch that was intended and is not closed.
type Open struct {
	Key, Provider, Model string
	Lines                []ID // ids of all lines it was sent with
	Worst, WorstLine     llm.Money
	Began                time.Time
	File, ID             string // if known

	safe map[string]bool // calls whose answers are durable
}

// AtRisk returns the most that lines can cost whose answers are not durable yet.
func (o *Open) AtRisk() llm.Money {
	n := 0
	for _, id := range o.Lines {
		if !o.Safe(id) {
			n++
		}
	}
	return max(0, min(o.Worst, o.WorstLine.Times(n)))
}

// Collected reports whether the batch was created, and all of its answers are durable. Only that it is closed was not recorded.
func (o *Open) Collected() bool {
	return o.ID != "" && !slices.ContainsFunc(o.Lines, func(id ID) bool { return !o.Safe(id) })
}

// Safe reports whether the answer to the call of a line is durable.
func (o *Open) Safe(id ID) bool { return o.safe[id.Call()] }

// Log folds events and replies, in order, into the batches that are open. Its zero value is empty.
type Log struct {
	open []*Open
}

// Add adds the next event. An event of an unknown batch is ignored.
func (l *Log) Add(m Event) {
	if m.Step == Intended {
		l.open = append(l.open, &Open{
			Key: m.Key, Provider: m.Provider, Model: m.Model, Lines: m.Lines,
			Worst: m.Worst, WorstLine: m.WorstLine, Began: m.At, safe: map[string]bool{},
		})
		return
	}
	i := slices.IndexFunc(l.open, func(o *Open) bool { return o.Key == m.Key })
	if i < 0 {
		return
	}
	switch m.Step {
	case batchUploaded:
		l.open[i].File = m.File
	case Created:
		l.open[i].ID = m.Batch
	case Closed:
		l.open = slices.Delete(l.open, i, i+1)
	}
}

// Replied notes that the answer to a call is durable, however it was obtained: its lines are not at
// risk any more. It costs nothing while no batch is open.
func (l *Log) Replied(req *llm.Request) {
	if len(l.open) == 0 {
		return
	}
	call := CallPart(req)
	for _, o := range l.open {
		o.safe[call] = true
	}
}

// Open returns the open batches, oldest first.
func (l *Log) Open() []Open {
	out := make([]Open, 0, len(l.open))
	for _, o := range l.open {
		out = append(out, *o)
	}
	return out
}
